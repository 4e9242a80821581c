package table

// Entry is one event as an auditor reads it. It holds nothing personal, nothing secret and no hash.
type Entry struct {
	Position   int64 // in the log: what orders the trail
	Account    string
	Recorded   Instant
	Type       string // the event's wire name
	Kind       string // KindKeys, KindAccount or KindToken
	Subject    string // the id of the key, the account or the token
	Actor      string
	OnBehalfOf string
	Reason     string
	Sentence   string
	Data       string // the event as JSON
}

// Kinds of entries: what they are about.
const (
	KindKeys    = "keys"
	KindAccount = "account"
	KindToken   = "token"
)

// Entries is the table of the history.
var Entries = Table[Entry]{
	Def: Def{Name: "entry", View: "history", Key: 1, Indexes: []string{"account, position"}, Columns: []Column{
		{"position", Integer}, {"account", Text}, {"recorded", Moment}, {"type", Text}, {"kind", Text}, {"subject", Text},
		{"actor", Text}, {"on_behalf_of", Text}, {"reason", Text}, {"sentence", Text}, {"data", Text},
	}},
	Fields: func(e *Entry) []any {
		return []any{&e.Position, &e.Account, &e.Recorded, &e.Type, &e.Kind, &e.Subject,
			&e.Actor, &e.OnBehalfOf, &e.Reason, &e.Sentence, &e.Data}
	},
}

// History is the read model of the trail: one row an event.
var History = Model{Name: "history", Version: 1, Tables: []Def{Entries.Def}}
