package body

import (
	"encoding/json"
	"time"

	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
)

// Incident is one line of an account's history: one event of the log, or what one event did to one site.
type Incident struct {
	Position   uint64          `json:"position" doc:"Place in the log; one event may have several lines"`
	Time       time.Time       `json:"le"`
	Type       string          `json:"type" doc:"The event's wire name"`
	Subject    string          `json:"sujet" doc:"What it is about: the id of a key, a token or the account, the code of a referential, or code/external_id for a site"`
	Author     string          `json:"auteur" doc:"Who did it: token:, key: and the id, or system"`
	AuthorName string          `json:"auteur_nom,omitempty" doc:"The label of that token or key"`
	AuthorRole grant.Role      `json:"auteur_role,omitempty" enum:"operator customer agency billing auditor" doc:"The role of that token"`
	OnBehalfOf string          `json:"pour,omitempty" doc:"The account an agency acted for"`
	Reason     string          `json:"raison,omitempty"`
	Sentence   string          `json:"phrase" doc:"What happened, for people; it follows on the author's name"`
	Data       json.RawMessage `json:"donnees" doc:"The event itself"`
}

// HistoryQuery is the query of GET /accounts/{id}/history.
type HistoryQuery struct {
	Kind     string    `json:"kind,omitempty" enum:"keys sites account token" doc:"Only what concerns keys, sites, the account itself, or its tokens and sessions"`
	Subject  string    `json:"sujet,omitempty" max:"200" doc:"Only what is about it: an id, the code of a referential, or code/external_id for a site"`
	From     time.Time `json:"from,omitzero" doc:"RFC 3339; nothing earlier"`
	To       time.Time `json:"to,omitzero" doc:"RFC 3339; only what is earlier"`
	Summary  bool      `json:"resume,omitempty" doc:"One entry an event, with counts: without an entry for each site of a sync"`
	Order    string    `json:"ordre,omitempty" enum:"ancien recent" default:"ancien" doc:"ancien: the oldest first; recent: the newest first. A page goes on from the one before in either order, whatever happens meanwhile"`
	Language string    `json:"langue,omitempty" enum:"en fr" default:"en" doc:"Of the sentences"`
	Limit    int       `json:"limit,omitempty" min:"1" max:"1000" default:"100"`
	Cursor   string    `json:"curseur,omitempty" max:"200" doc:"As the page before gave it, in the same order"`
}

// History is GET /accounts/{id}/history.
type History struct {
	Envelope
	Results []Incident `json:"results"`
	Cursor  string     `json:"curseur,omitempty" doc:"Asks for what follows; absent on the last page"`
}

// StateQuery is the query of GET /accounts/{id}/state.
type StateQuery struct {
	AsOf time.Time `json:"as_of,omitzero" doc:"RFC 3339; now when left out"`
}

// State is an account as it was at an instant, folded from its stream. Position is that of the last event in it.
type State struct {
	Account    string      `json:"compte"`
	AsOf       time.Time   `json:"as_of"`
	Position   uint64      `json:"position"`
	Name       string      `json:"nom"`
	Plan       plan.Name   `json:"plan" enum:"DISCOVERY STARTER GROWTH BUSINESS"`
	Quota      int64       `json:"quota"`
	Anchor     plan.Date   `json:"debut_periode"`
	Agency     string      `json:"agence_de,omitempty"`
	IsAgency   bool        `json:"agence"`
	NextTerms  *NextTerms  `json:"prochain,omitempty"`
	NextAgency *NextAgency `json:"prochaine_agence,omitempty"`
	Created    time.Time   `json:"cree_le"`
	Closed     time.Time   `json:"ferme_le,omitzero"`
	Keys       []Key       `json:"cles" doc:"Valid at that instant"`
}

// PageQuery is the query of the lists.
type PageQuery struct {
	Limit  int    `json:"limit,omitempty" min:"1" max:"1000" default:"100"`
	Cursor string `json:"curseur,omitempty" max:"200" doc:"As the page before gave it"`
}

// Projection is the status of one generation of a read model. A read model is tables that a projection makes from the log; a
// generation is one copy of them.
type Projection struct {
	Name       string `json:"name"`
	Version    int    `json:"version"`
	Generation string `json:"copie" doc:"Which copy: a rebuild fills a fresh one while the other serves"`
	State      string `json:"etat"`
	Position   uint64 `json:"position" doc:"Place in the log it has reached"`
	Lag        *int   `json:"retard,omitempty" doc:"Events of the log it does not hold yet, counted up to 10000; left out when that cannot be known"`
	Owner      string `json:"proprietaire" doc:"The instance that writes it"`
	Reason     string `json:"raison,omitempty" doc:"Why it stands still"`

	Stopped []StoppedAccount `json:"comptes_arretes,omitempty" doc:"Accounts whose rows it does not show, at most 100"`
}

// StoppedAccount is an account whose rows a generation of a read model does not serve, because an event of it cannot be used.
type StoppedAccount struct {
	Account  string `json:"compte" doc:"The account; for a customer-area token, /token- and its id"`
	Kind     string `json:"nature" enum:"unusable unreadable refold" doc:"unusable: an event cannot be used and waits for a repair. unreadable: a personal field cannot be opened for now. refold: its rows are being written again"`
	Stream   string `json:"flux"`
	Revision int64  `json:"revision"`
	Position uint64 `json:"position" doc:"Place in the log of the event that stopped it"`
	Reason   string `json:"raison"`
}

// Repair is POST /projections:repair. It voids the events of an account, or of a token, that no fold can use.
type Repair struct {
	Account string `json:"compte" pattern:"^(/token-)?[a-z0-9-]{1,64}$" doc:"As comptes_arretes and readiness name it"`
	Reason  string `json:"motif,omitempty" max:"500" doc:"Of an account it goes with an erasure of the account; of a token it stays on the log: name nobody"`
}

// Repaired lists what a repair voided.
type Repaired struct {
	Envelope
	Results []VoidedEvent `json:"results"`
}

// VoidedEvent is an event that every fold skips from now on, because it cannot be used.
type VoidedEvent struct {
	Stream   string `json:"flux"`
	Revision int64  `json:"revision"`
	Position uint64 `json:"position"`
	EventID  string `json:"evenement" doc:"Its id"`
	Type     string `json:"type"`
	Reason   string `json:"raison"`
}

// Projections is GET /projections.
type Projections struct {
	Envelope
	Results []Projection `json:"results"`
}
