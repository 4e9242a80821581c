// Package reference is the content of the documentation, made of what the service is made of: the table of operations (schemas/body), the
// tags of their structs, the plans and roles of their routes, and answers that the service gave to its test scenarios (examples.json).
// What it adds are words: titles and uses of operations (uses.go) and the French of the tags (french.json).
//
//	body.API, body.CustomerArea ──> Load ──> Document ──> Operation ─┬─ Field, of requests and answers
//	api.ServiceOf, RolesOf ────────────────────┘                     ├─ Example ──> Snippets: curl, JavaScript, Python, Go
//	french.json, uses.go, examples.json ───────┘                     └─ PostmanCollection
//
// An operation here is a page: GET and POST of one path that do the same are one operation with two methods.
package reference

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"lieudit/http/api"
	"lieudit/http/customerarea"
	"lieudit/http/pages/i18n"
	"lieudit/schemas/body"
	"lieudit/schemas/body/openapi"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
)

// Document is one of the two HTTP surfaces.
type Document struct {
	IsArea     bool // the customer area
	BasePath   string
	Tags       []Tag
	operations map[string]*Operation // by slug
	aliases    map[string]string     // slugs of further methods, to that of their operation
}

// Tag is a group of operations.
type Tag struct {
	Name, Doc  Words
	Slug       string
	Operations []*Operation
}

// Operation is what one page is about.
type Operation struct {
	Slug       string // the operationId of its first method
	IsArea     bool
	Tag        *Tag
	Title      Words
	Use        i18n.Text
	Counts     i18n.Text // how many requests it counts as
	Methods    []Method
	Answers    []Answer
	Failures   []Failure
	Plans      []plan.Name  // that include it; nil: of the customer area, or without a key
	Roles      []grant.Role // of the customer area, that may
	IsPublic   bool         // needs no key
	TakesPages bool         // takes a publishable key
	IsWrite    bool         // it changes something
	Examples   []Example

	summary string
}

// Method is a method of the operation's path, with what it takes.
type Method struct {
	Method, Path string
	Slug         string // its operationId
	Variables    []Field
	Query        []Field
	Headers      []Field
	Body         []Field
	Form         []Field // of a multipart form
	Rules        []Words
}

// Answer is one form of the answer of success. The zero When is the usual one.
type Answer struct {
	When       i18n.Text
	Status     int
	MediaTypes []string
	Fields     []Field
}

// Failure is an error answer. Code is empty for those that have none: broken rules, and headers that are too long.
type Failure struct {
	Name   string // its anchor among the errors
	Code   refusal.Code
	Status int
}

// API is the document of the API, and Area that of the customer area.
var (
	API  = sync.OnceValue(func() *Document { return load(body.API(), false) })
	Area = sync.OnceValue(func() *Document { return load(body.CustomerArea(), true) })
)

// Find returns the operation with a slug, or with that of one of its methods, or nil.
func Find(slug string) *Operation {
	for _, d := range []*Document{API(), Area()} {
		if op := d.operations[cmp.Or(d.aliases[slug], slug)]; op != nil {
			return op
		}
	}
	return nil
}

// All are the operations of the document in its order.
func (d *Document) All() (all []*Operation) {
	for _, t := range d.Tags {
		all = append(all, t.Operations...)
	}
	return all
}

func load(source openapi.API, isArea bool) *Document {
	d := &Document{IsArea: isArea, BasePath: source.BasePath, operations: map[string]*Operation{}, aliases: map[string]string{}}
	for _, t := range source.Tags {
		d.Tags = append(d.Tags, Tag{Name: translate(t.Name), Doc: translate(t.Doc), Slug: strings.ToLower(strings.ReplaceAll(t.Name, " ", "-"))})
	}
	r := &reader{forms: source.Forms, variables: source.Variables}
	for _, op := range source.Operations {
		first := d.findSame(op)
		if first == nil {
			first = d.add(source, op, r)
		} else {
			d.aliases[openapi.OperationID(op)] = first.Slug
		}
		first.Methods = append(first.Methods, r.method(op))
		first.Failures = mergeFailures(first.Failures, op.Failures)
		first.Examples = append(first.Examples, examplesOf(openapi.OperationID(op))...)
	}
	return d
}

// findSame returns the operation that does the same by another method, or nil.
func (d *Document) findSame(op openapi.Operation) *Operation {
	for _, o := range d.operations {
		if o.Methods[0].Path == op.Path && o.summary == op.Summary {
			return o
		}
	}
	return nil
}

