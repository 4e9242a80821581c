// Package shape reads the tags of a body struct. Its constraint: both the decoder of requests (http/kit) and the JSON Schema of
// the OpenAPI documents are made of one Shape, so they cannot disagree. FromType turns a Go type into a Shape, once for each
// type; Shape.Schema turns that into JSON Schema.
//
// The tags of a field:
//
//	json      its name, and that it may be left out (omitempty, omitzero)
//	min, max  bounds of a number, of the characters of a text, or of the length of a list
//	pattern   a regular expression for a text, or for each text of a list
//	enum      the texts that are allowed, separated by spaces
//	default   the value of a field that is left out; not for a list
//	syntax    "true": a text of the wrong length makes the request malformed, that of a TextForm too
//	each      "1 64": bounds of the characters of each text of a list
//	unique    "items", or the name of a member: no two items of a list are the same
//	members   free JSON is an object of at most n members
//	bytes     free JSON has at most n bytes
//	form      free JSON is an object of this name, which the OpenAPI documents declare next to the operations
//	items     a list of free JSON holds values of these types of JSON alone
//	doc       its description in the OpenAPI document
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

	"github.com/google/jsonschema-go/jsonschema"
)

// Kind is the type of a value in JSON.
type Kind uint8

// The kinds. Any is free JSON: a value of any type, or an object of any members.
const (
	Any Kind = iota
	Object
	List
	Text
	Date    // a text that the Go type parses, such as 2026-11-21
	Instant // a text of RFC 3339
	Integer
	Number
	Boolean
)

// Shape is the type and the rules of a value. It must not be changed after FromType returned it, so it is safe for concurrent use.
type Shape struct {
	Kind     Kind
	GoType   reflect.Type
	Pointer  bool    // the Go value is behind a pointer
	Nullable bool    // null is allowed; the Go value is a Nullable
	Fields   []Field // of an Object, in the order of the struct
	Item     *Shape  // of a List
	Text     *Shape  // of an Object that is a TextForm: the text that may stand for it; otherwise nil
	Rules
}

// Rules are the rules of one value, from the tags of its field. Min and Max are nil where there is no bound; what they bound
// depends on the Kind.
type Rules struct {
	Min, Max       *float64
	Pattern        *regexp.Regexp
	Enum           []string
	Default        string
	LengthIsSyntax bool     // a text of the wrong length makes the request malformed
	Unique         string   // of a List: the member that no two objects share, or UniqueItems; empty: no such rule
	MaxMembers     int      // of Any: it is an object of at most this many; 0: no such rule
	MaxBytes       int      // of Any: its text has at most this many bytes; 0: no such rule
	Form           string   // of Any: the name of the object that it is; the decoder does not read it
	Types          []string // of Any: the types of JSON that it may have; nil: all
}

// UniqueItems as the value of Unique means that no two texts of a list are the same.
const UniqueItems = "items"

// Ignored is a member that a body may carry, of any type, and that is not read.
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

// FromType is the shape of a Go type. It fails for a type that no body can have, and for a tag that is not a rule. The order of the
// cases matters: time.Time and Nullable are structs, and time.Time is a TextUnmarshaler too. A type must not contain
// itself.
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
		s.Kind, s.Text = Object, textForm(t)
		s.Fields, err = structFields(t)
	case t.Kind() == reflect.Slice:
		s.Kind = List
		s.Item, err = FromType(t.Elem())
	default:
		s.Kind, err = scalarKind(t)
	}
	return s, err
}

// shapeOfElem is the shape of the type behind a pointer or inside a Nullable, after adjust has marked it as such.
func shapeOfElem(t reflect.Type, adjust func(*Shape)) (*Shape, error) {
	s, err := FromType(t)
	if err == nil {
		adjust(s)
	}
	return s, err
}

// textForm is the shape of the text that may stand for an object of a type; nil: none may.
func textForm(t reflect.Type) *Shape {
	form, ok := reflect.New(t).Interface().(TextForm)
	if !ok {
		return nil
	}
	s := &Shape{Kind: Text, GoType: reflect.TypeFor[string]()}
	if shortest, longest := form.TextLength(); longest > 0 {
		least, most := float64(shortest), float64(longest)
		s.Min, s.Max = &least, &most
	}
	return s
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

// structFields are the members of an object. Fields of embedded structs are members of the object itself, as in encoding/json.
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

// structField is the member of one field. It is required unless its json tag has an option such as omitempty.
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

// readRules reads the rules of a tag. Rules of the texts of a list (each, enum, pattern) go to its Item.
func (s *Shape) readRules(tag reflect.StructTag) (err error) {
	if s.Min, err = parseNumber(tag.Get("min")); err != nil {
		return err
	}
	if s.Max, err = parseNumber(tag.Get("max")); err != nil {
		return err
	}
	s.Form = tag.Get("form")
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
		text.Types = strings.Fields(tag.Get("items"))
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

// readLengths reads the least and the most characters of a text.
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

// TextForm is an object inside a body in whose place a text may stand. In a query it is always a text.
type TextForm interface {
	// SetText sets the object to what a text means. Its error is a rule that the text breaks, in a few words.
	SetText(text string) error
	// TextLength is the fewest and the most characters of a text; 0, 0: as many as there are.
	TextLength() (shortest, longest int)
}

// RuleChecker is a body, or an object inside one, with rules over several of its fields. BrokenRules returns those that its
// values break, in a few words each. It is called once each field keeps its own rules.
type RuleChecker interface{ BrokenRules() []string }

// RuleStater is a RuleChecker whose rules the OpenAPI documents state. StatedRules is called on a zero value.
type RuleStater interface{ StatedRules() []Rule }

// Rule is a rule over several members: what people read, and what breaks it. Breaks is a schema that fits the objects that break
// the rule; nil: JSON Schema cannot say it, as when a number must not exceed another.
type Rule struct {
	Text   string
	Breaks *jsonschema.Schema
}

// MemberChecker is a body, or an object inside one, with rules of single members that no tag can express. MemberFaults returns
// the members that break one. It is called once each field keeps the rules of its tags.
type MemberChecker interface{ MemberFaults() []MemberFault }

// MemberFault is a member, and the rule that it breaks in a few words.
type MemberFault struct{ Member, Rule string }

// Nullable is a field that may be left out, be null, or be a T, where the three mean different things.
type Nullable[T any] struct {
	IsGiven bool // the field was sent
	Value   *T   // nil when it was null
}

// IsZero reports whether the field was left out; encoding/json calls it for omitzero.
func (n Nullable[T]) IsZero() bool { return !n.IsGiven }

// MarshalJSON writes the value, or null.
func (n Nullable[T]) MarshalJSON() ([]byte, error) { return json.Marshal(n.Value) }

// UnmarshalJSON reads a value or null; it is not called for a field that is left out.
func (n *Nullable[T]) UnmarshalJSON(data []byte) error {
	n.IsGiven, n.Value = true, nil
	return json.Unmarshal(data, &n.Value)
}

// nullable is implemented by every Nullable.
type nullable interface{ isNullable() }

func (n Nullable[T]) isNullable() {}
