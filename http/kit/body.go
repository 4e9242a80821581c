package kit

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

// maxEchoedInput is how much of an object is told in an answer; of a larger one only the field itself is.
const maxEchoedInput = 4 << 10

func decodeBodyText(text []byte, s *shape.Shape, into reflect.Value) error {
	text = bytes.TrimPrefix(text, byteOrderMark)
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}")
	}
	d := bodyDecoder{jsonScanner: jsonScanner{text: text}, loc: []any{"body"}}
	if !utf8.Valid(text) || d.peekByte() != '{' {
		return problem.BadRequest()
	}
	if err := d.decodeObject(s, into); err != nil || d.peekByte() != 0 || d.pos < len(text) || d.isMalformed {
		return problem.BadRequest()
	}
	if len(d.violations) > 0 {
		return problem.Violations(d.violations...)
	}
	return nil
}

// bodyDecoder reads a body in one pass, straight into its struct. It goes on after a broken rule, to tell them all and
// to see that the rest is JSON.
type bodyDecoder struct {
	jsonScanner
	loc         []any // where it is
	violations  []problem.Violation
	siblings    rawMembers // the members read so far of the objects it is in, the outermost first
	isMalformed bool       // something required is missing at the top
}

// addViolation notes a broken rule at the place the decoder is. Its input is set when the object around it has been read.
func (d *bodyDecoder) addViolation(f violation) {
	if f != noViolation && len(d.violations) < problem.MaxViolations {
		d.violations = append(d.violations, problem.Violation{Type: f.rule, Loc: slices.Clone(d.loc), Msg: f.msg})
	}
}

// decodeValue reads the decodeValue that is next. Its error is that it is not JSON.
func (d *bodyDecoder) decodeValue(s *shape.Shape, into reflect.Value) error {
	c := d.peekByte()
	switch {
	case c == 'n' && s.Nullable:
		into.Field(0).SetBool(true)
		return d.scanLiteral()
	case s.Nullable:
		into.Field(0).SetBool(true)
		into = allocatePointee(into.Field(1))
	case s.Pointer:
		into = allocatePointee(into)
	}
	switch {
	case s.Kind == shape.Any:
		return d.decodeFreeJSON(s, into)
	case s.Kind == shape.Object && c == '{':
		return d.decodeObject(s, into)
	case s.Kind == shape.List && c == '[':
		return d.decodeList(s, into)
	case isTextKind(s.Kind) && c == '"':
		return d.decodeString(s, into)
	case isNumberKind(s.Kind) && (c == '-' || c >= '0' && c <= '9'):
		text, err := d.scanNumber()
		if err == nil {
			d.addViolation(setNumber(s, text, into))
		}
		return err
	case s.Kind == shape.Boolean && (c == 't' || c == 'f'):
		into.SetBool(c == 't')
		return d.scanLiteral()
	}
	d.addViolation(typeViolation(s.Kind))
	return d.skipValue()
}

func isTextKind(k shape.Kind) bool {
	return k == shape.Text || k == shape.Date || k == shape.Instant
}

func isNumberKind(k shape.Kind) bool { return k == shape.Integer || k == shape.Number }

// allocatePointee is a new value behind a pointer.
func allocatePointee(pointer reflect.Value) reflect.Value {
	pointer.Set(reflect.New(pointer.Type().Elem()))
	return pointer.Elem()
}

// decodeString reads the string that is next.
func (d *bodyDecoder) decodeString(s *shape.Shape, into reflect.Value) error {
	text, err := d.scanString()
	if err != nil {
		return err
	}
	d.addViolation(setText(s, text, into))
	d.isMalformed = d.isMalformed || s.LengthIsSyntax && checkLength(s, utf8.RuneCountInString(text)) != noViolation
	return nil
}

