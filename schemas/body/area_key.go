package body

import (
	"time"

	"lieudit/schemas/token"
)

// IssueKey is POST /accounts/{id}/keys.
type IssueKey struct {
	Kind    token.Kind `json:"kind" enum:"secret publishable"`
	Label   string     `json:"label" min:"1" max:"200" doc:"What it is for"`
	Origins []string   `json:"origins,omitempty" doc:"Of a publishable key: 1 to 10 of the form https://domain or https://*.domain"`
}

// RevokeKey is POST /accounts/{id}/keys/{key}:revoke.
type RevokeKey struct {
	Reason string `json:"reason" min:"1" max:"500" doc:"Such as leak, rotation, offboarding"`
}

// ChangeOrigins is PUT /accounts/{id}/keys/{key}/origins. The key itself stays.
type ChangeOrigins struct {
	Origins []string `json:"origins" doc:"1 to 10 of the form https://domain or https://*.domain"`
}

// Key is an API key. Token is there for publishable keys, and for a secret one in the answer that creates it.
type Key struct {
	ID        string     `json:"id"`
	Kind      token.Kind `json:"kind" enum:"secret publishable"`
	Label     string     `json:"label"`
	Hint      string     `json:"hint" doc:"Prefix and last four characters"`
	Origins   []string   `json:"origins,omitempty"`
	Token     string     `json:"token,omitempty" doc:"A secret key's is told once, at creation"`
	Created   time.Time  `json:"cree_le"`
	CreatedBy string     `json:"cree_par"`
	LastUsed  time.Time  `json:"utilise_le,omitzero" doc:"In lists: the last request with it that counted"`
	Revoked   time.Time  `json:"revoque_le,omitzero"`
	RevokedBy string     `json:"revoque_par,omitempty"`
	Reason    string     `json:"raison,omitempty"`
	Warnings  []string   `json:"avertissements,omitempty" doc:"What was accepted but is probably not what was meant"`
}

// Keys is GET /accounts/{id}/keys.
type Keys struct {
	Envelope
	Results []Key  `json:"results"`
	Cursor  string `json:"curseur,omitempty" doc:"Asks for what follows; absent on the last page"`
}
