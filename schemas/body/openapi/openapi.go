// Package openapi writes an OpenAPI 3.1 document from a table of operations and the shapes of their bodies. The same
// table always gives the same bytes.
package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"lieudit/schemas/body/shape"
)

// API is what a document is about.
type API struct {
	Title, Description string
	Base               string // the path every operation's path follows
	Security           string // what the bearer token is
	Operations         []Operation
	Variables          map[string]Variable // of the paths
}

// Operation is what a method of a path does. Query, Body and Answer are zero values of structs, or nil.
type Operation struct {
	Method, Path, Summary string
	Open                  bool // no token is asked for
	Query, Body, Answer   any
	Status                int      // of success; 0 is 200
	Also                  []string // other media types the answer can have, as text
	Failures              []Failure
}

// Variable is a variable of a path.
type Variable struct{ Pattern, Doc string }

// Failure is an error answer; its body is the example, and its type the shape.
type Failure struct {
	Name   string
	Status int
	Body   any // nil: none
}

// JSON is the document.
func (a API) JSON() ([]byte, error) {
	w := &writer{schemas: map[string]*jsonschema.Schema{}, examples: map[string]example{}}
	doc := document{
		OpenAPI: "3.1.0",
		Info:    info{Title: a.Title, Description: a.Description, Version: "1"},
		Servers: []server{{URL: a.Base}},
		Paths:   map[string]map[string]operation{},
	}
	for _, op := range a.Operations {
		if doc.Paths[op.Path] == nil {
			doc.Paths[op.Path] = map[string]operation{}
		}
		made, err := w.operation(a, op)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", op.Method, op.Path, err)
		}
		doc.Paths[op.Path][strings.ToLower(op.Method)] = made
	}
	doc.Components.Schemas, doc.Components.Examples = w.schemas, w.examples
	doc.Components.Security = map[string]scheme{"bearer": {Type: "http", Scheme: "bearer", Description: a.Security}}
	return indented(doc)
}

func indented(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return out.Bytes(), err
}

// writer collects the schemas and examples that operations share.
type writer struct {
	schemas  map[string]*jsonschema.Schema
	examples map[string]example
}

func (w *writer) operation(a API, op Operation) (operation, error) {
	out := operation{
		ID: id(op), Summary: op.Summary, Responses: map[string]response{},
		Security: []map[string][]string{{"bearer": {}}},
	}
	if op.Open {
		out.Security = []map[string][]string{}
	}
	out.Parameters = variables(a, op.Path)
	if op.Query != nil {
		asked, err := w.query(op.Query)
		if err != nil {
			return out, err
		}
		out.Parameters = append(out.Parameters, asked...)
	}
	if op.Body != nil {
		s, err := w.schema(op.Body, true)
		if err != nil {
			return out, err
		}
		out.Body = &request{Required: w.demands(s), Content: media(content{Schema: s})}
	}
	return out, w.responses(op, out.Responses)
}

var notWord = regexp.MustCompile(`[^a-zA-Z0-9]+`)

// id is a name for the operation that is a name in most languages: get_accounts_id_keys.
func id(op Operation) string {
	return strings.Trim(notWord.ReplaceAllString(strings.ToLower(op.Method)+op.Path, "_"), "_")
}

var variable = regexp.MustCompile(`\{(\w+)\}`)

func variables(a API, path string) []parameter {
	var all []parameter
	for _, m := range variable.FindAllStringSubmatch(path, -1) {
		v := a.Variables[m[1]]
		all = append(all, parameter{
			Name: m[1], In: "path", Required: true, Description: v.Doc,
			Schema: &jsonschema.Schema{Type: "string", Pattern: v.Pattern},
		})
	}
	return all
}

func (w *writer) query(v any) ([]parameter, error) {
	s, err := shape.Of(reflect.TypeOf(v))
	if err != nil {
		return nil, err
	}
	var all []parameter
	for _, f := range s.Fields {
		p := parameter{Name: f.Name, In: "query", Required: f.Required, Description: f.Doc, Schema: f.Schema(shape.Style{})}
		all = append(all, p)
	}
	return all, nil
}

func (w *writer) schema(v any, closed bool) (*jsonschema.Schema, error) {
	s, err := shape.Of(reflect.TypeOf(v))
	if err != nil {
		return nil, err
	}
	return s.Schema(w.style(closed)), nil
}

const schemas = "#/components/schemas/"

// style keeps the schema of every named object under its name, once.
func (w *writer) style(closed bool) shape.Style {
	style := shape.Style{Closed: closed}
	style.Ref = func(s *shape.Shape) string {
		name := s.Struct().Name()
		if s.Kind != shape.Object || name == "" {
			return ""
		}
		if w.schemas[name] == nil {
			w.schemas[name] = &jsonschema.Schema{} // taken, should the object hold itself
			w.schemas[name] = s.Own(style)
		}
		return schemas + name
	}
	return style
}

// demands says whether a body has members that must be there.
func (w *writer) demands(s *jsonschema.Schema) bool {
	return len(w.schemas[strings.TrimPrefix(s.Ref, schemas)].Required) > 0
}

func (w *writer) responses(op Operation, into map[string]response) error {
	status := op.Status
	if status == 0 {
		status = http.StatusOK
	}
	ok := response{Description: http.StatusText(status)}
	if op.Answer != nil {
		s, err := w.schema(op.Answer, false)
		if err != nil {
			return err
		}
		ok.Content = media(content{Schema: s})
	}
	for _, other := range op.Also {
		ok.Content[other] = content{Schema: &jsonschema.Schema{Type: "string"}}
	}
	into[strconv.Itoa(status)] = ok
	return w.failures(op.Failures, into)
}

// failures puts the error answers of one status together: any of their shapes, each with its example.
func (w *writer) failures(all []Failure, into map[string]response) error {
	for _, f := range all {
		status := strconv.Itoa(f.Status)
		r, ok := into[status]
		if !ok {
			r = response{Description: http.StatusText(f.Status)}
		}
		if f.Body != nil {
			if err := w.example(&r, f); err != nil {
				return err
			}
		}
		into[status] = r
	}
	return nil
}

func (w *writer) example(r *response, f Failure) error {
	s, err := w.schema(f.Body, false)
	if err != nil {
		return err
	}
	if r.Content == nil {
		r.Content = media(content{Schema: &jsonschema.Schema{}, Examples: map[string]reference{}})
	}
	c := r.Content[mediaType]
	if !slices.ContainsFunc(c.Schema.AnyOf, func(have *jsonschema.Schema) bool { return have.Ref == s.Ref }) {
		c.Schema.AnyOf = append(c.Schema.AnyOf, s)
	}
	c.Examples[f.Name] = reference{"#/components/examples/" + f.Name}
	w.examples[f.Name] = example{f.Body}
	return nil
}
