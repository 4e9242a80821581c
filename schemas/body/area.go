package body

import (
	"time"

	"lieudit/schemas/body/shape"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// The requests and answers of the customer area about accounts, keys and tokens. An agency is an account that can have
// sub-clients, accounts whose requests it pays for. The Reason of a request is kept in the history. It is sealed for the
// account, as labels are, and an erasure deletes it. The doc tags of texts that stay say so.

// OpenAccount is POST /accounts. Anchor, here and in other structs, is the first day of the account's first period; each later
// period begins on the same day of a month.
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

// CloseAccount is POST /accounts/{id}:close. An account is closed for good.
type CloseAccount struct {
	ID     string `json:"id" pattern:"^[a-z0-9-]{1,64}$" doc:"The account's id again, because this cannot be taken back"`
	Reason string `json:"reason,omitempty" max:"500" doc:"Goes with an erasure of the account"`
}

// EraseAccount is POST /accounts/{id}:erase, which makes the personal data of a closed account unreadable for good.
type EraseAccount struct {
	ID     string `json:"id" pattern:"^[a-z0-9-]{1,64}$" doc:"The account's id again, because this cannot be taken back"`
	Reason string `json:"reason,omitempty" max:"500" doc:"Erased with the account, as all reasons: keep it elsewhere. Before format 3 of the log it stays"`
}

// ChangeAgency is POST /accounts/{id}:agency. An agency that is left out activates agency mode, an id joins that agency, null
// leaves it.
type ChangeAgency struct {
	Agency shape.Nullable[string] `json:"agence_de,omitzero" pattern:"^[a-z0-9-]{1,64}$" doc:"Left out: activates agency mode. An account id: becomes its sub-client. null: leaves the agency, with the own plan's number of requests, which only an operator can say"`
}

// Account is an account as the customer area shows it.
type Account struct {
	ID         string      `json:"id"`
	Name       string      `json:"nom" doc:"Empty once the account's personal data was destroyed"`
	Plan       plan.Name   `json:"plan" enum:"DISCOVERY STARTER GROWTH BUSINESS"`
	Quota      int64       `json:"quota" doc:"Requests a month"`
	Anchor     plan.Date   `json:"debut_periode" doc:"First day of the first period"`
	Period     Interval    `json:"periode" doc:"The running period"`
	Agency     string      `json:"agence_de,omitempty" doc:"The agency it is a sub-client of"`
	IsAgency   bool        `json:"agence" doc:"Whether it can have sub-clients"`
	NextTerms  *NextTerms  `json:"prochain,omitempty" doc:"Terms that are settled but have not begun"`
	NextAgency *NextAgency `json:"prochaine_agence,omitempty" doc:"An agency that is joined or left, but not yet. A join that has not begun ends when its agency is closed"`
	Created    time.Time   `json:"cree_le"`
	Closed     time.Time   `json:"ferme_le,omitzero"`
	Omitted    []string    `json:"champs_omis,omitempty" doc:"Members that are left out because the account's data key could not be had at once: a revocation does not wait for the vault. A reason that is left out is not kept"`
}

// AccountsQuery is the query of GET /accounts.
type AccountsQuery struct {
	Text  string `json:"q,omitempty" max:"200" doc:"Only accounts with it in their id or name, whatever the case and the accents"`
	State string `json:"etat,omitempty" enum:"ouvert ferme tous" default:"tous"`
	PageQuery
}

// NextTerms are the terms that are decided and have not begun. They begin at Effective, the first instant of a period.
type NextTerms struct {
	Plan      plan.Name `json:"plan" enum:"DISCOVERY STARTER GROWTH BUSINESS"`
	Quota     int64     `json:"quota"`
	Effective time.Time `json:"effet"`
}

// NextAgency is the agency that an account has from an instant on, the first of a period.
type NextAgency struct {
	Agency    string    `json:"agence_de,omitempty" doc:"The agency that it becomes a sub-client of, with that agency's plan and periods; absent when it leaves one"`
	Effective time.Time `json:"effet"`
}

// Accounts is GET /accounts.
type Accounts struct {
	Envelope
	Results []Account `json:"results"`
	Cursor  string    `json:"curseur,omitempty" doc:"Asks for what follows; absent on the last page"`
}

// IssueKey is POST /accounts/{id}/keys.
type IssueKey struct {
	Kind     token.Kind `json:"kind" enum:"secret publishable"`
	Label    string     `json:"label" min:"1" max:"200" doc:"What it is for. Goes with an erasure of the account"`
	Origins  []string   `json:"origins,omitempty" doc:"Of a publishable key: 1 to 10 of the form https://domain or https://*.domain. They stay on the log when the account is erased"`
	Replaces string     `json:"remplace,omitempty" pattern:"^[a-z0-9-]{1,64}$" doc:"The id of the key whose place it takes, of the same kind: a rotation, which ends once that key is revoked. Both work until then"`
}

// RevokeKey is POST /accounts/{id}/keys/{key}:revoke.
type RevokeKey struct {
	Reason string `json:"reason" min:"1" max:"500" doc:"Such as leak, rotation, offboarding. Goes with an erasure of the account"`
}

// ChangeOrigins is PUT /accounts/{id}/keys/{key}/origins. The key itself stays.
type ChangeOrigins struct {
	Origins []string `json:"origins" doc:"1 to 10 of the form https://domain or https://*.domain. They stay on the log when the account is erased"`
}

// CheckOrigins is POST /accounts/{id}/origins:check. It changes nothing.
type CheckOrigins struct {
	Origins []string `json:"origins" max:"100" doc:"As they would be sent to issue a key, or to change the origins of one"`
}

// OriginVerdict is what becomes of one origin of a list.
type OriginVerdict struct {
	Typed    string `json:"saisie"`
	IsValid  bool   `json:"valide"`
	Kept     string `json:"retenue,omitempty" doc:"The form that is kept"`
	Fault    string `json:"motif,omitempty" doc:"Which rule it breaks: manque, trop_longue, schema, identifiant, chemin, parametre, fragment, adresse_ip, port, etoile, domaine_manquant, point_final, domaine_trop_long, domaine_invalide, etoile_un_label, un_label"`
	Message  string `json:"message,omitempty" doc:"The message of the refusal, were it declared alone"`
	Repeated bool   `json:"doublon,omitempty" doc:"The list has it before; it is kept once"`
	Warning  string `json:"avertissement,omitempty" doc:"What would be accepted but is probably not what is meant"`
}

// OriginRefusal is the refusal of a list of origins, or of a request from an origin.
type OriginRefusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// OriginVerdicts is the answer of POST /accounts/{id}/origins:check.
type OriginVerdicts struct {
	Envelope
	IsValid bool            `json:"valide" doc:"Whether the list as a whole can be declared"`
	Refusal *OriginRefusal  `json:"refus,omitempty" doc:"What declaring the list would be answered"`
	Results []OriginVerdict `json:"results"`
}

// TestOrigin is POST /accounts/{id}/keys/{key}/origins:test. It changes nothing, and counts nothing.
type TestOrigin struct {
	Origin string `json:"origin" max:"2000" doc:"An Origin header, or the address of a page, for which browsers send its origin. Empty: a request without one"`
}

// OriginTest is what a request with the key would be answered from an origin.
type OriginTest struct {
	Origin     string         `json:"origine" doc:"The Origin header as a browser would send it"`
	IsAdmitted bool           `json:"admise"`
	Entry      string         `json:"entree,omitempty" doc:"The origin of the key that admits it"`
	Refusal    *OriginRefusal `json:"refus,omitempty" doc:"The answer 403 that the request would get"`
}

// Key is an API key. Token is there for publishable keys; for a secret one only in the answer that creates it. A revoked key stays
// in lists, with Revoked, RevokedBy and Reason.
type Key struct {
	ID         string     `json:"id"`
	Kind       token.Kind `json:"kind" enum:"secret publishable"`
	Label      string     `json:"label"`
	Hint       string     `json:"hint" doc:"Prefix and last four characters"`
	Origins    []string   `json:"origins,omitempty"`
	Token      string     `json:"token,omitempty" doc:"A secret key's is told once, at creation"`
	Created    time.Time  `json:"cree_le"`
	CreatedBy  string     `json:"cree_par"`
	LastUsed   time.Time  `json:"utilise_le,omitzero" doc:"Where keys are read: the last request with it that counted"`
	Revoked    time.Time  `json:"revoque_le,omitzero"`
	RevokedBy  string     `json:"revoque_par,omitempty"`
	Reason     string     `json:"raison,omitempty"`
	Replaces   string     `json:"remplace,omitempty" doc:"The id of the key whose place it takes"`
	ReplacedBy string     `json:"remplacee_par,omitempty" doc:"Of a single key: the id of the valid key that takes its place"`
	Omitted    []string   `json:"champs_omis,omitempty" doc:"Members that are left out because the account's data key could not be had at once: a revocation does not wait for the vault. A reason that is left out is not kept"`
	Warnings   []string   `json:"avertissements,omitempty" doc:"What was accepted but is probably not what was meant"`
}

// Keys is GET /accounts/{id}/keys.
type Keys struct {
	Envelope
	Results []Key  `json:"results"`
	Cursor  string `json:"curseur,omitempty" doc:"Asks for what follows; absent on the last page"`
}

// IssueToken is POST /tokens.
type IssueToken struct {
	Role    grant.Role `json:"role" enum:"operator customer agency billing auditor" doc:"What the token may do"`
	Account string     `json:"account,omitempty" pattern:"^[a-z0-9-]{1,64}$" doc:"Whose: required for customer and agency, refused for the others"`
	Label   string     `json:"label" min:"1" max:"200" doc:"What it is for. Of a token with an account it goes with an erasure of the account; of any other token it stays on the log for ever: name nobody"`
}

// OpenSession is POST /sessions.
type OpenSession struct {
	Proof string `json:"preuve" min:"1" max:"200" doc:"A link or its secret, or a customer-area token"`
}

// Session is a session of a customer-area token: what a browser comes in with.
type Session struct {
	ID        string     `json:"id"`
	Role      grant.Role `json:"role" enum:"operator customer agency billing auditor"`
	Account   string     `json:"account,omitempty" doc:"Of the roles that act for one account"`
	Opened    time.Time  `json:"ouverte_le"`
	Expires   time.Time  `json:"expire_le"`
	IsCurrent bool       `json:"courante" doc:"It is the one that the request was made in"`
}

// Sessions is GET /sessions.
type Sessions struct {
	Envelope
	Results []Session `json:"results"`
}

// Invite is POST /invitations.
type Invite struct {
	Role    grant.Role `json:"role" enum:"operator customer agency billing auditor" doc:"What whoever is invited may do"`
	Account string     `json:"account,omitempty" pattern:"^[a-z0-9-]{1,64}$" doc:"Whose: required for customer and agency, refused for the others"`
	Label   string     `json:"label" min:"1" max:"200" doc:"Of the token that the invitation makes, as of any token"`
}

// SessionLink is a link that opens one session.
type SessionLink struct {
	Token   string     `json:"jeton" doc:"The id of the token that the session is of"`
	Role    grant.Role `json:"role" enum:"operator customer agency billing auditor"`
	Account string     `json:"account,omitempty" doc:"Of the roles that act for one account"`
	URL     string     `json:"lien" doc:"To be opened in a browser, once; it is in this answer alone"`
	Expires time.Time  `json:"expire_le"`
}

// RevokeToken is POST /tokens/{id}:revoke.
type RevokeToken struct {
	Reason string `json:"reason,omitempty" max:"500" doc:"Of a token with an account it goes with an erasure of the account; of any other token it stays on the log for ever: name nobody"`
}

// AreaToken is a customer-area token. Token is there only in the answer that creates it.
type AreaToken struct {
	ID        string     `json:"id"`
	Role      grant.Role `json:"role" enum:"operator customer agency billing auditor"`
	Account   string     `json:"account,omitempty" doc:"Of the roles that act for one account"`
	Label     string     `json:"label"`
	Hint      string     `json:"hint" doc:"Prefix and last four characters"`
	Token     string     `json:"token,omitempty" doc:"The token, at creation only"`
	Created   time.Time  `json:"cree_le"`
	CreatedBy string     `json:"cree_par"`
	Revoked   time.Time  `json:"revoque_le,omitzero"`
	RevokedBy string     `json:"revoque_par,omitempty"`
	Reason    string     `json:"raison,omitempty"`
	Omitted   []string   `json:"champs_omis,omitempty" doc:"Members that are left out because the account's data key could not be had at once: a revocation does not wait for the vault. A reason that is left out is not kept"`
	Invited   time.Time  `json:"invitation_jusqu_au,omitzero" doc:"In lists: until when the link of the invitation that made it opens a session; absent once it was used or has expired"`
}

// AreaTokens is GET /tokens.
type AreaTokens struct {
	Envelope
	Results []AreaToken `json:"results"`
	Cursor  string      `json:"curseur,omitempty" doc:"Asks for what follows; absent on the last page"`
}
