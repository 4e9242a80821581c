package table

// AuditEntry is one event as an auditor reads it, or what one event did to one site. It holds nothing personal, nothing secret and
// no hash.
type AuditEntry struct {
	Position   int64 // in the log: what orders the trail,
	Part       int64 // with this among what one event did; 0 for the event as a whole
	Account    string
	Recorded   Instant
	Type       string // the event's wire name
	Kind       string // KindKeys, KindSites, KindAccount or KindToken
	Subject    string // the id of the key, the account or the token; the referential's code, or SiteSubject
	Actor      string
	OnBehalfOf string
	Reason     string
	Sentence   string
	Data       string // the event as JSON
}

// Kinds of entries: what they are about.
const (
	AuditKindKeys    = "keys"
	AuditKindSites   = "sites"
	AuditKindAccount = "account"
	AuditKindToken   = "token"
)

// AuditEntries is the table of the history.
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

// AuditModel is the read model of the trail: one row an event, and one for every site that an event changed.
var AuditModel = ReadModel{Name: "history", Version: 3, Tables: []Def{AuditEntries.Def}}

// AuditSiteSubject is what entries about a site have as their subject.
func AuditSiteSubject(code, externalID string) string { return code + "/" + externalID }
