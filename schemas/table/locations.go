package table

import "strings"

// Referential is a group of an account's sites.
type Referential struct {
	ID          string // RefID
	Account     string
	Code        string
	Name        string
	Created     Instant
	Archived    Instant
	ActiveSites int64 // active sites
	Position    int64 // of the event that changed it last
}

// Referentials is the table of referentials.
var Referentials = Table[Referential]{
	Def: Def{Name: "referential", ViewName: "referentials", KeyColumns: 1, Indexes: []string{"account, code"}, Columns: []Column{
		{"id", Text}, {"account", Text}, {"code", Text}, {"name", Text}, {"created", Timestamp}, {"archived", Timestamp},
		{"active", Integer}, {"position", Integer},
	}},
	Fields: func(r *Referential) []any {
		return []any{&r.ID, &r.Account, &r.Code, &r.Name, &r.Created, &r.Archived, &r.ActiveSites, &r.Position}
	},
}

// Site is one site as it stands.
type Site struct {
	ID          string // SiteID
	Account     string
	Referential string // its code
	ExternalID  string
	PublicID    string // its id in the API
	Active      bool
	Version     int64
	Content     string // site.Stored as JSON
	Created     Instant
	Modified    Instant
	Deactivated Instant
	Position    int64 // of the event that changed it last
}

// Sites is the table of sites. Those of a referential are next to each other in the order of the key, which is that of their
// external ids; those of an account are read again after a position.
var Sites = Table[Site]{
	Def: Def{Name: "site", ViewName: "sites", KeyColumns: 1, Indexes: []string{"account, position"}, Columns: []Column{
		{"id", Text}, {"account", Text}, {"referential", Text}, {"external_id", Text}, {"site", Text}, {"active", Boolean},
		{"version", Integer}, {"content", Text}, {"created", Timestamp}, {"modified", Timestamp}, {"deactivated", Timestamp}, {"position", Integer},
	}},
	Fields: func(s *Site) []any {
		return []any{&s.ID, &s.Account, &s.Referential, &s.ExternalID, &s.PublicID, &s.Active,
			&s.Version, &s.Content, &s.Created, &s.Modified, &s.Deactivated, &s.Position}
	},
}

// OutboxEntry is a site, or a whole account, that a search engine outside has not been told of yet.
type OutboxEntry struct {
	ID       string // SiteID; or an account and a slash, for an account whose documents are to go
	Position int64  // of the last change: what is told is deleted only if there was none since
}

// Outbox is the table of what is still to be told. It is filled where there is such an engine.
var Outbox = Table[OutboxEntry]{
	Def:    Def{Name: "outbox", KeyColumns: 1, Indexes: []string{"position"}, Columns: []Column{{"id", Text}, {"position", Integer}}},
	Fields: func(o *OutboxEntry) []any { return []any{&o.ID, &o.Position} },
}

// Erasure is an account whose sites were erased: what was under way meanwhile does not bring them back.
type Erasure struct {
	Stream   string // of the account's places
	Position int64  // of the erasure
}

// Erasures is the table of erasures.
var Erasures = Table[Erasure]{
	Def:    Def{Name: "erasure", KeyColumns: 1, Columns: []Column{{"stream", Text}, {"position", Integer}}},
	Fields: func(e *Erasure) []any { return []any{&e.Stream, &e.Position} },
}

// LocationsModel is the read model of referentials and sites.
var LocationsModel = ReadModel{Name: "places", Version: 2, Tables: []Def{Referentials.Def, Sites.Def, Outbox.Def, Erasures.Def}}

// ReferentialID is the key of a referential's row. Neither accounts nor codes have a slash in them.
func ReferentialID(account, code string) string { return account + "/" + code }

// SiteID is the key of a site's row.
func SiteID(account, code, externalID string) string {
	return strings.Join([]string{account, code, externalID}, "/")
}
