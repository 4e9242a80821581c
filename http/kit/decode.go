// Package kit is shared by both HTTP surfaces, the API and the customer area: it decodes requests, defines endpoints, and sends
// answers and exports. Nothing in a request is guessed, clamped or ignored. Nothing of an answer is sent before all of it is known;
// only exports and long lists are sent while they are read.
//
//	*http.Request ─> Decoder[T] ─> T ─> Operation ─> Response ─> WriteJSON, or Export.Stream
//	                  │                    │
//	                  └──── error ─────────┴──> WriteError (problem.FromError)
//
// A Decoder reads queries (query.go) and bodies (decode.go) into the structs of schemas/body by the rules of their tags. A request
// that cannot be read at all, or lacks something required, is refusal.RequestMalformed. Broken rules are problem.Violations, all of
// them at once. A body is scanned once (jsonScanner), straight into its struct.
//
// The scanner is our own. encoding/json stops at the first fault and does not report where it is. go-json-experiment's jsontext is
// as strict, but limits neither the members of an object nor the depth below 10,000, and hands out tokens where this scanner
// interns names and decodes straight into structs.
package kit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"

	"lieudit/http/problem"
	"lieudit/queries/worker"
	"lieudit/schemas/body/shape"
	"lieudit/schemas/refusal"
)

// Decoder decodes requests into T, a struct of schemas/body. It is safe for concurrent use.
type Decoder[T any] struct {
	shape    *shape.Shape
	shapeErr error // T's tags are wrong; every decoding returns it
}

// NewDecoder returns the decoder of T. It reads the tags of T by reflection, so call it once for each endpoint.
func NewDecoder[T any]() Decoder[T] {
	s, err := shape.FromType(reflect.TypeFor[T]())
	return Decoder[T]{s, err}
}

// DecodeBody decodes the body of a request. An empty body is read as {}. A body over the limit of its reader is refusal.BodyTooLarge;
// a refusal by the reader is returned unchanged. Parameters in the query break a rule each.
func (d Decoder[T]) DecodeBody(r *http.Request) (T, error) { return d.DecodeAndInspectBody(r, nil) }

// DecodeAndInspectBody is like DecodeBody, and also passes the text of the body to inspect, after it has been read and before it is
// decoded. inspect may be nil. It must not keep the text.
//
// A large body takes turns at a worker (queries/worker), if the context of the request has a Task. The caller must release the worker.
//
// If body and query are both wrong, one error is returned: a malformed request takes precedence over broken rules, then the body over
// the query.
func (d Decoder[T]) DecodeAndInspectBody(r *http.Request, inspect func(text []byte)) (T, error) {
	text, err := readAll(r.Body, r.ContentLength)
	if err != nil {
		var zero T
		return zero, bodyReadProblem(err)
	}
	if inspect != nil {
		inspect(text)
	}
	keepBody(r, text)
	v, err := d.decodeText(text, func(scanned int) error { return worker.Yield(r.Context(), time.Duration(scanned)*byteWork) })
	queryErr := rejectQuery(r.URL.RawQuery)
	if isBadRequest(queryErr) && !isBadRequest(err) {
		return v, queryErr
	}
	return v, cmp.Or(err, queryErr)
}

// byteWork is about how long it takes to decode a byte.
const byteWork = 20 * time.Nanosecond

// initialBodyBuffer is how many bytes are allocated at most for a body before its first byte has arrived.
const initialBodyBuffer = 64 << 10

// readAll reads a body to its end. The declared length is allocated once the first bytes have arrived: by then the body is within its
// limit and holds its share of the budget.
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

// rejectQuery returns the broken rules of a query in which no parameter is allowed: each parameter breaks one.
func rejectQuery(raw string) error {
	var nothing struct{}
	return decodeRawQuery(raw, strictQuery, &shape.Shape{Kind: shape.Object}, reflect.ValueOf(&nothing).Elem())
}

func isBadRequest(err error) bool { return errors.Is(err, refusal.RequestMalformed) }

// bodyReadProblem returns the answer to a body that did not arrive whole, or was not admitted. A read error that package problem does
// not know means that the client broke off, or sent wrong chunks: the request is malformed.
func bodyReadProblem(err error) error {
	if p, known := problem.FromError(err); known {
		return p
	}
	return refusal.RequestMalformed
}

// DecodeText decodes the text of a body. Its error is refusal.RequestMalformed or problem.Violations; any other error means that the
// tags of T are wrong.
func (d Decoder[T]) DecodeText(text []byte) (T, error) { return d.decodeText(text, nil) }

// decodeText is DecodeText in turns: giveWay is called with the number of bytes read since the last call. Its error ends the decoding.
func (d Decoder[T]) decodeText(text []byte, giveWay func(scanned int) error) (T, error) {
	var v T
	if d.shapeErr != nil {
		return v, d.shapeErr
	}
	return v, decodeBodyText(text, d.shape, reflect.ValueOf(&v).Elem(), giveWay)
}