// decodeFreeJSON reads JSON of any kind.
func (d *bodyDecoder) decodeFreeJSON(s *shape.Shape, into reflect.Value) error {
	if d.peekByte() != '{' && s.MaxMembers > 0 {
		d.addViolation(notObject)
		return d.skipValue()
	}
	members, start := -1, d.pos
	var err error
	if s.MaxMembers > 0 {
		members = 0
		err = d.scanMembers(func(string) error { members++; return d.skipValue() })
	} else {
		err = d.skipValue()
	}
	if err != nil || into.Kind() != reflect.Slice {
		return err
	}
	text := d.text[start:d.pos]
	d.addViolation(checkFreeJSON(s, text, members))
	into.SetBytes(bytes.Clone(text))
	return nil
}

// decodeAt reads a value with its place added to loc.
func (d *bodyDecoder) decodeAt(segment any, s *shape.Shape, into reflect.Value) error {
	d.loc = append(d.loc, segment)
	err := d.decodeValue(s, into)
	d.loc = d.loc[:len(d.loc)-1]
	return err
}

// decodeObject reads the decodeObject that is next.
func (d *bodyDecoder) decodeObject(s *shape.Shape, into reflect.Value) error {
	d.peekByte()
	start, violationsBefore, firstSibling := d.pos, len(d.violations), len(d.siblings)
	defer func() { d.siblings = d.siblings[:firstSibling] }()
	err := d.scanMembers(func(name string) error {
		d.peekByte()
		valueStart := d.pos
		err := d.decodeMember(s, name, into)
		d.siblings = append(d.siblings, rawMember{name, d.text[valueStart:d.pos]})
		return err
	})
	if err != nil {
		return err
	}
	d.fillAbsentMembers(s, d.siblings[firstSibling:], into)
	if len(d.violations) == violationsBefore {
		d.checkRules(into.Addr().Interface())
	}
	d.attachInput(d.violations[violationsBefore:], d.siblings[firstSibling:], d.text[start:d.pos])
	return nil
}

// checkRules asks an object for the rules it breaks that no tag says.
func (d *bodyDecoder) checkRules(v any) {
	if p, ok := v.(shape.MemberChecker); ok {
		for _, f := range p.MemberFaults() {
			d.loc = append(d.loc, f.Member)
			d.addViolation(valueViolation(f.Rule))
			d.loc = d.loc[:len(d.loc)-1]
		}
	}
	if c, ok := v.(shape.RuleChecker); ok {
		for _, rule := range c.BrokenRules() {
			d.addViolation(valueViolation(rule))
		}
	}
}

func (d *bodyDecoder) decodeMember(s *shape.Shape, name string, into reflect.Value) error {
	if f, ok := s.Field(name); ok {
		return d.decodeAt(f.Name, f.Shape, into.FieldByIndex(f.Index))
	}
	d.loc = append(d.loc, name)
	d.addViolation(fieldNotDeclared)
	d.loc = d.loc[:len(d.loc)-1]
	return d.skipValue()
}

// fillAbsentMembers gives what was left out its default, and notes what is required: at the top the request is malformed then,
// deeper it is a fault.
func (d *bodyDecoder) fillAbsentMembers(s *shape.Shape, members rawMembers, into reflect.Value) {
	for i := range s.Fields {
		f := &s.Fields[i]
		if !f.Required && f.Default == "" || members.find(f.Name) != nil {
			continue
		}
		if !f.Required {
			setDefault(f, into.FieldByIndex(f.Index))
			continue
		}
		if len(d.loc) == 1 {
			d.isMalformed = true
			return
		}
		d.loc = append(d.loc, f.Name)
		d.addViolation(fieldMissing)
		d.loc = d.loc[:len(d.loc)-1]
	}
}

// attachInput gives faults their input: the object that holds the field, or of a large one the field alone.
func (d *bodyDecoder) attachInput(violations []problem.Violation, members rawMembers, object []byte) {
	for i := range violations {
		if violations[i].Input != nil {
			continue
		}
		violations[i].Input = json.RawMessage(object)
		if len(object) > maxEchoedInput {
			violations[i].Input = members.smallMemberAt(violations[i].Loc, len(d.loc))
		}
	}
}
