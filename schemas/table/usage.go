package table

// UsagePeriod is the row of a contract's period: one for each period that was opened.
type UsagePeriod struct {
	Stream      string // the period's own
	Contract    string
	First       string // first day, 2026-11-21; it names the period
	Next        string // first day of the period after it
	Cap         int64  // requests that the contract may use, all its accounts together
	Used        int64  // requests counted against Cap
	Opened      Instant
	Closed      Instant
	Total       int64 // Total, Lines and Digest are those of the closing event, without later corrections
	Lines       int64
	Digest      string // in hexadecimal digits
	Revision    int64  // of the last event about the period that the row contains, in the stream in which the period is counted
	PeriodState string // the folded stream up to Revision: a usage.balanced event as JSON
	Shared      string // the shared stream in which the period is counted, or "" if that is its own stream
	Ended       Instant
	OwnRevision int64 // of the last event of the own stream that the row contains, if the period is counted in a shared one
}

// Entries is how many events of its streams the row contains: it grows whenever a line changes.
func (p UsagePeriod) Entries() int64 {
	if p.Shared == "" {
		return p.Revision + 1
	}
	return p.Revision + 1 + p.OwnRevision + 1
}

// UsageCountedIn names the shared stream in which a period is counted.
type UsageCountedIn struct {
	Stream   string // the period's own
	Shared   string
	Revision int64 // of the last event of the own stream that the rows contain
}

// SharedUsageStream is the row of a stream that several periods share.
type SharedUsageStream struct {
	Stream    string
	Revision  int64 // of the last event that the rows contain
	Keys      int64 // that have numbers
	Endpoints int64
}

// SharedUsageNumber is the number that a key or an endpoint has in a shared stream.
type SharedUsageNumber struct {
	ID       string // SharedUsageID of the stream, k or e, and the number
	Name     string // the key's id, or the endpoint
	Account  string // of the key; "" for an endpoint, as are the others
	Contract string
	First    string
	Number   int64
}

// SharedUsageSequence is the last sequence of an instance's ticks in a shared stream.
type SharedUsageSequence struct {
	ID         string // SharedUsageID of the stream and the instance
	InstanceID string
	Sequence   int64
}

// SharedUsageID is the key of a row about something in a shared stream.
func SharedUsageID(stream, what string) string { return stream + "#" + what }

// UsageLine is how many requests of an account with a key to an endpoint count on a day, for a contract's period.
type UsageLine struct {
	First    string // names the period
	Account  string
	Contract string
	Day      string
	Key      string
	Endpoint string // GET /me
	Requests int64

	// The revisions of the first and the last event of the line in the shared stream in which it is counted; 0 if there is none.
	SharedFrom, SharedTo int64
}

// KeyUse is when the last counted request with a key was recorded.
type KeyUse struct {
	Key      string
	Account  string
	LastUsed Instant
}

