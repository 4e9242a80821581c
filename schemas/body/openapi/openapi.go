// Package openapi writes an OpenAPI document from a table of operations and the shapes of their bodies. Its constraint: the
// same table always gives the same bytes, so that the documents are golden files. API.JSON passes each Operation through a
// documentWriter, which collects the schemas and the examples that operations share, and encodes the document as OpenAPI 3.1.
// API.JSON30 is the same in OpenAPI 3.0.3, for generators of clients that know no other: see downgrade.
//
// getkin/kin-openapi does not serve: schemas come from google/jsonschema-go, which keeps the order of members and which the
// golden files of events use; kin-openapi would need each of them converted, and sorts their members.
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

// API is the content of a document. Path is written with its variables in braces, such as /accounts/{id}.
type API struct {
	Title, Description string
	BasePath           string // the path every operation's path follows
	Security           string // what the bearer token is
	Operations         []Operation
	Variables          map[string]Variable // of the paths
	Tags               []Tag
	Forms              map[string]any // zero values of the structs that tags of fields name by form
}

// Tag is a group of operations: those whose path begins with one of its prefixes. The first tag that fits an operation is its tag.
type Tag struct {
	Name, Doc string
	Prefixes  []string
}

// Operation is a method of a path. Doc is what its summary leaves out. Query, Body, Form and Answer are zero values of structs, from whose types the schemas are made; nil:
// it has none. Several Failures may have one status.
type Operation struct {
	Method, Path, Summary string
	Doc                   string
	IsPublic              bool // needs no token
	Query, Body, Answer   any
	Form                  any      // the body as a multipart form, in the place of Body
	OtherAnswers          []any    // other answers of success
	Status                int      // of success; 0 is 200
	OtherStatus           int      // another status of success; 0: none
	OtherMediaTypes       []string // other media types the answer can have, as text
	Collection            any      // the answer as GeoJSON; nil: it has none
	Headers               []Header
	Failures              []Failure
}

// Header is an optional header of a request.
type Header struct{ Name, Pattern, Doc string }

// Variable is a variable of a path. An empty Pattern allows any text.
type Variable struct{ Pattern, Doc string }

// Failure is an error answer. Its Body is shown as the example of that name, and the type of Body gives the schema. A name stands
// for the same Body in every operation.
type Failure struct {
	Name   string
	Status int
	Body   any // nil: none
}

// JSON is the document, indented, with a newline at the end. It fails for a struct that has no shape: see shape.FromType.
func (a API) JSON() ([]byte, error) {
	doc, err := a.document()
	if err != nil {
		return nil, err
	}
	return encodeIndented(doc)
}

// JSON30 is JSON in OpenAPI 3.0.3. Both documents say the same.
func (a API) JSON30() ([]byte, error) {
	doc, err := a.document()
	if err != nil {
		return nil, err
	}
	downgrade(doc)
	return encodeIndented(doc)
}

// document is the document in OpenAPI 3.1.
func (a API) document() (*document, error) {
	w := &documentWriter{forms: a.Forms, schemas: map[string]*jsonschema.Schema{}, examples: map[string]example{}}
	doc := &document{
		OpenAPI: "3.1.0",
		Info: info{
			Title: a.Title, Description: a.Description, Version: "1", Contact: contact{"lieudit"},
			License: license{"Apache 2.0", "https://www.apache.org/licenses/LICENSE-2.0"},
		},
		Servers: []server{{URL: a.BasePath}},
		Paths:   map[string]map[string]operation{},
	}
	for _, t := range a.Tags {
		doc.Tags = append(doc.Tags, tag{t.Name, t.Doc})
	}
	for _, op := range a.Operations {
		if doc.Paths[op.Path] == nil {
			doc.Paths[op.Path] = map[string]operation{}
		}
		built, err := w.writeOperation(a, op)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", op.Method, op.Path, err)
		}
		doc.Paths[op.Path][strings.ToLower(op.Method)] = built
	}
	doc.Components.Schemas, doc.Components.Examples = w.schemas, w.examples
	doc.Components.Security = map[string]scheme{"bearer": {Type: "http", Scheme: "bearer", Description: a.Security}}
	return doc, nil
}

// encodeIndented is v as indented JSON. It leaves HTML characters as they are, so that a person can read the document.
func encodeIndented(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return out.Bytes(), err
}

// documentWriter collects the schemas and the examples that operations share, by their names. It serves one document.
type documentWriter struct {
	forms    map[string]any
	schemas  map[string]*jsonschema.Schema
	examples map[string]example
}

