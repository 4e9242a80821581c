package table

// AuditEntry is an event as an auditor reads it, or the event's effect on one site. It holds nothing personal, nothing secret
// and no complete hash of a key or token. The personal texts of an event are its AuditText.
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
	Sentence   string
	Data       string // the event as JSON, its personal texts empty
}

// AuditText is the personal part of an event: the texts that people typed. It has its own table because an erasure deletes its
// rows and rewrites the table, which would take long for all entries.
type AuditText struct {
	Position int64  // of the event in the log
	Owner    string // StreamOwner of the event's stream
	Account  string // in whose audit trail the event is shown
	Reason   string
	Data     string // the event as JSON with its personal texts; "" if it has none
}

// Kinds of entries: what an entry is about.
const (
	AuditKindKeys    = "keys"
	AuditKindSites   = "sites"
	AuditKindAccount = "account"
	AuditKindToken   = "token"
)

// Tables of AuditModel. Both indexes of AuditEntries answer pages of one account.
var (
	AuditEntries = Table[AuditEntry]{
		Def: Def{Name: "entry", KeyColumns: 2, Indexes: []string{"account, position, part", "account, subject, position, part"}, Columns: []Column{
			{"position", Integer}, {"part", Integer}, {"account", Text}, {"recorded", Timestamp}, {"type", Text}, {"kind", Text}, {"subject", Text},
			{"actor", Text}, {"on_behalf_of", Text}, {"sentence", Text}, {"data", Text},
		}},
		Fields: func(e *AuditEntry) []any {
			return []any{&e.Position, &e.Part, &e.Account, &e.Recorded, &e.Type, &e.Kind, &e.Subject,
				&e.Actor, &e.OnBehalfOf, &e.Sentence, &e.Data}
		},
	}
	AuditTexts = Table[AuditText]{
		Def: Def{Name: "entry_text", KeyColumns: 1, Indexes: []string{"account", "owner"}, PersonalColumns: []string{"reason", "data"}, Columns: []Column{
			{"position", Integer}, {"owner", Text}, {"account", Text}, {"reason", Text}, {"data", Text},
		}},
		Fields: func(t *AuditText) []any { return []any{&t.Position, &t.Owner, &t.Account, &t.Reason, &t.Data} },
	}
)

// AuditModel is the read model of the audit trail. For people who query the database themselves it has the view history.
var AuditModel = ReadModel{
	Name: "history", Version: 5,
	Tables: []Def{AuditEntries.Def, AuditTexts.Def},
	Views: []View{{"history", `select e.position, e.part, e.account, {time:e.recorded} as recorded, e.type, e.kind, e.subject, e.actor, e.on_behalf_of,
		coalesce(t.reason, '') as reason, e.sentence, coalesce(nullif(t.data, ''), e.data) as data
		from {entry} e left join {entry_text} t on t.position = e.position`}},
}

// AuditSiteSubject is the Subject of entries about one site.
func AuditSiteSubject(code, externalID string) string { return code + "/" + externalID }
