// Package docs is the documentation of the API and of the customer area, readable without a session: an index, a page for each operation,
// all errors, the rule for verdicts, and the OpenAPI and Postman files. Its content comes from package reference; the pages here lay
// it out. /api/essai, where requests can be tried, is package tryit.
package docs

import (
	"embed"
	"net/http"

	"lieudit/http/pages/docs/reference"
	"lieudit/http/pages/page"
	"lieudit/schemas/refusal"
)

//go:embed *.html
var templates embed.FS

// Section is the pages.
func Section() page.Section {
	return page.Section{
		Templates: templates,
		Rows: []page.Row{
			{Method: http.MethodGet, Path: "/api", IsPublic: true, Serve: showIndex},
			{Method: http.MethodGet, Path: "/api/erreurs", IsPublic: true, Serve: showErrors},
			{Method: http.MethodGet, Path: "/api/verdicts", IsPublic: true, Serve: showVerdicts},
			{Method: http.MethodGet, Path: "/api/espace-client", IsPublic: true, Serve: showArea},
			{Method: http.MethodGet, Path: "/api/{file:[a-z0-9.-]+\\.json}", IsPublic: true, Serve: serveFile},
			{Method: http.MethodGet, Path: "/api/{operation}", IsPublic: true, Serve: showOperation},
		},
	}
}

// frame is what every page of the documentation has besides its content.
type frame struct {
	Document *reference.Document // whose operations the contents list
	Here     string              // the slug of the page
	Anchors  []anchor            // on the page
}

// anchor is an entry of the contents that leads to a part of the page.
type anchor struct{ ID, Text string }

// index is the data of index.html and of area.html.
type index struct {
	frame
	Server  reference.Server
	First   []reference.Snippet
	Answer  string
	Foreign int // texts without French
}

// apiServer is where snippets send requests to the API, and areaServer to the customer area.
func apiServer(q *page.Request) reference.Server {
	return reference.Server{URL: q.Site.API().String() + reference.API().BasePath, KeyVariable: "LIEUDIT_KEY"}
}

func areaServer(q *page.Request) reference.Server {
	return reference.Server{URL: q.Site.URL().String() + reference.Area().BasePath, KeyVariable: "LIEUDIT_TOKEN"}
}

func showIndex(q *page.Request) (page.View, error) {
	data := index{frame: frame{Document: reference.API(), Here: "api"}, Server: apiServer(q)}
	data.First = reference.Snippets(reference.FirstExample, data.Server)
	data.Answer = reference.FindExample("get_address_autocomplete.completes", "a street as far as it is typed").Answer
	return page.View{Template: "index.html", Title: q.T("Documentation de l’API", "API documentation"), IsWide: true, Data: data}, nil
}

func showArea(q *page.Request) (page.View, error) {
	data := index{frame: frame{Document: reference.Area(), Here: "espace-client"}, Server: areaServer(q), Foreign: len(reference.Area().ForeignTexts())}
	data.First = reference.Snippets(reference.FindExample("get_accounts_id_usage.counts", "by endpoint"), data.Server)[:1]
	return page.View{Template: "area.html", Title: q.T("L’espace client en JSON", "The customer area as JSON"), IsWide: true, Data: data}, nil
}

// operation is the data of operation.html.
type operation struct {
	frame
	*reference.Operation
	Server   reference.Server
	Shown    []example
	Failures []failure
}

// example is an example with its request in several languages.
type example struct {
	reference.Example
	Words    reference.Words // its title
	Snippets []reference.Snippet
}

// maxShown is how many examples a page shows.
const maxShown = 3

// chooseExamples are the examples that a page shows: the first of each method, then others.
func chooseExamples(op *reference.Operation) (all []reference.Example) {
	var others []reference.Example
	for i, e := range op.Examples {
		if i == 0 || e.Operation != op.Examples[i-1].Operation {
			all = append(all, e)
		} else {
			others = append(others, e)
		}
	}
	all = append(all, others...)
	return all[:min(len(all), maxShown)]
}

func showOperation(q *page.Request) (page.View, error) {
	op := reference.Find(q.Vars["operation"])
	switch {
	case op == nil:
		return page.View{}, refusal.NotFound
	case op.Slug != q.Vars["operation"]:
		return page.Redirect(page.Path("/api/%s", op.Slug))
	}
	data := operation{Operation: op, Server: apiServer(q), frame: frame{Document: reference.API(), Here: op.Slug}}
	if op.IsArea {
		data.Server, data.Document = areaServer(q), reference.Area()
	}
	for _, e := range chooseExamples(op) {
		data.Shown = append(data.Shown, example{e, e.Words(), reference.Snippets(e, data.Server)})
	}
	for _, f := range op.Failures {
		data.Failures = append(data.Failures, newFailure(f))
	}
	return page.View{Template: "operation.html", Title: q.Print.Text(op.Title.Text), IsWide: true, Data: data}, nil
}