// writeOperation documents one operation: path, query and header parameters, body, responses.
func (w *documentWriter) writeOperation(a API, op Operation) (operation, error) {
	out := operation{
		ID: OperationID(op), Tags: a.tagsOf(op), Summary: op.Summary, Description: op.description(), Rules: rulesOf(op.Query),
		Responses: map[string]response{}, Security: []map[string][]string{{"bearer": {}}},
	}
	if op.IsPublic {
		out.Security = []map[string][]string{}
	}
	out.Parameters = pathParameters(a, op.Path)
	if op.Query != nil {
		parameters, err := w.queryParameters(op.Query)
		if err != nil {
			return out, err
		}
		out.Parameters = append(out.Parameters, parameters...)
	}
	for _, h := range op.Headers {
		out.Parameters = append(out.Parameters, parameter{
			Name: h.Name, In: "header", Description: h.Doc, Schema: &jsonschema.Schema{Type: "string", Pattern: h.Pattern},
		})
	}
	if op.Body != nil {
		s, err := w.schemaFor(op.Body, true)
		if err != nil {
			return out, err
		}
		out.Body = &request{Required: w.hasRequiredMembers(s) || mustNotBeEmpty(op.Body), Content: jsonContent(content{Schema: s})}
	}
	if op.Form != nil {
		s, err := w.schemaFor(op.Form, false)
		if err != nil {
			return out, err
		}
		out.Body = &request{Required: true, Content: map[string]content{formMediaType: {Schema: s}}}
	}
	return out, w.writeResponses(op, out.Responses)
}

// tagsOf is the tag of an operation.
func (a API) tagsOf(op Operation) []string {
	for _, t := range a.Tags {
		if slices.ContainsFunc(t.Prefixes, func(prefix string) bool { return strings.HasPrefix(op.Path, prefix) }) {
			return []string{t.Name}
		}
	}
	return []string{}
}

// description is the summary as a sentence, what it leaves out, and the rules over several parameters or members.
func (op Operation) description() string {
	sentences := []string{op.Summary}
	if op.Doc != "" {
		sentences = append(sentences, op.Doc)
	}
	for _, r := range append(rulesOf(op.Query), rulesOf(op.Body)...) {
		sentences = append(sentences, strings.ToUpper(r.Text[:1])+r.Text[1:])
	}
	return strings.Join(sentences, ". ") + "."
}

// rulesOf are the rules that a query or a body states. Those of a body are in its schema too.
func rulesOf(request any) (all []rule) {
	if stater, ok := request.(shape.RuleStater); ok {
		for _, r := range stater.StatedRules() {
			all = append(all, rule(r))
		}
	}
	return all
}

// nonWord is what cannot be in an identifier.
var nonWord = regexp.MustCompile(`[^a-zA-Z0-9]+`)

// OperationID is a name for the operation that is an identifier in most languages: get_accounts_id_keys. Generated clients name
// their methods after it.
func OperationID(op Operation) string {
	return strings.Trim(nonWord.ReplaceAllString(strings.ToLower(op.Method)+op.Path, "_"), "_")
}

// pathVariable is a variable of a path, such as {id}.
var pathVariable = regexp.MustCompile(`\{(\w+)\}`)

// pathParameters are the variables in a path, in its order, with what the API declares of them.
func pathParameters(a API, path string) []parameter {
	var all []parameter
	for _, m := range pathVariable.FindAllStringSubmatch(path, -1) {
		v := a.Variables[m[1]]
		all = append(all, parameter{
			Name: m[1], In: "path", Required: true, Description: v.Doc,
			Schema: &jsonschema.Schema{Type: "string", Pattern: v.Pattern},
		})
	}
	return all
}

// queryParameters are the fields of the struct of a query, each with its own schema in place: no component is made of a query.
func (w *documentWriter) queryParameters(v any) ([]parameter, error) {
	s, err := shape.FromType(reflect.TypeOf(v))
	if err != nil {
		return nil, err
	}
	var all []parameter
	for _, f := range s.Fields {
		p := parameter{Name: f.Name, In: "query", Required: f.Required, Description: f.Doc, Schema: f.Schema(shape.SchemaOptions{IsQuery: true})}
		all = append(all, p)
	}
	return all, nil
}

// schemaFor is the schema of a struct. A closed one has no members but those declared: requests are closed, answers are open to
// members that come later.
func (w *documentWriter) schemaFor(v any, closed bool) (*jsonschema.Schema, error) {
	s, err := shape.FromType(reflect.TypeOf(v))
	if err != nil {
		return nil, err
	}
	return s.Schema(w.schemaOptions(closed)), nil
}

// schemaRefPrefix comes before the name of a component in a reference to its schema.
const schemaRefPrefix = "#/components/schemas/"

// schemaOptions writes the schema of each named struct once, under its name, and refers to it.
func (w *documentWriter) schemaOptions(closed bool) shape.SchemaOptions {
	options := shape.SchemaOptions{IsClosed: closed}
	options.Ref = func(s *shape.Shape) string {
		name := componentName(s.StructType(), closed)
		if s.Kind != shape.Object || name == "" {
			return ""
		}
		if w.schemas[name] == nil {
			w.schemas[name] = &jsonschema.Schema{} // the name is taken, should the struct contain itself
			object := *s
			object.Nullable = false // that is said where the schema is referred to
			w.schemas[name] = object.InlineSchema(options)
			if closed {
				w.schemas[name].Not = brokenSchema(s.StructType())
			}
		}
		return schemaRefPrefix + name
	}
	options.Form = func(name string) *jsonschema.Schema {
		s, err := shape.FromType(reflect.TypeOf(w.forms[name]))
		if err != nil {
			return &jsonschema.Schema{Type: "object"} // a test finds the form that is missing
		}
		return s.Schema(options)
	}
	return options
}

