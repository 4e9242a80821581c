// Package body is every request and answer of the two HTTP interfaces, each declared once: a Go struct whose
// tags say the JSON name, the rules (min, max, pattern, enum, default) and what the field is for. The
// decoder and the OpenAPI documents are both read off these structs (package shape), so they cannot disagree.
package body

import (
	"time"

	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

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

// Version is GET /version.
type Version struct {
	Version     string `json:"version" doc:"Of the program"`
	Vintage     string `json:"millesime,omitempty" doc:"The BAN vintage served"`
	Addresses   int64  `json:"adresses,omitempty" doc:"How many addresses it holds"`
	RoadNetwork string `json:"reseau_routier,omitempty" doc:"The road network routes are computed on"`
}

// Me is GET /me: whose key it is and what it gives.
type Me struct {
	Client       string         `json:"client" doc:"The account's id"`
	Plan         plan.Name      `json:"plan" enum:"DISCOVERY STARTER GROWTH BUSINESS"`
	Key          MyKey          `json:"cle"`
	Quota        MyQuota        `json:"quota"`
	Sites        MySites        `json:"sites"`
	Referentials MyReferentials `json:"referentiels"`
	Agency       string         `json:"agence,omitempty" doc:"The agency the account is a sub-client of"`
}

// MyKey is the key of the request.
type MyKey struct {
	ID   string     `json:"id"`
	Hint string     `json:"hint" doc:"Prefix and last four characters"`
	Type token.Kind `json:"type" enum:"secret publishable"`
}

// MyQuota is the monthly quota and the running period.
type MyQuota struct {
	Limit     int64  `json:"limite" doc:"Requests in the period"`
	Used      *int64 `json:"utilise,omitempty"`
	Remaining *int64 `json:"restant,omitempty"`
	Interval
}

// MySites is the capacity for sites; no write may pass Ceiling.
type MySites struct {
	Active   *int `json:"actifs,omitempty"`
	Capacity int  `json:"capacite"`
	Ceiling  int  `json:"plafond" doc:"Capacity and a tenth of it"`
}

// MyReferentials is the cap of active referentials.
type MyReferentials struct {
	Active  *int `json:"actifs,omitempty"`
	Maximum int  `json:"maximum"`
}
