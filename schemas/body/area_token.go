package body

import (
	"time"

	"lieudit/schemas/access"
)

// IssueToken is POST /tokens.
type IssueToken struct {
	Role    access.Role `json:"role" enum:"operator customer agency billing auditor" doc:"What the token may do"`
	Account string      `json:"account,omitempty" pattern:"^[a-z0-9-]{1,64}$" doc:"Whose: required for customer and agency, refused for the others"`
	Label   string      `json:"label" min:"1" max:"200" doc:"What it is for"`
}

// RevokeToken is POST /tokens/{id}:revoke.
type RevokeToken struct {
	Reason string `json:"reason,omitempty" max:"500"`
}

// AreaToken is a customer-area token. Token itself is told once, by the answer that creates it.
type AreaToken struct {
	ID        string      `json:"id"`
	Role      access.Role `json:"role" enum:"operator customer agency billing auditor"`
	Account   string      `json:"account,omitempty" doc:"Of the roles that act for one account"`
	Label     string      `json:"label"`
	Hint      string      `json:"hint" doc:"Prefix and last four characters"`
	Token     string      `json:"token,omitempty" doc:"The token, at creation only"`
	Created   time.Time   `json:"cree_le"`
	CreatedBy string      `json:"cree_par"`
	Revoked   time.Time   `json:"revoque_le,omitzero"`
	RevokedBy string      `json:"revoque_par,omitempty"`
	Reason    string      `json:"raison,omitempty"`
}

// AreaTokens is GET /tokens.
type AreaTokens struct {
	Envelope
	Results []AreaToken `json:"results"`
	Cursor  string      `json:"curseur,omitempty" doc:"Asks for what follows; absent on the last page"`
}
