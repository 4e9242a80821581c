package table

// UsagePeriod is a contract's period: one row for each stream of usage that was opened.
type UsagePeriod struct {
	Stream      string
	Contract    string
	First       string // first day, 2026-11-21: what the period is called
	Next        string // first day of the period after it
	Cap         int64  // of the contract, all accounts together
	Used        int64  // what was counted against it
	Opened      Instant
	Closed      Instant
	Total       int64 // the three that it was closed with
	Lines       int64
	Digest      string // in hexadecimal digits
	Revision    int64  // of the last event of the stream that is in here
	PeriodState string // the state of the stream as of then: a usage.balanced event as JSON
}

// UsageLine is how many requests of an account with a key to an endpoint count on a day, for a contract's period.
type UsageLine struct {
	First    string // the period
	Account  string
	Contract string
	Day      string
	Key      string
	Endpoint string // GET /me
	Requests int64
}

// KeyUse is when a key's last request that counts was recorded.
type KeyUse struct {
	Key      string
	Account  string
	LastUsed Instant
}

// UsagePeriods, UsageLines and KeyUses are the tables of usage.
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

// UsageModel is the read model of what was counted. For people who ask the database itself it has four views, in French as
// the customer area is:
//
//	usage_par_jour     compte, contrat, periode, jour, cle, endpoint, requetes      what an invoice is made of
//	usage_par_periode  compte, contrat, periode, requetes                           the sums of it
//	usage_periodes     contrat, periode, fin, limite, utilise, restant, ouverte_le, close_le, total, lignes, empreinte
//	usage_des_cles     cle, compte, utilise_le                                      the last request that counted
//
// A period is called by its first day; fin is the first day after it. utilise is what was held against limite; total, lignes
// and empreinte are what the period was closed with, and later corrections are in usage_par_jour alone.
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
