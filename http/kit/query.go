package kit

import (
	"encoding"
	"iter"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"lieudit/http/problem"
	"lieudit/schemas/body/shape"
	"lieudit/schemas/refusal"
)

// paramMode is how the parameters of one kind of request are decoded.
type paramMode struct {
	part             string // of the request: the first element of loc
	ignoreUndeclared bool   // skip parameters that the struct does not declare; otherwise each breaks a rule
	keepCommas       bool   // a value is one item of a list if items may hold commas; otherwise it is a comma-separated list
}

var (
	strictQuery   = paramMode{part: "query"}
	repeatedQuery = paramMode{part: "query", keepCommas: true}
	openQuery     = paramMode{part: "query", ignoreUndeclared: true}
	openForm      = paramMode{part: "body", ignoreUndeclared: true, keepCommas: true}
)

// decodeRawQuery decodes the text of a query into a struct, as decodeParams does.
func decodeRawQuery(raw string, mode paramMode, s *shape.Shape, into reflect.Value) error {
	params, err := url.ParseQuery(raw)
	if err != nil {
		return refusal.RequestMalformed
	}
	return decodeParams(params, len(raw) > maxEchoedInput, mode, s, into)
}

// decodeParams decodes parameters into a struct. Its error is refusal.RequestMalformed, or all broken rules. As in a JSON body, rules over
// several fields are checked only if no field breaks a rule of its own. If the parameters are large, a violation echoes only one of them.
func decodeParams(params url.Values, isLarge bool, mode paramMode, s *shape.Shape, into reflect.Value) error {
	if !isValidUTF8(params) {
		return refusal.RequestMalformed
	}
	q := queryDecoder{params: params, paramMode: mode, isLarge: isLarge}
	for i := range s.Fields {
		if err := q.decodeField(&s.Fields[i], into.FieldByIndex(s.Fields[i].Index)); err != nil {
			return err
		}
	}
	if !mode.ignoreUndeclared {
		q.rejectUndeclared(s)
	}
	if len(q.violations) == 0 {
		checkRules(into.Addr().Interface(), q.addViolation)
	}
	if len(q.violations) > 0 {
		return problem.Violations(q.violations...)
	}
	return nil
}

// isValidUTF8 reports whether all names and values of a query are valid UTF-8, which JSON answers can echo.
func isValidUTF8(params url.Values) bool {
	for name, values := range params {
		if !utf8.ValidString(name) || slices.ContainsFunc(values, func(v string) bool { return !utf8.ValidString(v) }) {
			return false
		}
	}
	return true
}

// paramsAsObject returns the named parameters as an object: each is a string, or a list if it was repeated.
func paramsAsObject(params url.Values, names iter.Seq[string]) map[string]any {
	all := make(map[string]any)
	for name := range names {
		switch values := params[name]; len(values) {
		case 0:
		case 1:
			all[name] = values[0]
		default:
			all[name] = values
		}
	}
	return all
}

// queryDecoder decodes parameters into a struct. It continues after a broken rule, to find all of them. It serves one query.
type queryDecoder struct {
	params url.Values
	paramMode
	isLarge    bool // too large to be echoed whole
	violations []problem.Violation
}

// addViolation records a broken rule of the parameter that loc names, or of an item of it.
func (q *queryDecoder) addViolation(f violation, loc ...any) {
	if f == noViolation {
		return
	}
	q.violations = append(q.violations, problem.Violation{
		Type: f.rule, Loc: append([]any{q.part}, loc...), Msg: f.msg, Input: echoParams(q.params, q.isLarge, loc),
	})
}

// decodeField decodes one parameter. Its error is refusal.RequestMalformed. An empty value counts as absent, unless the parameter is a text
// with a fixed form and no default: an empty code in a filter does not mean everything. A parameter that is not a list but has several
// values breaks the rule of its type.
func (q *queryDecoder) decodeField(f *shape.Field, into reflect.Value) error {
	sent := q.params[f.Name]
	values := slices.DeleteFunc(slices.Clone(sent), func(v string) bool { return v == "" })
	switch {
	case len(values) == 0 && f.Required:
		return refusal.RequestMalformed
	case len(values) == 0 && len(sent) > 0 && !q.ignoreUndeclared && f.Default == "" && hasFixedForm(f.Shape):
		q.addViolation(checkEnumAndPattern(f.Shape, ""), f.Name)
		return nil
	case len(values) == 0:
		setDefault(f, into)
		return nil
	case f.Kind == shape.List:
		q.decodeList(f, values, into)
		return nil
	case len(values) > 1 && f.Kind == shape.Object:
		q.addViolation(notString, f.Name)
		return nil
	case len(values) > 1:
		q.addViolation(typeViolation(f.Kind), f.Name)
		return nil
	}
	if isLengthMalformed(f.Shape, values[0]) {
		return refusal.RequestMalformed
	}
	if f.Pointer {
		into = allocatePointee(into)
	}
	q.addViolation(parseParam(f.Shape, values[0], into), f.Name)
	return nil
}

// hasFixedForm reports whether a text must be one of a set of words or match a pattern.
func hasFixedForm(s *shape.Shape) bool {
	return s.Kind == shape.Text && (len(s.Enum) > 0 || s.Pattern != nil)
}

