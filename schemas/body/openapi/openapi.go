// Package openapi writes an OpenAPI 3.1 document from a table of operations and the shapes of their bodies. The same
// table always gives the same bytes.
package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
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
	Or                    []any    // other answers of success
	Status                int      // of success; 0 is 200
	Else                  int      // another status of success; 0: none
	Also                  []string // other media types the answer can have, as text
	Headers               []Header
	Failures              []Failure
}

// Header is a header that a request may have.
type Header struct{ Name, Pattern, Doc string }

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
	for _, h := range op.Headers {
		out.Parameters = append(out.Parameters, parameter{
			Name: h.Name, In: "header", Description: h.Doc, Schema: &jsonschema.Schema{Type: "string", Pattern: h.Pattern},
		})
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
		name := nameOf(s.Struct(), closed)
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

// nameOf is what the schema of a struct is called. Those that other packages lend to bodies have the package in their
// name, and another one where they are part of a request: there they are closed.
func nameOf(t reflect.Type, closed bool) string {
	name := t.Name()
	if name == "" || path.Base(t.PkgPath()) == "body" {
		return name
	}
	if lender := path.Base(t.PkgPath()); !strings.EqualFold(lender, name) {
		name = strings.ToUpper(lender[:1]) + lender[1:] + name
	}
	if closed {
		name += "Input"
	}
	return name
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
	ok := response{Description: http.StatusText(status), Content: map[string]content{}}
	if op.Answer != nil {
		s, err := w.answer(op)
		if err != nil {
			return err
		}
		ok.Content = media(content{Schema: s})
	}
	for _, other := range op.Also {
		ok.Content[other] = content{Schema: &jsonschema.Schema{Type: "string"}}
	}
	into[strconv.Itoa(status)] = ok
	if op.Else != 0 {
		into[strconv.Itoa(op.Else)] = response{Description: http.StatusText(op.Else), Content: ok.Content}
	}
	return w.failures(op.Failures, into)
}

// answer is the shape of success, or any of several.
func (w *writer) answer(op Operation) (*jsonschema.Schema, error) {
	s, err := w.schema(op.Answer, false)
	if err != nil || len(op.Or) == 0 {
		return s, err
	}
	all := []*jsonschema.Schema{s}
	for _, v := range op.Or {
		if s, err = w.schema(v, false); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return &jsonschema.Schema{AnyOf: all}, nil
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
