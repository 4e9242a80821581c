package input

import (
	"iter"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"lieudit/http/problem"
	"lieudit/schemas/body/shape"
)

func decodeQuery(raw string, s *shape.Shape, into reflect.Value) error {
	sent, err := url.ParseQuery(raw)
	if err != nil || !valid(sent) {
		return problem.BadRequest()
	}
	q := query{sent: sent, large: len(raw) > maxInput}
	for i := range s.Fields {
		if err := q.field(&s.Fields[i], into.FieldByIndex(s.Fields[i].Index)); err != nil {
			return err
		}
	}
	q.extras(s)
	if len(q.faults) == 0 {
		q.ask(into.Addr().Interface())
	}
	if len(q.faults) > 0 {
		return problem.Violations(q.faults...)
	}
	return nil
}

// ask asks a query for the rules it breaks that no tag says.
func (q *query) ask(v any) {
	if p, ok := v.(shape.Pointed); ok {
		for _, f := range p.Faulty() {
			q.fail(broken(f.Rule), f.Member)
		}
	}
	if c, ok := v.(shape.Checked); ok {
		for _, rule := range c.Broken() {
			q.fail(broken(rule))
		}
	}
}

func valid(sent url.Values) bool {
	for name, values := range sent {
		if !utf8.ValidString(name) || slices.ContainsFunc(values, func(v string) bool { return !utf8.ValidString(v) }) {
			return false
		}
	}
	return true
}

// typed is the parameters of those names as an object: a text each, or a list of those that were repeated.
func typed(sent url.Values, names iter.Seq[string]) map[string]any {
	all := make(map[string]any)
	for name := range names {
		switch values := sent[name]; len(values) {
		case 0:
		case 1:
			all[name] = values[0]
		default:
			all[name] = values
		}
	}
	return all
}

// query reads parameters into a struct.
type query struct {
	sent   url.Values
	large  bool // too large to be told whole
	faults []problem.Violation
}

func (q *query) fail(f fault, place ...any) {
	if f == none {
		return
	}
	q.faults = append(q.faults, problem.Violation{
		Type: f.kind, Loc: append([]any{"query"}, place...), Msg: f.msg, Input: q.input(place),
	})
}

// input is the query, or of a large one the parameter at a place alone, if that is small.
func (q *query) input(place []any) map[string]any {
	if !q.large {
		return typed(q.sent, maps.Keys(q.sent))
	}
	if len(place) > 0 {
		if name, ok := place[0].(string); ok && len(strings.Join(q.sent[name], ",")) <= maxInput {
			return typed(q.sent, slices.Values([]string{name}))
		}
	}
	return map[string]any{}
}

// field reads one parameter. Its error is that the request is malformed.
func (q *query) field(f *shape.Field, into reflect.Value) error {
	values := slices.DeleteFunc(slices.Clone(q.sent[f.Name]), func(v string) bool { return v == "" })
	switch {
	case len(values) == 0 && f.Required:
		return problem.BadRequest()
	case len(values) == 0:
		leftOut(f, into)
		return nil
	case f.Kind == shape.List:
		q.list(f, values, into)
		return nil
	case len(values) > 1:
		q.fail(wrongType(f.Kind), f.Name)
		return nil
	}
	if f.Syntax && length(f.Shape, utf8.RuneCountInString(values[0])) != none {
		return problem.BadRequest()
	}
	if f.Pointer {
		into = fresh(into)
	}
	q.fail(parse(f.Shape, values[0], into), f.Name)
	return nil
}

func (q *query) list(f *shape.Field, values []string, into reflect.Value) {
	items := strings.FieldsFunc(strings.Join(values, ","), func(r rune) bool { return r == ',' })
	if fault := length(f.Shape, len(items)); fault != none {
		q.fail(fault, f.Name)
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(items), len(items)))
	for i, item := range items {
		q.fail(parse(f.Item, item, into.Index(i)), f.Name, i)
	}
}

// extras notes the parameters that are not declared.
func (q *query) extras(s *shape.Shape) {
	var names []string
	for name := range q.sent {
		if _, ok := s.Field(name); !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names[:min(len(names), problem.MaxViolations)] {
		q.fail(extra, name)
	}
}

// parse reads a parameter's text as what it should be.
func parse(s *shape.Shape, text string, into reflect.Value) fault {
	switch s.Kind {
	case shape.Integer, shape.Number:
		if numberLength([]byte(text)) != len(text) {
			return unparsed(s.Kind)
		}
		return setNumber(s, text, into)
	case shape.Boolean:
		if text != "true" && text != "false" && text != "1" && text != "0" {
			return notBoolean
		}
		into.SetBool(text == "true" || text == "1")
		return none
	default:
		return setText(s, text, into)
	}
}

func unparsed(k shape.Kind) fault {
	if k == shape.Integer {
		return notInteger
	}
	return notNumber
}