// DecodeQuery decodes the query of a request. Items of a list are repeated parameters or separated by commas. An empty optional
// parameter counts as absent. If it must be one of a set of words or match a pattern, and has no default, it breaks that rule instead.
func (d Decoder[T]) DecodeQuery(r *http.Request) (T, error) {
	return d.decodeRawQuery(r.URL.RawQuery, strictQuery)
}

// DecodeRepeatedQuery is DecodeQuery, but does not split a list of texts at commas: its items are repeated parameters.
func (d Decoder[T]) DecodeRepeatedQuery(r *http.Request) (T, error) {
	return d.decodeRawQuery(r.URL.RawQuery, repeatedQuery)
}

// DecodeOpenQuery is DecodeQuery, but ignores parameters that T does not declare.
func (d Decoder[T]) DecodeOpenQuery(r *http.Request) (T, error) {
	return d.decodeRawQuery(r.URL.RawQuery, openQuery)
}

func (d Decoder[T]) decodeRawQuery(raw string, mode paramMode) (T, error) {
	var v T
	if d.shapeErr != nil {
		return v, d.shapeErr
	}
	return v, decodeRawQuery(raw, mode, d.shape, reflect.ValueOf(&v).Elem())
}

// DecodeForm decodes the fields of a form that was sent as a body. It ignores fields that T does not declare. Items of a list are
// repeated fields: a comma may be part of an item.
func (d Decoder[T]) DecodeForm(fields url.Values) (T, error) {
	var v T
	if d.shapeErr != nil {
		return v, d.shapeErr
	}
	return v, decodeParams(fields, len(fields.Encode()) > maxEchoedInput, openForm, d.shape, reflect.ValueOf(&v).Elem())
}

// byteOrderMark is written before a text by some editors. It is skipped.
var byteOrderMark = []byte("\ufeff")

// maxEchoedInput is the size in bytes up to which a violation echoes an object. From a larger object it echoes only the member that
// breaks the rule, so that problem.MaxViolations violations of a large body do not each repeat that body in the answer.
const maxEchoedInput = 4 << 10

// decodeBodyText decodes the text of a body into a struct. Its error is refusal.RequestMalformed, all broken rules, or that of
// giveWay.
func decodeBodyText(text []byte, s *shape.Shape, into reflect.Value, giveWay func(scanned int) error) error {
	text = bytes.TrimPrefix(text, byteOrderMark)
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}")
	}
	d := bodyDecoder{jsonScanner: jsonScanner{text: text, giveWay: giveWay}, loc: []any{"body"}}
	if !utf8.Valid(text) || d.peekByte() != '{' {
		return refusal.RequestMalformed
	}
	// Nothing may follow the object. peekByte returns 0 for a NUL byte too, so pos must have reached the end.
	err := d.decodeObject(s, into)
	if d.turnErr != nil {
		return d.turnErr
	}
	if err != nil || d.peekByte() != 0 || d.pos < len(text) || d.isMalformed {
		return refusal.RequestMalformed
	}
	if len(d.violations) > 0 {
		return problem.Violations(d.violations...)
	}
	return nil
}

// bodyDecoder decodes a body in one pass. It continues after a broken rule, to find all of them and to check that the rest is JSON. So
// a broken rule is not an error: addViolation collects it. Its methods fail only if the text is not JSON, which ends the pass. It
// serves one body.
type bodyDecoder struct {
	jsonScanner
	loc         []any // of the value that is decoded now: "body", then names and indexes
	violations  []problem.Violation
	siblings    rawMembers // the members read so far of the objects around that value, the outermost first
	isMalformed bool       // something required is missing at the top
}

// addViolation records a broken rule of the value that is being decoded, or of its member or item that below names. For noViolation it
// does nothing. attachInput sets the input of the violation once the object around it has been read.
func (d *bodyDecoder) addViolation(f violation, below ...any) {
	if f != noViolation && len(d.violations) < problem.MaxViolations {
		d.violations = append(d.violations, problem.Violation{Type: f.rule, Loc: slices.Concat(d.loc, below), Msg: f.msg})
	}
}

// decodeValue decodes the next value. A value whose type is not that of its shape breaks a rule and is skipped. The first field of a
// Nullable records that it was given; the second holds its value, nil for null.
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
	case s.Text != nil && c == '"':
		return d.decodeTextForm(s, into)
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

// isTextKind reports whether values of a kind are strings in JSON.
func isTextKind(k shape.Kind) bool {
	return k == shape.Text || k == shape.Date || k == shape.Instant
}

func isNumberKind(k shape.Kind) bool { return k == shape.Integer || k == shape.Number }

// allocatePointee sets a pointer to a new value, and returns that value.
func allocatePointee(pointer reflect.Value) reflect.Value {
	pointer.Set(reflect.New(pointer.Type().Elem()))
	return pointer.Elem()
}

