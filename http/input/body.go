package input

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"unicode/utf8"

	"lieudit/http/problem"
	"lieudit/schemas/body/shape"
)

// byteOrderMark is what some editors put before a text; it says nothing.
var byteOrderMark = []byte("\ufeff")

// maxInput is how much of an object is told in an answer; of a larger one only the field itself is.
const maxInput = 4 << 10

func decodeBody(text []byte, s *shape.Shape, into reflect.Value) error {
	text = bytes.TrimPrefix(text, byteOrderMark)
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}")
	}
	d := decoder{scanner: scanner{text: text}, loc: []any{"body"}}
	if !utf8.Valid(text) || d.peek() != '{' {
		return problem.BadRequest()
	}
	if err := d.object(s, into); err != nil || d.peek() != 0 || d.at < len(text) || d.malformed {
		return problem.BadRequest()
	}
	if len(d.faults) > 0 {
		return problem.Violations(d.faults...)
	}
	return nil
}

// decoder reads a body in one pass, straight into its struct. It goes on after a broken rule, to tell them all and
// to see that the rest is JSON.
type decoder struct {
	scanner
	loc       []any // where it is
	faults    []problem.Violation
	given     given // the members read so far of the objects it is in, the outermost first
	malformed bool  // something required is missing at the top
}

// fail notes a broken rule at the place the decoder is. Its input is set when the object around it has been read.
func (d *decoder) fail(f fault) {
	if f != none && len(d.faults) < problem.MaxViolations {
		d.faults = append(d.faults, problem.Violation{Type: f.kind, Loc: slices.Clone(d.loc), Msg: f.msg})
	}
}

// value reads the value that is next. Its error is that it is not JSON.
func (d *decoder) value(s *shape.Shape, into reflect.Value) error {
	c := d.peek()
	switch {
	case c == 'n' && s.Nullable:
		into.Field(0).SetBool(true)
		return d.word()
	case s.Nullable:
		into.Field(0).SetBool(true)
		into = fresh(into.Field(1))
	case s.Pointer:
		into = fresh(into)
	}
	switch {
	case s.Kind == shape.Any:
		return d.free(s, into)
	case s.Kind == shape.Object && c == '{':
		return d.object(s, into)
	case s.Kind == shape.List && c == '[':
		return d.list(s, into)
	case isText(s.Kind) && c == '"':
		return d.quoted(s, into)
	case isNumber(s.Kind) && (c == '-' || c >= '0' && c <= '9'):
		text, err := d.number()
		if err == nil {
			d.fail(setNumber(s, text, into))
		}
		return err
	case s.Kind == shape.Boolean && (c == 't' || c == 'f'):
		into.SetBool(c == 't')
		return d.word()
	}
	d.fail(wrongType(s.Kind))
	return d.pass()
}

func isText(k shape.Kind) bool {
	return k == shape.Text || k == shape.Date || k == shape.Instant
}

func isNumber(k shape.Kind) bool { return k == shape.Integer || k == shape.Number }

// fresh is a new value behind a pointer.
func fresh(pointer reflect.Value) reflect.Value {
	pointer.Set(reflect.New(pointer.Type().Elem()))
	return pointer.Elem()
}

// quoted reads the string that is next.
func (d *decoder) quoted(s *shape.Shape, into reflect.Value) error {
	text, err := d.string()
	if err != nil {
		return err
	}
	d.fail(setText(s, text, into))
	d.malformed = d.malformed || s.Syntax && length(s, utf8.RuneCountInString(text)) != none
	return nil
}

// free reads JSON of any kind.
func (d *decoder) free(s *shape.Shape, into reflect.Value) error {
	if d.peek() != '{' && s.Members > 0 {
		d.fail(badObject)
		return d.pass()
	}
	members, start := -1, d.at
	var err error
	if s.Members > 0 {
		members = 0
		err = d.members(func(string) error { members++; return d.pass() })
	} else {
		err = d.pass()
	}
	if err != nil || into.Kind() != reflect.Slice {
		return err
	}
	text := d.text[start:d.at]
	d.fail(bulk(s, text, members))
	into.SetBytes(bytes.Clone(text))
	return nil
}

// within reads a value with its place added to loc.
func (d *decoder) within(place any, s *shape.Shape, into reflect.Value) error {
	d.loc = append(d.loc, place)
	err := d.value(s, into)
	d.loc = d.loc[:len(d.loc)-1]
	return err
}

// object reads the object that is next.
func (d *decoder) object(s *shape.Shape, into reflect.Value) error {
	d.peek()
	start, before, base := d.at, len(d.faults), len(d.given)
	defer func() { d.given = d.given[:base] }()
	err := d.members(func(name string) error {
		d.peek()
		from := d.at
		err := d.member(s, name, into)
		d.given = append(d.given, member{name, d.text[from:d.at]})
		return err
	})
	if err != nil {
		return err
	}
	d.absent(s, d.given[base:], into)
	if len(d.faults) == before {
		d.ask(into.Addr().Interface())
	}
	d.tell(d.faults[before:], d.given[base:], d.text[start:d.at])
	return nil
}

// ask asks an object for the rules it breaks that no tag says.
func (d *decoder) ask(v any) {
	if p, ok := v.(shape.Pointed); ok {
		for _, f := range p.Faulty() {
			d.loc = append(d.loc, f.Member)
			d.fail(broken(f.Rule))
			d.loc = d.loc[:len(d.loc)-1]
		}
	}
	if c, ok := v.(shape.Checked); ok {
		for _, rule := range c.Broken() {
			d.fail(broken(rule))
		}
	}
}

func (d *decoder) member(s *shape.Shape, name string, into reflect.Value) error {
	if f, ok := s.Field(name); ok {
		return d.within(f.Name, f.Shape, into.FieldByIndex(f.Index))
	}
	d.loc = append(d.loc, name)
	d.fail(extra)
	d.loc = d.loc[:len(d.loc)-1]
	return d.pass()
}

// absent gives what was left out its default, and notes what is required: at the top the request is malformed then,
// deeper it is a fault.
func (d *decoder) absent(s *shape.Shape, have given, into reflect.Value) {
	for i := range s.Fields {
		f := &s.Fields[i]
		if !f.Required && f.Default == "" || have.text(f.Name) != nil {
			continue
		}
		if !f.Required {
			leftOut(f, into.FieldByIndex(f.Index))
			continue
		}
		if len(d.loc) == 1 {
			d.malformed = true
			return
		}
		d.loc = append(d.loc, f.Name)
		d.fail(missing)
		d.loc = d.loc[:len(d.loc)-1]
	}
}

// tell gives faults their input: the object that holds the field, or of a large one the field alone.
func (d *decoder) tell(faults []problem.Violation, have given, object []byte) {
	for i := range faults {
		if faults[i].Input != nil {
			continue
		}
		faults[i].Input = json.RawMessage(object)
		if len(object) > maxInput {
			faults[i].Input = have.part(faults[i].Loc, len(d.loc))
		}
	}
}
