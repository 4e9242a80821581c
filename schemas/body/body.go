// Package body is every request and answer of the two HTTP interfaces, each declared once: a Go struct whose
// tags say the JSON name, the rules (min, max, pattern, enum, default) and what the field is for. The
// decoder and the OpenAPI documents are both read off these structs (package shape), so they cannot disagree.
package body

import "time"

// Envelope begins every answer that holds a list. Clients test Status before they read the list.
type Envelope struct {
	Status  string `json:"status" doc:"OK, or no_results when the list is empty because nothing matched"`
	Message string `json:"message" doc:"Text for people; empty when all went well"`
}

// OKEnvelope is the envelope of a list that is what it should be.
var OKEnvelope = Envelope{Status: "OK"}

// NoResults is the answer of a search that matched nothing.
type NoResults struct {
	Envelope
	Matches []struct{} `json:"matches" max:"0" doc:"Always empty"`
}

// NoResultsAnswer is the one NoResults there is.
var NoResultsAnswer = NoResults{Envelope{"no_results", "No verified match found"}, []struct{}{}}

// Empty is a request that says nothing.
type Empty struct{}

// Interval is a period as instants: Start belongs to it, End does not.
type Interval struct {
	Start time.Time `json:"debut" doc:"First instant, RFC 3339 with the offset of Europe/Paris"`
	End   time.Time `json:"fin" doc:"First instant after it, when the next period begins"`
}
