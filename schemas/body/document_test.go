package body_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"lieudit/schemas/body"
	"lieudit/schemas/body/openapi"
)

var documents = map[string]func() openapi.API{"openapi.json": body.API, "customer-area.json": body.CustomerArea}

// document is the part of an OpenAPI document that can be wrong by itself.
type document struct {
	Paths map[string]map[string]struct {
		ID        string `json:"operationId"`
		Tags      []string
		Responses map[string]response
		Request   struct {
			Content map[string]struct{ Schema *jsonschema.Schema }
		} `json:"requestBody"`
		Parameters []struct{ Name, In, Description string }
	}
	Components struct {
		Schemas  map[string]*jsonschema.Schema
		Examples map[string]struct{ Value any }
	}
	resolved map[string]*jsonschema.Resolved // by the schema's text
}

type response struct {
	Content map[string]struct {
		Schema   *jsonschema.Schema
		Examples map[string]struct {
			Ref string `json:"$ref"`
		}
	}
}

func readDocument(t *testing.T, api openapi.API) (d document) {
	t.Helper()
	data, err := api.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	d.resolved = map[string]*jsonschema.Resolved{}
	return d
}

// resolve makes a schema of a document usable: its references lead to the document's own schemas.
func (d document) resolve(t *testing.T, s *jsonschema.Schema) *jsonschema.Resolved {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if known := d.resolved[string(text)]; known != nil {
		return known
	}
	defs, err := json.Marshal(d.Components.Schemas)
	if err != nil {
		t.Fatal(err)
	}
	moved := strings.ReplaceAll(`{"$defs":`+string(defs)+`,"allOf":[`+string(text)+`]}`, "#/components/schemas/", "#/$defs/")
	var all jsonschema.Schema
	if err := json.Unmarshal([]byte(moved), &all); err != nil {
		t.Fatal(err)
	}
	resolved, err := all.Resolve(nil)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	d.resolved[string(text)] = resolved
	return resolved
}

// collectReferences notes the names of all schemas that one refers to, itself or through others.
func (d document) collectReferences(t *testing.T, s *jsonschema.Schema, names map[string]bool) {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`#/components/schemas/(\w+)`).FindAllStringSubmatch(string(text), -1) {
		if !names[found[1]] {
			names[found[1]] = true
			d.collectReferences(t, d.Components.Schemas[found[1]], names)
		}
	}
}

func TestExamplesFitTheSchemaOfTheirAnswer(t *testing.T) {
	t.Parallel()
	for file, api := range documents {
		d := readDocument(t, api())
		checked := 0
		for path, operations := range d.Paths {
			for method, op := range operations {
				for status, r := range op.Responses {
					c, ok := r.Content["application/json"]
					if !ok {
						continue
					}
					schema := d.resolve(t, c.Schema)
					for name, e := range c.Examples {
						example, ok := d.Components.Examples[strings.TrimPrefix(e.Ref, "#/components/examples/")]
						if err := schema.Validate(example.Value); !ok || err != nil {
							t.Errorf("%s: %s %s %s: example %s: %v", file, method, path, status, name, err)
						}
						checked++
					}
				}
			}
		}
		if checked < 50 {
			t.Errorf("%s: %d examples", file, checked)
		}
	}
}

func TestOperationsHaveUniqueIDsAndDescribeTheirVariables(t *testing.T) {
	t.Parallel()
	for file, api := range documents {
		d := readDocument(t, api())
		seen := map[string]string{}
		for path, operations := range d.Paths {
			for method, op := range operations {
				if other, taken := seen[op.ID]; taken {
					t.Errorf("%s: %s %s and %s are both %s", file, method, path, other, op.ID)
				}
				seen[op.ID] = method + " " + path
				if len(op.Tags) != 1 {
					t.Errorf("%s: %s %s has the tags %v, want one: add its path to a tag", file, method, path, op.Tags)
				}
				for _, p := range op.Parameters {
					if p.In == "path" && p.Description == "" {
						t.Errorf("%s: %s %s does not say what {%s} is", file, method, path, p.Name)
					}
				}
				if _, ok := op.Responses["500"]; !ok {
					t.Errorf("%s: %s %s never fails", file, method, path)
				}
			}
		}
	}
}

func TestRequestsAreClosedAndAnswersOpen(t *testing.T) {
	t.Parallel()
	for file, api := range documents {
		d := readDocument(t, api())
		requests := map[string]bool{}
		for _, operations := range d.Paths {
			for _, op := range operations {
				d.collectReferences(t, op.Request.Content["application/json"].Schema, requests)
			}
		}
		for name, s := range d.Components.Schemas {
			if closed := s.AdditionalProperties != nil; closed != requests[name] {
				t.Errorf("%s: %s refuses other members: %v, want %v", file, name, closed, requests[name])
			}
		}
	}
}