// add adds the operation of its first method.
func (d *Document) add(source openapi.API, op openapi.Operation, r *reader) *Operation {
	out := &Operation{
		Slug: openapi.OperationID(op), summary: op.Summary, IsArea: d.IsArea, Title: titleOf(op), Use: uses[openapi.OperationID(op)].use, Counts: countsOf(op, d.IsArea),
		IsPublic: op.IsPublic, Answers: r.answers(op), TakesPages: !d.IsArea && op.Path == "/locations/search",
	}
	out.IsWrite = op.Method != "GET" && !strings.HasPrefix(op.Path, "/address/") && !strings.HasPrefix(op.Path, "/route/") && op.Form == nil
	if d.IsArea {
		out.Roles = customerarea.RolesOf(op.Method, op.Path)
		out.IsPublic = out.Roles == nil
	} else if service, ok := api.ServiceOf(op.Method, op.Path); ok && !op.IsPublic {
		for _, p := range plan.All() {
			if p.Allows(service) {
				out.Plans = append(out.Plans, p.Name)
			}
		}
	}
	i := slices.IndexFunc(source.Tags, func(t openapi.Tag) bool {
		return slices.ContainsFunc(t.Prefixes, func(prefix string) bool { return strings.HasPrefix(op.Path, prefix) })
	})
	out.Tag = &d.Tags[max(i, 0)]
	out.Tag.Operations = append(out.Tag.Operations, out)
	d.operations[out.Slug] = out
	return out
}

// mergeFailures adds the failures of a further method, sorted by status; those of one status stay in the order of the table.
func mergeFailures(have []Failure, more []openapi.Failure) []Failure {
	for _, f := range more {
		if !slices.ContainsFunc(have, func(h Failure) bool { return h.Name == f.Name }) {
			code := refusal.Code(f.Name)
			if code.Row().Code != code {
				code = ""
			}
			have = append(have, Failure{f.Name, code, f.Status})
		}
	}
	slices.SortStableFunc(have, func(a, b Failure) int { return cmp.Compare(a.Status, b.Status) })
	return have
}

func examplesOf(id string) (all []Example) {
	for _, e := range Examples() {
		if e.Operation == id {
			all = append(all, e)
		}
	}
	return all
}

// countsOf is how many requests an operation counts as.
func countsOf(op openapi.Operation, isArea bool) i18n.Text {
	switch {
	case isArea, op.IsPublic:
		return i18n.Text{FR: "Ne compte pas dans le quota.", EN: "Does not count against the quota."}
	case op.Path == "/route/matrix":
		return i18n.Text{FR: "Compte une requête par tranche de 25 cellules (origines × destinations), arrondie au-dessus.", EN: "Counts as one request for each 25 cells (origins × destinations), rounded up."}
	case op.Path == "/route/optimize":
		return i18n.Text{FR: "Compte une requête par tranche de 25 étapes, arrondie au-dessus.", EN: "Counts as one request for each 25 stops, rounded up."}
	case op.Form != nil:
		return i18n.Text{FR: "Chaque ligne compte comme une requête : toutes sont admises, ou aucune. Les lignes sans réponse sont rendues.", EN: "Each row counts as a request: all are admitted, or none. Rows that get no answer are given back."}
	}
	return i18n.Text{FR: "Compte une requête, trouvée ou non. Les erreurs 400, 401, 403, 413, 429 et 5xx ne comptent pas.", EN: "Counts as one request, found or not. Errors 400, 401, 403, 413, 429 and 5xx do not count."}
}

// Texts are all texts of the OpenAPI documents that the document shows, in English, each once.
func (d *Document) Texts() []string { return d.collect(func(Words) bool { return true }) }

// ForeignTexts are those of them that have no French.
func (d *Document) ForeignTexts() []string {
	return d.collect(func(w Words) bool { return w.IsForeign })
}

func (d *Document) collect(isWanted func(Words) bool) (all []string) {
	d.walk(func(words ...Words) {
		for _, w := range words {
			if w.EN != "" && isWanted(w) && !slices.Contains(all, w.EN) {
				all = append(all, w.EN)
			}
		}
	})
	return all
}

// walk calls note with every text of the OpenAPI documents that the document shows.
func (d *Document) walk(note func(...Words)) {
	var walkFields func([]Field)
	walkFields = func(all []Field) {
		for _, f := range all {
			note(f.Doc)
			walkFields(f.Fields)
		}
	}
	for _, t := range d.Tags {
		note(t.Name, t.Doc)
		for _, op := range t.Operations {
			note(op.Title)
			for _, e := range op.Examples {
				note(translate(e.Title))
			}
			for _, m := range op.Methods {
				note(m.Rules...)
				for _, part := range m.Parts() {
					walkFields(part.Fields)
				}
			}
			for _, a := range op.Answers {
				walkFields(a.Fields)
			}
		}
	}
}

// Part is a part of a request with its fields.
type Part struct {
	Name   i18n.Text
	Fields []Field
}

// Parts are the parts of the request that have any fields.
func (m Method) Parts() (all []Part) {
	for _, p := range []Part{
		{i18n.Text{FR: "Dans le chemin", EN: "In the path"}, m.Variables},
		{i18n.Text{FR: "En-têtes", EN: "Headers"}, m.Headers},
		{i18n.Text{FR: "Dans la requête (query)", EN: "In the query"}, m.Query},
		{i18n.Text{FR: "Dans le corps (JSON)", EN: "In the body (JSON)"}, m.Body},
		{i18n.Text{FR: "Dans le formulaire (multipart/form-data)", EN: "In the form (multipart/form-data)"}, m.Form},
	} {
		if len(p.Fields) > 0 {
			all = append(all, p)
		}
	}
	return all
}
