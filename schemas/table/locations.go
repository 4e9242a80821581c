package table

import "strings"

// Referential is the row of a referential: a named group of an account's sites.
type Referential struct {
	ID          string // ReferentialID
	Account     string
	Code        string
	Name        string // personal
	Created     Instant
	Archived    Instant
	ActiveSites int64   // how many of its sites are active
	Position    int64   // of the event that changed it last
	Changed     int64   // of the event that opened, renamed or archived it last
	Modified    Instant // when that was
}

// Referentials is the table of referentials.
var Referentials = Table[Referential]{
	Def: Def{Name: "referential", ViewName: "referentials", KeyColumns: 1, Indexes: []string{"account, code"}, PersonalColumns: []string{"name"}, Columns: []Column{
		{"id", Text}, {"account", Text}, {"code", Text}, {"name", Text}, {"created", Timestamp}, {"archived", Timestamp},
		{"active", Integer}, {"position", Integer}, {"changed", Integer}, {"modified", Timestamp},
	}},
	Fields: func(r *Referential) []any {
		return []any{&r.ID, &r.Account, &r.Code, &r.Name, &r.Created, &r.Archived, &r.ActiveSites, &r.Position, &r.Changed, &r.Modified}
	},
}

// Site is the row of a site, as it is now.
type Site struct {
	ID          string // SiteID
	Account     string
	Referential string // its code
	ExternalID  string
	PublicID    string // its id in the API
	Active      bool
	Version     int64
	Content     string // locations.StoredSite as JSON; "" if the account's key was destroyed
	Created     Instant
	Modified    Instant
	Deactivated Instant
	Position    int64 // of the event that changed it last
}

// Sites is the table of sites. The key orders those of a referential by external id. The index finds an account's changes
// after a position.
var Sites = Table[Site]{
	Def: Def{Name: "site", ViewName: "sites", KeyColumns: 1, Indexes: []string{"account, position"}, PersonalColumns: []string{"content"}, Columns: []Column{
		{"id", Text}, {"account", Text}, {"referential", Text}, {"external_id", Text}, {"site", Text}, {"active", Boolean},
		{"version", Integer}, {"content", Text}, {"created", Timestamp}, {"modified", Timestamp}, {"deactivated", Timestamp}, {"position", Integer},
	}},
	Fields: func(s *Site) []any {
		return []any{&s.ID, &s.Account, &s.Referential, &s.ExternalID, &s.PublicID, &s.Active,
			&s.Version, &s.Content, &s.Created, &s.Modified, &s.Deactivated, &s.Position}
	},
}

// OutboxEntry is a change that the external search index does not have yet: of one site, or of a whole account whose documents
// are to be deleted.
type OutboxEntry struct {
	ID       string // SiteID; or the id of an account and a slash
	Position int64  // of the last change: the entry is deleted only if no other came since; negative for a site that the index refused
}

// Outbox is the table of the changes that the search index does not have yet. It is empty if no search index is configured.
// Ids hold external ids, which an account may have made of names.
var Outbox = Table[OutboxEntry]{
	Def:    Def{Name: "outbox", KeyColumns: 1, Indexes: []string{"position"}, PersonalColumns: []string{"id"}, Columns: []Column{{"id", Text}, {"position", Integer}}},
	Fields: func(o *OutboxEntry) []any { return []any{&o.ID, &o.Position} },
}

// Erasure is an account whose sites were erased. Events from before the erasure that are folded later do not bring them back.
type Erasure struct {
	Stream   string // locations-{account}
	Position int64  // of the erasure
}

// Erasures is the table of erasures.
var Erasures = Table[Erasure]{
	Def:    Def{Name: "erasure", KeyColumns: 1, Columns: []Column{{"stream", Text}, {"position", Integer}}},
	Fields: func(e *Erasure) []any { return []any{&e.Stream, &e.Position} },
}

// LocationsModel is the read model of referentials and sites.
var LocationsModel = ReadModel{Name: "places", Version: 4, Tables: []Def{Referentials.Def, Sites.Def, Outbox.Def, Erasures.Def}}

// ReferentialID is the key of a referential's row. Neither accounts nor codes contain a slash.
func ReferentialID(account, code string) string { return account + "/" + code }

// SiteID is the key of a site's row. Its parts contain no slash.
func SiteID(account, code, externalID string) string {
	return strings.Join([]string{account, code, externalID}, "/")
}
