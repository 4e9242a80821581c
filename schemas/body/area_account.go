package body

import (
	"time"

	"lieudit/schemas/body/shape"
	"lieudit/schemas/plan"
)

// OpenAccount is POST /accounts.
type OpenAccount struct {
	ID     string    `json:"id,omitempty" pattern:"^[a-z0-9-]{1,64}$" doc:"Chosen by the service when left out; an agency cannot choose it"`
	Name   string    `json:"nom" min:"1" max:"200"`
	Plan   plan.Name `json:"plan" enum:"DISCOVERY STARTER GROWTH BUSINESS"`
	Quota  int64     `json:"quota,omitempty" min:"1" max:"1000000000000" doc:"Requests a month; the plan's own number when left out, at most 20000 on DISCOVERY. What an agency sets is at most its own"`
	Anchor plan.Date `json:"debut_periode,omitzero" doc:"First day of the first period; today when left out"`
	Agency string    `json:"agence_de,omitempty" pattern:"^[a-z0-9-]{1,64}$" doc:"The agency account it is a sub-client of"`
}

// ChangePlan is POST /accounts/{id}:plan.
type ChangePlan struct {
	Plan  plan.Name `json:"plan" enum:"DISCOVERY STARTER GROWTH BUSINESS"`
	Quota int64     `json:"quota,omitempty" min:"1" max:"1000000000000" doc:"Requests a month; the plan's own number when left out. What an agency sets is at most its own"`
}

// CloseAccount is POST /accounts/{id}:close.
type CloseAccount struct {
	ID     string `json:"id,omitempty" pattern:"^[a-z0-9-]{1,64}$" doc:"The account's id again, because this cannot be taken back; an agency must give it"`
	Reason string `json:"reason,omitempty" max:"500"`
}

// EraseAccount is POST /accounts/{id}:erase.
type EraseAccount struct {
	Reason string `json:"reason,omitempty" max:"500"`
}

// ChangeAgency is POST /accounts/{id}:agency. Nothing activates agency mode, an id joins that agency, null leaves it.
type ChangeAgency struct {
	Agency shape.Nullable[string] `json:"agence_de,omitzero" pattern:"^[a-z0-9-]{1,64}$" doc:"Left out: activates agency mode. An account id: becomes its sub-client. null: leaves the agency, with the own plan's number of requests, which only an operator can say"`
}

// Account is an account as the customer area shows it.
type Account struct {
	ID        string     `json:"id"`
	Name      string     `json:"nom" doc:"Empty once the account's personal data was destroyed"`
	Plan      plan.Name  `json:"plan" enum:"DISCOVERY STARTER GROWTH BUSINESS"`
	Quota     int64      `json:"quota" doc:"Requests a month"`
	Anchor    plan.Date  `json:"debut_periode" doc:"First day of the first period"`
	Period    Interval   `json:"periode" doc:"The running period"`
	Agency    string     `json:"agence_de,omitempty" doc:"The agency it is a sub-client of"`
	IsAgency  bool       `json:"agence" doc:"Whether it can have sub-clients"`
	NextTerms *NextTerms `json:"prochain,omitempty" doc:"Terms that are settled but have not begun"`
	Created   time.Time  `json:"cree_le"`
	Closed    time.Time  `json:"ferme_le,omitzero"`
}

// NextTerms are terms that begin later.
type NextTerms struct {
	Plan      plan.Name `json:"plan" enum:"DISCOVERY STARTER GROWTH BUSINESS"`
	Quota     int64     `json:"quota"`
	Effective time.Time `json:"effet"`
}

// Accounts is GET /accounts.
type Accounts struct {
	Envelope
	Results []Account `json:"results"`
	Cursor  string    `json:"curseur,omitempty" doc:"Asks for what follows; absent on the last page"`
}
