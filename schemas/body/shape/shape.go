// Package shape reads what a body struct says of itself. A field's json tag gives its name, and that it may be left
// out (omitempty, omitzero); min and max bound a number, a text's characters or a list's length; pattern and
// enum (words between spaces) bound a text, or each text of a list; default says what leaving out means; syntax
// makes breaking the rule a malformed request; each ("1 64") bounds the characters of each text of a list, unique
// ("items", or the name of a member) says that no two items of a list are the same; members and bytes make free JSON an
// object and bound it; doc says what it is. Decoder and OpenAPI schema both come from here.
package shape

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Kind is what a value is in JSON.
type Kind uint8

const (
	Any Kind = iota
	Object
	List
	Text
	Date    // a text the type itself reads, such as 2026-11-21
	Instant // a text of RFC 3339
	Integer
	Number
	Boolean
)

// Shape is the form of a value. It is read-only.
type Shape struct {
	Kind     Kind
	GoType   reflect.Type
	Pointer  bool    // the Go value is behind a pointer
	Nullable bool    // null is a value; the Go value is a Nullable
	Fields   []Field // of an Object; none: any members
	Item     *Shape  // of a List
	Rules
}

// Rules bound a value.
type Rules struct {
	Min, Max       *float64
	Pattern        *regexp.Regexp
	Enum           []string
	Default        string
	LengthIsSyntax bool   // a text of the wrong length makes the request malformed
	Unique         string // of a List: the member no two objects share, or Items; empty: no such rule
	MaxMembers     int    // of Any: it is an object of at most so many; 0: no such rule
	MaxBytes       int    // of Any: its text is at most so long; 0: no such rule
}

// UniqueItems says that no two texts of a list are the same.
const UniqueItems = "items"

// Ignored is a member that a body may carry, of whatever kind, and that is not read.
type Ignored struct{}

// Field is a member of an object.
type Field struct {
	*Shape
	Name     string
	Index    []int // of the Go struct
	Required bool
	Doc      string
}

// Field finds a member by its name.
func (s *Shape) Field(name string) (*Field, bool) {
	for i := range s.Fields {
		if s.Fields[i].Name == name {
			return &s.Fields[i], true
		}
	}
	return nil, false
}

// FromType is the shape of a Go type. It fails for a type that is no body, or a tag that is no rule.
func FromType(t reflect.Type) (*Shape, error) {
	s := &Shape{GoType: t}
	var err error
	switch {
	case t == reflect.TypeFor[time.Time]():
		s.Kind = Instant
	case t == reflect.TypeFor[json.RawMessage](), t == reflect.TypeFor[Ignored](), t.Kind() == reflect.Interface:
		s.Kind = Any
	case t.Implements(reflect.TypeFor[nullable]()):
		return shapeOfElem(t.Field(1).Type.Elem(), func(inner *Shape) { inner.Nullable, inner.GoType = true, t })
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		s.Kind = Date
	case t.Kind() == reflect.Pointer:
		return shapeOfElem(t.Elem(), func(inner *Shape) { inner.Pointer, inner.GoType = true, t })
	case t.Kind() == reflect.Struct:
		s.Kind = Object
		s.Fields, err = structFields(t)
	case t.Kind() == reflect.Slice:
		s.Kind = List
		s.Item, err = FromType(t.Elem())
	default:
		s.Kind, err = scalarKind(t)
	}
	return s, err
}

func shapeOfElem(t reflect.Type, adjust func(*Shape)) (*Shape, error) {
	s, err := FromType(t)
	if err == nil {
		adjust(s)
	}
	return s, err
}

func scalarKind(t reflect.Type) (Kind, error) {
	switch t.Kind() {
	case reflect.String:
		return Text, nil
	case reflect.Bool:
		return Boolean, nil
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return Integer, nil
	case reflect.Float64:
		return Number, nil
	default:
		return Any, fmt.Errorf("%s has no shape", t)
	}
}

func structFields(t reflect.Type) ([]Field, error) {
	var all []Field
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		field, err := structField(f)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t.Name(), f.Name, err)
		}
		all = append(all, field)
	}
	return all, nil
}

func structField(f reflect.StructField) (Field, error) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		return Field{}, fmt.Errorf("no json name")
	}
	s, err := FromType(f.Type)
	if err != nil {
		return Field{}, err
	}
	field := Field{
		Shape: s, Name: name, Index: f.Index, Required: options == "", Doc: f.Tag.Get("doc"),
	}
	return field, s.readRules(f.Tag)
}

// readRules reads the rules of a tag. Those on the texts of a list go to its items.
func (s *Shape) readRules(tag reflect.StructTag) (err error) {
	if s.Min, err = parseNumber(tag.Get("min")); err != nil {
		return err
	}
	if s.Max, err = parseNumber(tag.Get("max")); err != nil {
		return err
	}
	s.Default, s.LengthIsSyntax, s.Unique = tag.Get("default"), tag.Get("syntax") == "true", tag.Get("unique")
	if s.MaxMembers, err = parseCount(tag.Get("members")); err != nil {
		return err
	}
	if s.MaxBytes, err = parseCount(tag.Get("bytes")); err != nil {
		return err
	}
	text := s
	if s.Kind == List {
		text = s.Item
		if err := text.readLengths(tag.Get("each")); err != nil {
			return err
		}
	}
	text.Enum = strings.Fields(tag.Get("enum"))
	if p := tag.Get("pattern"); p != "" {
		text.Pattern, err = regexp.Compile(p)
	}
	return err
}

// readLengths reads the least and the most characters a text has.
func (s *Shape) readLengths(each string) (err error) {
	if each == "" {
		return nil
	}
	minimum, maximum, _ := strings.Cut(each, " ")
	if s.Min, err = parseNumber(minimum); err != nil {
		return err
	}
	s.Max, err = parseNumber(maximum)
	return err
}

func parseCount(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	return strconv.Atoi(text)
}

func parseNumber(text string) (*float64, error) {
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	return &n, err
}

// RuleChecker is a body, or an object inside one, with rules over several of its fields. Broken says which of them the
// values break, in a few words each; it is asked when each field by itself is right.
type RuleChecker interface{ BrokenRules() []string }

// MemberChecker is a body, or an object inside one, with rules that no tag says. Faulty names the members that break one, each
// with the rule in a few words; it is asked when each field by itself is right otherwise.
type MemberChecker interface{ MemberFaults() []MemberFault }

// MemberFault is a member and the rule it breaks.
type MemberFault struct{ Member, Rule string }

// Nullable is a field that may be left out, be null, or hold a T, where the three mean different things.
type Nullable[T any] struct {
	IsGiven bool // the field was there
	Value   *T   // nil when it was null
}

// IsZero says that the field was left out (for omitzero).
func (n Nullable[T]) IsZero() bool { return !n.IsGiven }

// MarshalJSON writes the value, or null.
func (n Nullable[T]) MarshalJSON() ([]byte, error) { return json.Marshal(n.Value) }

// UnmarshalJSON reads a value or null; it is not called for a field that is left out.
func (n *Nullable[T]) UnmarshalJSON(data []byte) error {
	n.IsGiven, n.Value = true, nil
	return json.Unmarshal(data, &n.Value)
}

// nullable is what every Nullable is.
type nullable interface{ isNullable() }

func (n Nullable[T]) isNullable() {}
