// Package kit reads queries and bodies into the structs of schemas/body, by the rules these declare. What cannot
// be read at all, or lacks something required, is problem.BadRequest; broken rules are problem.Violations,
// all of them at once. Nothing is guessed, clamped or ignored.
package kit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"unicode/utf8"

	"lieudit/http/problem"
	"lieudit/schemas/body/shape"
	"lieudit/schemas/refusal"
)

// Decoder reads requests into T. It is safe for concurrent use.
type Decoder[T any] struct {
	shape    *shape.Shape
	shapeErr error // T's tags are wrong
}

// NewDecoder is the decoder of T.
func NewDecoder[T any]() Decoder[T] {
	s, err := shape.FromType(reflect.TypeFor[T]())
	return Decoder[T]{s, err}
}

// DecodeBody reads the body of a request. No body at all is read as {}. A body over the limit its reader sets
// is problem.TooLarge; a problem its reader fails with is passed on. There is no parameter beside a body: each one is a
// broken rule.
func (d Decoder[T]) DecodeBody(r *http.Request) (T, error) { return d.DecodeAndInspectBody(r, nil) }

// DecodeAndInspectBody is Body, and shows examine the text of the body as it was sent, once it is whole. The text must not be kept.
func (d Decoder[T]) DecodeAndInspectBody(r *http.Request, inspect func(text []byte)) (T, error) {
	text, err := readAll(r.Body, r.ContentLength)
	if err != nil {
		var zero T
		return zero, bodyReadProblem(err)
	}
	if inspect != nil {
		inspect(text)
	}
	v, err := d.DecodeText(text)
	queryErr := rejectQuery(r.URL.RawQuery)
	if isBadRequest(queryErr) && !isBadRequest(err) {
		return v, queryErr
	}
	return v, cmp.Or(err, queryErr)
}

// initialBodyBuffer is the most that is made room for before a body has begun to come.
const initialBodyBuffer = 64 << 10

// readAll reads a body to its end. Room for all of the length that was declared is made once the first of it is there:
// by then it is within its limits.
func readAll(body io.Reader, contentLength int64) ([]byte, error) {
	text := make([]byte, 0, min(max(contentLength, 0), initialBodyBuffer)+bytes.MinRead)
	for {
		n, err := body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case err == io.EOF:
			return text, nil
		case err != nil:
			return nil, err
		case cap(text)-len(text) >= bytes.MinRead:
		case contentLength > int64(len(text)):
			text = slices.Grow(text, int(contentLength)-len(text)+bytes.MinRead)
		default:
			text = slices.Grow(text, max(len(text), bytes.MinRead))
		}
	}
}

// rejectQuery says what is wrong with a query where there should be none.
func rejectQuery(raw string) error {
	var nothing struct{}
	return decodeRawQuery(raw, &shape.Shape{Kind: shape.Object}, reflect.ValueOf(&nothing).Elem())
}

func isBadRequest(err error) bool { return errors.Is(err, refusal.RequestMalformed) }

// bodyReadProblem is the answer to a body that did not arrive whole, or was not read.
func bodyReadProblem(err error) error {
	if p, known := problem.FromError(err); known {
		return p
	}
	return refusal.RequestMalformed
}

// DecodeText reads a body's text.
func (d Decoder[T]) DecodeText(text []byte) (T, error) {
	var v T
	if d.shapeErr != nil {
		return v, d.shapeErr
	}
	return v, decodeBodyText(text, d.shape, reflect.ValueOf(&v).Elem())
}

// DecodeQuery reads the query of a request. Lists may be repeated, or written with commas; an optional
// parameter without a value counts as left out.
func (d Decoder[T]) DecodeQuery(r *http.Request) (T, error) {
	var v T
	if d.shapeErr != nil {
		return v, d.shapeErr
	}
	return v, decodeRawQuery(r.URL.RawQuery, d.shape, reflect.ValueOf(&v).Elem())
}

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
		return refusal.RequestMalformed
	}
	if err := d.decodeObject(s, into); err != nil || d.peekByte() != 0 || d.pos < len(text) || d.isMalformed {
		return refusal.RequestMalformed
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

// decodeList reads the list that is next. Items past the most it may hold are read over.
func (d *bodyDecoder) decodeList(s *shape.Shape, into reflect.Value) error {
	count, seen := 0, map[string]bool{}
	into.Set(reflect.MakeSlice(into.Type(), 0, 0))
	err := d.scanElements(']', func() error {
		count++
		if s.Max != nil && count > int(*s.Max) {
			return d.skipValue()
		}
		into.Grow(1)
		into.SetLen(count)
		d.peekByte()
		start, item := d.pos, into.Index(count-1)
		err := d.decodeAt(count-1, s.Item, item)
		if err == nil && s.Unique != "" {
			d.checkUnique(s, seen, listItem{count - 1, item, d.text[start:d.pos]})
		}
		return err
	})
	d.addViolation(checkLength(s, count))
	return err
}

// listItem is an item of a list that was read.
type listItem struct {
	index int
	value reflect.Value
	text  []byte
}

// checkUnique notes an item that is the same as one before it, by what is taken of those.
func (d *bodyDecoder) checkUnique(s *shape.Shape, seen map[string]bool, item listItem) {
	loc, key := []any{item.index}, item.value
	if f, ok := s.Item.Field(s.Unique); ok {
		loc, key = append(loc, f.Name), item.value.FieldByIndex(f.Index)
	}
	text := key.String()
	if text == "" { // it is wrong by itself
		return
	}
	if !seen[text] {
		seen[text] = true
		return
	}
	violationsBefore := len(d.violations)
	d.loc = append(d.loc, loc...)
	d.addViolation(valueRepeated)
	d.loc = d.loc[:len(d.loc)-len(loc)]
	if len(loc) > 1 { // it is about the item, else about the object around the list
		d.attachInput(d.violations[violationsBefore:], rawMembers{{s.Unique, quoteJSON(text)}}, item.text)
	}
}

// rawMember is a rawMember of an object as it was sent.
type rawMember struct {
	name string
	text json.RawMessage
}

// rawMembers is the members of an object.
type rawMembers []rawMember

// find is the text of a member, nil when it was not sent.
func (g rawMembers) find(name string) json.RawMessage {
	for i := range g {
		if g[i].name == name {
			return g[i].text
		}
	}
	return nil
}

// smallMemberAt is the member that a place goes through, if there is one and it is small.
func (g rawMembers) smallMemberAt(loc []any, depth int) map[string]json.RawMessage {
	found := make(map[string]json.RawMessage)
	if depth >= len(loc) {
		return found
	}
	if name, ok := loc[depth].(string); ok {
		if text := g.find(name); text != nil && len(text) <= maxEchoedInput {
			found[name] = text
		}
	}
	return found
}

func quoteJSON(text string) json.RawMessage {
	encoded, _ := json.Marshal(text) // a string always encodes
	return encoded
}
