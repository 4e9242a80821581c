package openapi

import (
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// downgrade turns a document of OpenAPI 3.1 into one of 3.0.3 that says the same. The schemas of 3.0 know no type null, and no
// words next to a reference.
func downgrade(doc *document) {
	doc.OpenAPI = "3.0.3"
	for _, s := range doc.Components.Schemas {
		downgradeSchema(s)
	}
	for _, operations := range doc.Paths {
		for _, op := range operations {
			downgradeOperation(op)
		}
	}
}

// downgradeOperation downgrades the schemas of an operation. Some are shared: to downgrade one twice changes nothing.
func downgradeOperation(op operation) {
	for _, p := range op.Parameters {
		downgradeSchema(p.Schema)
	}
	if op.Body != nil {
		downgradeContent(op.Body.Content)
	}
	for _, r := range op.Responses {
		downgradeContent(r.Content)
	}
}

func downgradeContent(all map[string]content) {
	for _, c := range all {
		downgradeSchema(c.Schema)
	}
}

// downgradeSchema downgrades a schema and those inside it, in place.
func downgradeSchema(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
		s.Extra = map[string]any{"nullable": true}
	}
	if last := len(s.AnyOf) - 1; last > 0 && s.AnyOf[last].Type == "null" {
		s.AllOf, s.AnyOf, s.Type = s.AnyOf[:last], nil, "object" // only objects are referred to
		s.Extra = map[string]any{"nullable": true}
	}
	if s.Ref != "" && s.Description != "" {
		s.AllOf, s.Ref = []*jsonschema.Schema{{Ref: s.Ref}}, ""
	}
	for _, member := range s.Properties {
		downgradeSchema(member)
	}
	for _, inner := range slices.Concat(s.AnyOf, s.AllOf, []*jsonschema.Schema{s.Items}) {
		downgradeSchema(inner)
	}
}
