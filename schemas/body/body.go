// Package body declares every request and every answer of the two HTTP surfaces, each once: a Go struct whose tags hold the
// JSON name, the rules (min, max, pattern, enum, default) and what the field is for. Its constraint: the decoder and the
// OpenAPI documents are both made of these structs, so they cannot disagree.
//
//	struct ─ tags ─> shape.FromType ─┬─> kit.Decoder: a request into the struct, or the rules it breaks
//	                                 └─> Shape.Schema ─┐
//	API, CustomerArea: Operation, refusal.Code ────────┴─> openapi.API.JSON ─> openapi.json, customer-area.json
//
// The names of the structs are the names of components in the OpenAPI documents: renaming one changes a published document.
// A rule over several fields of one struct is a method BrokenRules or MemberFaults in rules.go.
package body

import (
	"time"

	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// Envelope begins every answer that holds a list. Status is OK, or no_results where a search found nothing; clients check it
// before they read the list. A completion of too short a text has TOO_SHORT.
type Envelope struct {
	Status  string `json:"status" doc:"OK, or no_results when the list is empty because nothing matched"`
	Message string `json:"message" doc:"Text for people; empty when all went well"`
}

// OKEnvelope is the envelope of a list that was made.
var OKEnvelope = Envelope{Status: "OK"}

// NoResults is the answer of a search that matched nothing.
type NoResults struct {
	Envelope
	Matches []struct{} `json:"matches" max:"0" doc:"Always empty"`
}

// NoResultsAnswer is the only value of NoResults.
var NoResultsAnswer = NoResults{Envelope{"no_results", "No verified match found"}, []struct{}{}}

// Empty is a request without parameters or members.
type Empty struct{}

// Interval is the instants of a period, from Start on and before End.
type Interval struct {
	Start time.Time `json:"debut" doc:"First instant, RFC 3339 with the offset of Europe/Paris"`
	End   time.Time `json:"fin" doc:"First instant after it, when the next period begins"`
}

// Version is the answer of GET /version. Vintage and Addresses are left out where no address base is served. A vintage
// (millésime) is one release of the base. RoadNetwork is left out where no road network is served, or its date is not known.
type Version struct {
	Version     string `json:"version" doc:"Of the program"`
	Vintage     string `json:"millesime,omitempty" doc:"The BAN vintage served"`
	Addresses   int64  `json:"adresses,omitempty" doc:"How many addresses it holds"`
	RoadNetwork string `json:"reseau_routier,omitempty" doc:"Date of the road network that routes are computed on"`
}

// Me is the answer of GET /me: whose key it is and what it gives.
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

// MyQuota is the monthly quota, what is used of it, and the present period. Used counts the request that asks for it too.
type MyQuota struct {
	Limit     int64  `json:"limite" doc:"Requests in the period"`
	Used      *int64 `json:"utilise,omitempty"`
	Remaining *int64 `json:"restant,omitempty"`
	Interval
}

// MySites is how many active sites the account has and may have. Capacity is what the plan includes; a write that
// raises the number above Ceiling is refused.
type MySites struct {
	Active   *int `json:"actifs,omitempty"`
	Capacity int  `json:"capacite"`
	Ceiling  int  `json:"plafond" doc:"Capacity and a tenth of it"`
}

// MyReferentials is how many active referentials the account may have.
type MyReferentials struct {
	Active  *int `json:"actifs,omitempty"`
	Maximum int  `json:"maximum"`
}
