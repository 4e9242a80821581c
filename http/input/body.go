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
	malformed bool // something required is missing at the top
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
		text, err := d.skip()
		into.SetBytes(bytes.Clone(text))
		return err
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

// list reads the list that is next. Items past the most it may hold are read over.
func (d *decoder) list(s *shape.Shape, into reflect.Value) error {
	count := 0
	into.Set(reflect.MakeSlice(into.Type(), 0, 0))
	err := d.each(']', func() error {
		count++
		if s.Max != nil && count > int(*s.Max) {
			return d.pass()
		}
		into.Grow(1)
		into.SetLen(count)
		return d.within(count-1, s.Item, into.Index(count-1))
	})
	d.fail(length(s, count))
	return err
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
	start, before := d.at, len(d.faults)
	given := make(map[string]json.RawMessage, len(s.Fields))
	err := d.members(func(name string) error {
		d.peek()
		from := d.at
		err := d.member(s, name, into)
		given[name] = d.text[from:d.at]
		return err
	})
	if err != nil {
		return err
	}
	d.absent(s, given, into)
	if c, ok := into.Addr().Interface().(shape.Checked); ok && len(d.faults) == before {
		for _, rule := range c.Broken() {
			d.fail(broken(rule))
		}
	}
	d.tell(d.faults[before:], given, d.text[start:d.at])
	return nil
}

func (d *decoder) member(s *shape.Shape, name string, into reflect.Value) error {
	if f, ok := s.Field(name); ok {
		return d.within(name, f.Shape, into.FieldByIndex(f.Index))
	}
	d.loc = append(d.loc, name)
	d.fail(extra)
	d.loc = d.loc[:len(d.loc)-1]
	return d.pass()
}

// absent gives what was left out its default, and notes what is required: at the top the request is malformed then,
// deeper it is a fault.
func (d *decoder) absent(s *shape.Shape, given map[string]json.RawMessage, into reflect.Value) {
	for i := range s.Fields {
		f := &s.Fields[i]
		if _, ok := given[f.Name]; ok {
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
func (d *decoder) tell(faults []problem.Violation, given map[string]json.RawMessage, object []byte) {
	for i := range faults {
		if faults[i].Input != nil {
			continue
		}
		faults[i].Input = json.RawMessage(object)
		if len(object) > maxInput {
			faults[i].Input = part(given, faults[i].Loc, len(d.loc))
		}
	}
}

// part is the member that a place goes through, if there is one and it is small.
func part(given map[string]json.RawMessage, loc []any, depth int) map[string]json.RawMessage {
	one := make(map[string]json.RawMessage)
	if depth < len(loc) {
		if name, ok := loc[depth].(string); ok && len(given[name]) <= maxInput && given[name] != nil {
			one[name] = given[name]
		}
	}
	return one
}
