package shape

import (
	"encoding/json"
	"reflect"
	"strconv"

	"github.com/google/jsonschema-go/jsonschema"
)

// SchemaOptions are how shapes become schemas. The zero SchemaOptions writes every schema in place and leaves objects open.
type SchemaOptions struct {
	Ref      func(*Shape) string             // the reference to use for an object, or "" to write its schema in place; nil: always ""
	Form     func(string) *jsonschema.Schema // the schema of free JSON with the form of that name; nil: forms are any object
	IsClosed bool                            // objects have no members but those declared
	IsQuery  bool                            // objects that have a text form are shown as that alone
}

// Schema is a shape as JSON Schema 2020-12, or a reference to one. The caller may change the result.
func (s *Shape) Schema(options SchemaOptions) *jsonschema.Schema {
	if s.Text != nil {
		return s.textFormSchema(options)
	}
	if options.Ref != nil {
		if name := options.Ref(s); name != "" && s.Nullable {
			return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Ref: name}, {Type: "null"}}}
		} else if name != "" {
			return &jsonschema.Schema{Ref: name}
		}
	}
	return s.InlineSchema(options)
}

// InlineSchema is Schema without a reference for the shape itself.
func (s *Shape) InlineSchema(options SchemaOptions) *jsonschema.Schema {
	out := s.typeSchema(options)
	if s.Nullable && out.Ref != "" {
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{out, {Type: "null"}}}
	}
	if s.Nullable && out.Type != "" { // without a type null is allowed already
		out.Types, out.Type = []string{"null", out.Type}, ""
	}
	if s.Default != "" {
		out.Default = s.defaultJSON()
	}
	for _, word := range s.Enum {
		out.Enum = append(out.Enum, word)
	}
	if s.Pattern != nil {
		out.Pattern = s.Pattern.String()
	}
	return out
}

// textFormSchema is the schema of an object in whose place a text may stand: either of the two.
func (s *Shape) textFormSchema(options SchemaOptions) *jsonschema.Schema {
	text := s.Text.Schema(options)
	if options.IsQuery {
		return text
	}
	object := *s
	object.Text = nil
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{text, object.Schema(options)}}
}

// typeSchema is the type of a shape with its bounds.
func (s *Shape) typeSchema(options SchemaOptions) *jsonschema.Schema {
	switch s.Kind {
	case Object:
		return s.objectSchema(options)
	case List:
		return &jsonschema.Schema{
			Type: "array", Items: s.Item.Schema(options), MinItems: intOf(s.Min), MaxItems: intOf(s.Max), UniqueItems: s.Unique == UniqueItems,
		}
	case Text:
		return &jsonschema.Schema{Type: "string", MinLength: intOf(s.Min), MaxLength: intOf(s.Max)}
	case Date:
		return &jsonschema.Schema{Type: "string", Format: "date"}
	case Instant:
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case Integer:
		return &jsonschema.Schema{Type: "integer", Minimum: s.Min, Maximum: s.Max}
	case Number:
		return &jsonschema.Schema{Type: "number", Minimum: s.Min, Maximum: s.Max}
	case Boolean:
		return &jsonschema.Schema{Type: "boolean"}
	default:
		return s.freeSchema(options)
	}
}

// freeSchema is the schema of free JSON. The empty schema, which allows any value, is that of free JSON without a rule.
func (s *Shape) freeSchema(options SchemaOptions) *jsonschema.Schema {
	switch {
	case s.Form != "" && options.Form != nil:
		return options.Form(s.Form)
	case s.MaxMembers > 0:
		return &jsonschema.Schema{
			Type: "object", MaxProperties: &s.MaxMembers,
			AdditionalProperties: &jsonschema.Schema{Description: "Of any type"}, // without it generators make objects that hold nothing
		}
	case s.Form != "":
		return &jsonschema.Schema{Type: "object"}
	}
	out := &jsonschema.Schema{}
	for _, name := range s.Types {
		out.AnyOf = append(out.AnyOf, &jsonschema.Schema{Type: name})
	}
	return out
}

// objectSchema is the schema of an object, with its members in the order of the struct.
func (s *Shape) objectSchema(options SchemaOptions) *jsonschema.Schema {
	out := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	if options.IsClosed {
		out.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}} // written as false
	}
	for _, f := range s.Fields {
		member := f.Schema(options)
		member.Description = f.Doc
		out.Properties[f.Name] = member
		out.PropertyOrder = append(out.PropertyOrder, f.Name)
		if f.Required {
			out.Required = append(out.Required, f.Name)
		}
	}
	return out
}

// defaultJSON is the default as JSON. The tag of a number holds it in that form already; that of a boolean is 1 or 0 where
// clients of the former API write it so.
func (s *Shape) defaultJSON() json.RawMessage {
	switch s.Kind {
	case Text:
		text, _ := json.Marshal(s.Default) // a string always encodes
		return text
	case Boolean:
		isTrue, _ := strconv.ParseBool(s.Default) // the tests of the documents see one that is neither
		return json.RawMessage(strconv.FormatBool(isTrue))
	}
	return json.RawMessage(s.Default)
}

func intOf(n *float64) *int {
	if n == nil {
		return nil
	}
	i := int(*n)
	return &i
}

// StructType is the Go struct of an object, behind its pointers and its Nullable.
func (s *Shape) StructType() reflect.Type {
	t := s.GoType
	if s.Nullable {
		t = t.Field(1).Type
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