// brokenSchema fits the objects of a struct that break one of its rules; nil: it has no rules that a schema can say. A schema that
// demands the contrary would suit as well, but generators of clients make unions of types of it; they pass over "not".
func brokenSchema(t reflect.Type) *jsonschema.Schema {
	stater, ok := reflect.New(t).Interface().(shape.RuleStater)
	if !ok {
		return nil
	}
	var broken []*jsonschema.Schema
	for _, r := range stater.StatedRules() {
		if r.Breaks != nil {
			broken = append(broken, r.Breaks)
		}
	}
	switch len(broken) {
	case 0:
		return nil
	case 1:
		return broken[0]
	}
	return &jsonschema.Schema{AnyOf: broken}
}

// componentName is the name of the schema of a struct. A struct of another package has two schemas: in requests a closed one,
// whose name ends with Input, and an open one in answers.
func componentName(t reflect.Type, closed bool) string {
	if closed && path.Base(t.PkgPath()) != "body" {
		return t.Name() + "Input"
	}
	return t.Name()
}

// hasRequiredMembers reports whether a body has members that must be sent.
func (w *documentWriter) hasRequiredMembers(s *jsonschema.Schema) bool {
	return len(w.schemas[strings.TrimPrefix(s.Ref, schemaRefPrefix)].Required) > 0
}

// mustNotBeEmpty reports whether a body without members is refused, though no single member is required.
func mustNotBeEmpty(v any) bool {
	e, ok := v.(interface{ IsEmpty() bool })
	return ok && e.IsEmpty()
}

// writeResponses documents the answers of an operation. OtherMediaTypes are texts; OtherStatus has the same content.
func (w *documentWriter) writeResponses(op Operation, responses map[string]response) error {
	status := op.Status
	if status == 0 {
		status = http.StatusOK
	}
	ok := response{Description: http.StatusText(status), Content: map[string]content{}}
	if op.Answer != nil {
		s, err := w.answerSchema(op)
		if err != nil {
			return err
		}
		ok.Content = jsonContent(content{Schema: s})
	}
	for _, other := range op.OtherMediaTypes {
		ok.Content[other] = content{Schema: &jsonschema.Schema{Type: "string"}}
	}
	if op.Collection != nil {
		s, err := w.schemaFor(op.Collection, false)
		if err != nil {
			return err
		}
		ok.Content[geoMediaType] = content{Schema: s}
	}
	responses[strconv.Itoa(status)] = ok
	if op.OtherStatus != 0 {
		responses[strconv.Itoa(op.OtherStatus)] = response{Description: http.StatusText(op.OtherStatus), Content: ok.Content}
	}
	return w.writeFailures(op.Failures, responses)
}

// answerSchema is the schema of the answer, or any of several.
func (w *documentWriter) answerSchema(op Operation) (*jsonschema.Schema, error) {
	s, err := w.schemaFor(op.Answer, false)
	if err != nil || len(op.OtherAnswers) == 0 {
		return s, err
	}
	all := []*jsonschema.Schema{s}
	for _, v := range op.OtherAnswers {
		if s, err = w.schemaFor(v, false); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return &jsonschema.Schema{AnyOf: all}, nil
}

// writeFailures joins the error answers of one status: any of their schemas, and the example of each.
func (w *documentWriter) writeFailures(all []Failure, responses map[string]response) error {
	for _, f := range all {
		status := strconv.Itoa(f.Status)
		r, ok := responses[status]
		if !ok {
			r = response{Description: http.StatusText(f.Status)}
		}
		if f.Body != nil {
			if err := w.writeExample(&r, f); err != nil {
				return err
			}
		}
		responses[status] = r
	}
	return nil
}

// writeExample adds a failure to a response: its schema, unless it is there already, and its example. The example is a component
// under the failure's name, to which every operation with that failure refers.
func (w *documentWriter) writeExample(r *response, f Failure) error {
	s, err := w.schemaFor(f.Body, false)
	if err != nil {
		return err
	}
	if r.Content == nil {
		r.Content = jsonContent(content{Schema: s, Examples: map[string]reference{}})
	}
	c := r.Content[mediaType]
	alternatives := c.Schema.AnyOf
	if alternatives == nil {
		alternatives = []*jsonschema.Schema{c.Schema}
	}
	if !slices.ContainsFunc(alternatives, func(have *jsonschema.Schema) bool { return have.Ref == s.Ref }) {
		c.Schema = &jsonschema.Schema{AnyOf: append(alternatives, s)}
		r.Content[mediaType] = c
	}
	c.Examples[f.Name] = reference{"#/components/examples/" + f.Name}
	w.examples[f.Name] = example{f.Body}
	return nil
}