// Tables of UsageModel.
var (
	UsagePeriods = Table[UsagePeriod]{
		Def: Def{Name: "usage_period", KeyColumns: 1, Indexes: []string{"contract, first"}, Columns: []Column{
			{"stream", Text}, {"contract", Text}, {"first", Text}, {"next", Text}, {"cap", Integer}, {"used", Integer},
			{"opened", Timestamp}, {"closed", Timestamp}, {"total", Integer}, {"lines", Integer}, {"digest", Text},
			{"revision", Integer}, {"book", Text}, {"shared", Text}, {"ended", Timestamp}, {"own_revision", Integer},
		}},
		Fields: func(p *UsagePeriod) []any {
			return []any{&p.Stream, &p.Contract, &p.First, &p.Next, &p.Cap, &p.Used,
				&p.Opened, &p.Closed, &p.Total, &p.Lines, &p.Digest, &p.Revision, &p.PeriodState,
				&p.Shared, &p.Ended, &p.OwnRevision}
		},
	}
	UsageCountedIns = Table[UsageCountedIn]{
		Def:    Def{Name: "usage_counted_in", KeyColumns: 1, Columns: []Column{{"stream", Text}, {"shared", Text}, {"revision", Integer}}},
		Fields: func(c *UsageCountedIn) []any { return []any{&c.Stream, &c.Shared, &c.Revision} },
	}
	SharedUsageStreams = Table[SharedUsageStream]{
		Def: Def{Name: "usage_shared_stream", KeyColumns: 1, Columns: []Column{
			{"stream", Text}, {"revision", Integer}, {"keys", Integer}, {"endpoints", Integer},
		}},
		Fields: func(s *SharedUsageStream) []any { return []any{&s.Stream, &s.Revision, &s.Keys, &s.Endpoints} },
	}
	SharedUsageNumbers = Table[SharedUsageNumber]{
		Def: Def{Name: "usage_shared_number", KeyColumns: 1, Indexes: []string{"name"}, Columns: []Column{
			{"id", Text}, {"name", Text}, {"account", Text}, {"contract", Text}, {"first", Text}, {"number", Integer},
		}},
		Fields: func(n *SharedUsageNumber) []any {
			return []any{&n.ID, &n.Name, &n.Account, &n.Contract, &n.First, &n.Number}
		},
	}
	SharedUsageSequences = Table[SharedUsageSequence]{
		Def: Def{Name: "usage_shared_sequence", KeyColumns: 1, Columns: []Column{
			{"id", Text}, {"incarnation", Text}, {"sequence", Integer},
		}},
		Fields: func(s *SharedUsageSequence) []any { return []any{&s.ID, &s.InstanceID, &s.Sequence} },
	}
	UsageLines = Table[UsageLine]{
		Def: Def{Name: "usage_line", KeyColumns: 6, SumColumns: []string{"requests"}, MinColumns: []string{"shared_from"}, MaxColumns: []string{"shared_to"}, Columns: []Column{
			{"first", Text}, {"account", Text}, {"contract", Text}, {"day", Text}, {"api_key", Text}, {"endpoint", Text},
			{"requests", Integer}, {"shared_from", Integer}, {"shared_to", Integer},
		}},
		Fields: func(l *UsageLine) []any {
			return []any{&l.First, &l.Account, &l.Contract, &l.Day, &l.Key, &l.Endpoint, &l.Requests, &l.SharedFrom, &l.SharedTo}
		},
	}
	KeyUses = Table[KeyUse]{
		Def: Def{Name: "key_use", KeyColumns: 1, MaxColumns: []string{"last"}, Columns: []Column{
			{"api_key", Text}, {"account", Text}, {"last", Timestamp},
		}},
		Fields: func(u *KeyUse) []any { return []any{&u.Key, &u.Account, &u.LastUsed} },
	}
)

// UsageModel is the read model of what was counted. For people who query the database themselves it has four views, in
// French as the customer area is:
//
//	usage_par_jour     compte, contrat, periode, jour, cle, endpoint, requetes      what an invoice is made of
//	usage_par_periode  compte, contrat, periode, requetes                           its sums
//	usage_periodes     contrat, periode, fin, limite, utilise, restant, ouverte_le, close_le, total, lignes, empreinte
//	usage_des_cles     cle, compte, utilise_le                                      the last request that counted
//
// A period is named by its first day; fin is the first day after it. utilise counts against limite. total, lignes and
// empreinte are those of the closing; later corrections are in usage_par_jour alone.
var UsageModel = ReadModel{
	Name: "usage", Version: 4,
	Tables: []Def{UsagePeriods.Def, UsageLines.Def, KeyUses.Def, UsageCountedIns.Def, SharedUsageStreams.Def, SharedUsageNumbers.Def, SharedUsageSequences.Def},
	Views: []View{
		{"usage_par_jour", `select account as compte, contract as contrat, first as periode, day as jour, api_key as cle, endpoint, requests as requetes
			from {usage_line} where requests <> 0`},
		{"usage_par_periode", `select account as compte, contract as contrat, first as periode, sum(requests) as requetes
			from {usage_line} group by account, contract, first having sum(requests) <> 0`},
		{"usage_periodes", `select contract as contrat, first as periode, next as fin, cap as limite, used as utilise,
			case when cap > used then cap - used else 0 end as restant,
			{time:opened} as ouverte_le, {time:closed} as close_le, total, lines as lignes, digest as empreinte
			from {usage_period}`},
		{"usage_des_cles", `select api_key as cle, account as compte, {time:last} as utilise_le from {key_use}`},
	},
}