// decodeString decodes the next string. If the length is a matter of syntax, a wrong length makes the request malformed.
func (d *bodyDecoder) decodeString(s *shape.Shape, into reflect.Value) error {
	text, err := d.scanString()
	if err != nil {
		return err
	}
	d.addViolation(setText(s, text, into))
	d.isMalformed = d.isMalformed || isLengthMalformed(s, text)
	return nil
}

// decodeTextForm decodes the next string as the text that stands for an object.
func (d *bodyDecoder) decodeTextForm(s *shape.Shape, into reflect.Value) error {
	text, err := d.scanString()
	if err != nil {
		return err
	}
	d.addViolation(setTextForm(s, text, into))
	d.isMalformed = d.isMalformed || isLengthMalformed(s, text)
	return nil
}

// decodeFreeJSON keeps the text of the next value unchanged. The value may be of any kind, but must be an object if the shape limits
// the number of members. A field that is not a json.RawMessage, such as shape.Ignored, keeps nothing: its value is only checked to be
// JSON.
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

// decodeAt decodes the value of a member or an item.
func (d *bodyDecoder) decodeAt(segment any, s *shape.Shape, into reflect.Value) error {
	d.loc = append(d.loc, segment)
	err := d.decodeValue(s, into)
	d.loc = d.loc[:len(d.loc)-1]
	return err
}

// decodeObject decodes the next object. Rules over several fields are checked only if no field breaks a rule of its own. Violations
// get their input from the innermost object around them, because that object is finished first.
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
		checkRules(into.Addr().Interface(), d.addViolation)
	}
	d.attachInput(d.violations[violationsBefore:], d.siblings[firstSibling:], d.text[start:d.pos])
	return nil
}

// checkRules adds the rules that a struct breaks and that no tag can express. v is a pointer to the struct.
func checkRules(v any, add func(f violation, below ...any)) {
	if p, ok := v.(shape.MemberChecker); ok {
		for _, f := range p.MemberFaults() {
			add(valueViolation(f.Rule), f.Member)
		}
	}
	if c, ok := v.(shape.RuleChecker); ok {
		for _, rule := range c.BrokenRules() {
			add(valueViolation(rule))
		}
	}
}

// decodeMember decodes the value of one member. A member that is not declared breaks a rule; its value must still be JSON.
func (d *bodyDecoder) decodeMember(s *shape.Shape, name string, into reflect.Value) error {
	if f, ok := s.Field(name); ok {
		return d.decodeAt(f.Name, f.Shape, into.FieldByIndex(f.Index))
	}
	d.addViolation(fieldNotDeclared, name)
	return d.skipValue()
}

// fillAbsentMembers sets absent members to their defaults. A missing required member makes the request malformed at the top level, and
// breaks a rule further down.
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
		d.addViolation(fieldMissing, f.Name)
	}
}

// attachInput sets the input of the violations that have none yet: the object that holds the member or, if the object is large, only
// the member. members are those of object.
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

// decodeList decodes the next list. Items beyond the maximum are counted for the message of the violation and skipped, so that a long
// list costs no memory.
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

// listItem is an item of a list that was read, with its text as it was sent.
type listItem struct {
	index int
	value reflect.Value
	text  []byte
}

// checkUnique records a violation if the item, or its member s.Unique, equals that of an earlier item. It adds the value to seen,
// which holds those of the earlier items.
func (d *bodyDecoder) checkUnique(s *shape.Shape, seen map[string]bool, item listItem) {
	loc, key := []any{item.index}, item.value
	if f, ok := s.Item.Field(s.Unique); ok {
		loc, key = append(loc, f.Name), item.value.FieldByIndex(f.Index)
	}
	text := key.String()
	if text == "" { // which breaks another rule
		return
	}
	if !seen[text] {
		seen[text] = true
		return
	}
	violationsBefore := len(d.violations)
	d.addViolation(valueRepeated, loc...)
	if len(loc) > 1 { // the input is the item, otherwise the object around the list
		d.attachInput(d.violations[violationsBefore:], rawMembers{{s.Unique, quoteJSON(text)}}, item.text)
	}
}

// rawMember is a member of an object as it was sent.
type rawMember struct {
	name string
	text json.RawMessage
}

// rawMembers are the members of an object, in the order sent.
type rawMembers []rawMember

// find returns the text of a member, or nil if it was not sent.
func (m rawMembers) find(name string) json.RawMessage {
	for i := range m {
		if m[i].name == name {
			return m[i].text
		}
	}
	return nil
}

// smallMemberAt returns an object with only the member that loc names at a depth. It is empty if there is no such member or if the
// member is large.
func (m rawMembers) smallMemberAt(loc []any, depth int) map[string]json.RawMessage {
	found := make(map[string]json.RawMessage)
	if depth >= len(loc) {
		return found
	}
	if name, ok := loc[depth].(string); ok {
		if text := m.find(name); text != nil && len(text) <= maxEchoedInput {
			found[name] = text
		}
	}
	return found
}

func quoteJSON(text string) json.RawMessage {
	encoded, _ := json.Marshal(text) // a string always encodes
	return encoded
}
