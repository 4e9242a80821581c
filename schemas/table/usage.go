package table

// UsagePeriod is the row of a contract's period: one for each usage stream that was opened.
type UsagePeriod struct {
	Stream      string
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
	Revision    int64  // of the last event of the stream that the row contains
	PeriodState string // the folded stream up to Revision: a usage.balanced event as JSON
}

// UsageLine is how many requests of an account with a key to an endpoint count on a day, for a contract's period.
type UsageLine struct {
	First    string // names the period
	Account  string
	Contract string
	Day      string
	Key      string
	Endpoint string // GET /me
	Requests int64
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
			{"revision", Integer}, {"book", Text},
		}},
		Fields: func(p *UsagePeriod) []any {
			return []any{&p.Stream, &p.Contract, &p.First, &p.Next, &p.Cap, &p.Used,
				&p.Opened, &p.Closed, &p.Total, &p.Lines, &p.Digest, &p.Revision, &p.PeriodState}
		},
	}
	UsageLines = Table[UsageLine]{
		Def: Def{Name: "usage_line", KeyColumns: 6, SumColumns: []string{"requests"}, Columns: []Column{
			{"first", Text}, {"account", Text}, {"contract", Text}, {"day", Text}, {"api_key", Text}, {"endpoint", Text},
			{"requests", Integer},
		}},
		Fields: func(l *UsageLine) []any {
			return []any{&l.First, &l.Account, &l.Contract, &l.Day, &l.Key, &l.Endpoint, &l.Requests}
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
	Name: "usage", Version: 2,
	Tables: []Def{UsagePeriods.Def, UsageLines.Def, KeyUses.Def},
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
