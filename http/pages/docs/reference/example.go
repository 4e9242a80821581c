package reference

import (
	_ "embed"
	"encoding/json"
	"strings"
	"sync"

	"lieudit/http/pages/i18n"
)

// Example is a request and the answer that the service gave to it. Each is one of the scenarios that test the service, which fill in all
// but the first three members: a new example is a new entry of examples.json with these three, and go test ./cmd/lieudit -run
// TestAPI -update. A test holds the examples to the scenarios.
type Example struct {
	Operation string         `json:"operation"` // of the OpenAPI documents
	Scene     string         `json:"scene"`     // the file of the scenario
	Title     string         `json:"title"`     // of the request in it
	Request   ExampleRequest `json:"request"`
	Status    int            `json:"status"`
	MediaType string         `json:"type,omitempty"`
	Answer    string         `json:"answer,omitempty"`
}

// ExampleRequest is the request of an example, without its key.
type ExampleRequest struct {
	Method    string `json:"method"`
	Target    string `json:"target"` // below the base path
	Origin    string `json:"origin,omitempty"`
	MediaType string `json:"type,omitempty"`
	Body      string `json:"body,omitempty"`
}

// FirstExample is a request that finds something in any base: that of a service with invented addresses too.
var FirstExample = Example{Operation: "get_address_autocomplete", Request: ExampleRequest{Method: "GET", Target: "/address/autocomplete?q=rue+de+la+mairie"}}

//go:embed examples.json
var examplesText []byte

// Examples are all of them, in the order of the file.
var Examples = sync.OnceValue(func() (all []Example) {
	if err := json.Unmarshal(examplesText, &all); err != nil {
		panic(err) // the file is part of the program
	}
	return all
})

// FindExample returns the example of a scenario; the zero Example if there is none.
func FindExample(scene, title string) Example {
	for _, e := range Examples() {
		if e.Scene == scene && e.Title == title {
			return e
		}
	}
	return Example{}
}

// Words is the title for people; an example whose scenario has no title is shown as the operation.
func (e Example) Words() Words {
	if e.Title == "" {
		return Words{Text: i18n.Text{FR: "exemple", EN: "example"}}
	}
	return translate(e.Title)
}

// Path is the path of the target.
func (r ExampleRequest) Path() string {
	path, _, _ := strings.Cut(r.Target, "?")
	return path
}

// Query is the query of the target, as it was written.
func (r ExampleRequest) Query() string {
	_, query, _ := strings.Cut(r.Target, "?")
	return query
}
