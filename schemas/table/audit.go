package table

// AuditEntry is an event as an auditor reads it, or what the event did to one site. It holds nothing personal, nothing
// secret and no whole hash of a key or token.
type AuditEntry struct {
	Position   int64  // of the event in the log; entries are ordered by Position, then by Part
	Part       int64  // 0 for the event as a whole, then 1, 2… for what it did to each site
	Account    string // in whose audit trail the entry is shown
	Recorded   Instant
	Type       string // the event's wire name
	Kind       string // one of AuditKind…
	Subject    string // the id of the key, the account or the token; the referential's code, or AuditSiteSubject
	Actor      string
	OnBehalfOf string
	Reason     string
	Sentence   string
	Data       string // the event as JSON
}

// Kinds of entries: what an entry is about.
const (
	AuditKindKeys    = "keys"
	AuditKindSites   = "sites"
	AuditKindAccount = "account"
	AuditKindToken   = "token"
)

// AuditEntries is the table of AuditModel. Both indexes answer pages of one account.
var AuditEntries = Table[AuditEntry]{
	Def: Def{Name: "entry", ViewName: "history", KeyColumns: 2, Indexes: []string{"account, position, part", "account, subject, position, part"}, Columns: []Column{
		{"position", Integer}, {"part", Integer}, {"account", Text}, {"recorded", Timestamp}, {"type", Text}, {"kind", Text}, {"subject", Text},
		{"actor", Text}, {"on_behalf_of", Text}, {"reason", Text}, {"sentence", Text}, {"data", Text},
	}},
	Fields: func(e *AuditEntry) []any {
		return []any{&e.Position, &e.Part, &e.Account, &e.Recorded, &e.Type, &e.Kind, &e.Subject,
			&e.Actor, &e.OnBehalfOf, &e.Reason, &e.Sentence, &e.Data}
	},
}

// AuditModel is the read model of the audit trail.
var AuditModel = ReadModel{Name: "history", Version: 3, Tables: []Def{AuditEntries.Def}}

// AuditSiteSubject is the Subject of entries about one site.
func AuditSiteSubject(code, externalID string) string { return code + "/" + externalID }
