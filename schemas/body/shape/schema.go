package shape

import (
	"encoding/json"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
)

// SchemaOptions are how shapes become schemas. The zero SchemaOptions writes every schema in place and leaves objects open.
type SchemaOptions struct {
	Ref      func(*Shape) string // the reference to use for an object, or "" to write its schema in place; nil: always ""
	IsClosed bool                // objects have no members but those declared
	IsQuery  bool                // objects that have a text form are shown as that alone
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

// typeSchema is the type of a shape with its bounds. The empty schema, which allows any value, is that of free JSON
// without a limit on its members.
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
		if s.MaxMembers > 0 {
			return &jsonschema.Schema{Type: "object", MaxProperties: &s.MaxMembers}
		}
		return &jsonschema.Schema{}
	}
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

// defaultJSON is the default as JSON. The tag of a number or a boolean holds it in that form already.
func (s *Shape) defaultJSON() json.RawMessage {
	if s.Kind == Text {
		text, _ := json.Marshal(s.Default) // a string always encodes
		return text
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