// mayHoldComma reports whether an item of a list may hold a comma: a number or a word of a set does not.
func mayHoldComma(item *shape.Shape) bool {
	return item.Kind != shape.Integer && item.Kind != shape.Number && len(item.Enum) == 0
}

// decodeList splits the values at commas, unless the mode keeps them and items may hold them, and skips empty items. A list of the wrong
// length has no other violation.
func (q *queryDecoder) decodeList(f *shape.Field, values []string, into reflect.Value) {
	items := values
	if !q.keepCommas || !mayHoldComma(f.Item) {
		items = strings.FieldsFunc(strings.Join(values, ","), func(r rune) bool { return r == ',' })
	}
	if broken := checkLength(f.Shape, len(items)); broken != noViolation {
		q.addViolation(broken, f.Name)
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(items), len(items)))
	for i, item := range items {
		q.addViolation(parseParam(f.Item, item, into.Index(i)), f.Name, i)
	}
}

// rejectUndeclared records a violation for each parameter that the struct does not declare, in the order of their names.
func (q *queryDecoder) rejectUndeclared(s *shape.Shape) {
	var names []string
	for name := range q.params {
		if _, ok := s.Field(name); !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names[:min(len(names), problem.MaxViolations)] {
		q.addViolation(fieldNotDeclared, name)
	}
}

// parseParam parses the text of a parameter as the kind of its shape and sets a field to it, or returns the rule that it breaks.
// Numbers have the form of JSON numbers.
func parseParam(s *shape.Shape, text string, into reflect.Value) violation {
	switch s.Kind {
	case shape.Object:
		return setTextForm(s, text, into)
	case shape.Integer, shape.Number:
		if numberLength([]byte(text)) != len(text) {
			return parseViolation(s.Kind)
		}
		return setNumber(s, text, into)
	case shape.Boolean:
		if text != "true" && text != "false" && text != "1" && text != "0" {
			return notBoolean
		}
		into.SetBool(text == "true" || text == "1")
		return noViolation
	default:
		return setText(s, text, into)
	}
}

// parseViolation returns the violation of a parameter that is not a number. Its message differs from that of typeViolation, because in a
// query everything is text.
func parseViolation(k shape.Kind) violation {
	if k == shape.Integer {
		return notInteger
	}
	return notNumber
}

// maxExactInteger is the largest integer up to which a float64 represents all integers.
const maxExactInteger = 1 << 53

// setText sets a field to a text, or returns the rule that the text breaks.
func setText(s *shape.Shape, text string, into reflect.Value) violation {
	switch s.Kind {
	case shape.Date:
		if err := into.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
			return invalidDate
		}
		return noViolation
	case shape.Instant:
		t, err := time.Parse(time.RFC3339, text)
		if err != nil || t.IsZero() { // the zero instant means that no instant was sent
			return invalidDateTime
		}
		into.Set(reflect.ValueOf(t))
		return noViolation
	}
	if strings.IndexByte(text, 0) >= 0 {
		return nulCharacter
	}
	if f := checkLength(s, utf8.RuneCountInString(text)); f != noViolation {
		return f
	}
	into.SetString(text)
	return checkEnumAndPattern(s, text)
}

// setTextForm sets an object from the text that stands for it, or returns the rule that the text breaks.
func setTextForm(s *shape.Shape, text string, into reflect.Value) violation {
	var plain string
	if f := setText(s.Text, text, reflect.ValueOf(&plain).Elem()); f != noViolation {
		return f
	}
	if err := into.Addr().Interface().(shape.TextForm).SetText(plain); err != nil {
		return valueViolation(err.Error())
	}
	return noViolation
}

// isLengthMalformed reports whether a text has a length that makes its request malformed.
func isLengthMalformed(s *shape.Shape, text string) bool {
	bounds := s
	if s.Text != nil {
		bounds = s.Text
	}
	return s.LengthIsSyntax && checkLength(bounds, utf8.RuneCountInString(text)) != noViolation
}

// setDefault sets a field that was not sent to its default, if it has one. A default is a literal in a tag, so it is not checked against
// the rules of its field. A list cannot have a default.
func setDefault(f *shape.Field, into reflect.Value) {
	if f.Default == "" {
		return
	}
	if f.Pointer {
		into = allocatePointee(into)
	}
	parseParam(f.Shape, f.Default, into)
}

// setNumber sets a field to a JSON number, or returns the rule that the number breaks. An integer may be written as 1.0 or 1e3. In that
// form it goes through a float64, so it must not exceed maxExactInteger. No integer may exceed an int64.
func setNumber(s *shape.Shape, text string, into reflect.Value) violation {
	n, err := strconv.ParseFloat(text, 64)
	if s.Kind == shape.Number {
		if f := checkBounds(s, n); f != noViolation || err != nil {
			return f
		}
		into.SetFloat(n)
		return noViolation
	}
	i, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		if n != math.Trunc(n) {
			return fractionalInteger
		}
		if math.Abs(n) > maxExactInteger {
			return integerTooLarge
		}
		i = int64(n)
	}
	if f := checkBounds(s, float64(i)); f != noViolation {
		return f
	}
	if into.CanUint() {
		if i < 0 {
			return integerTooLarge
		}
		into.SetUint(uint64(i))
		return noViolation
	}
	into.SetInt(i)
	return noViolation
}
