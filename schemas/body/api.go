package body

import (
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

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
