package body

import (
	"time"

	"lieudit/schemas/plan"
)

// A contract is the account that pays for requests: an account by itself, or an agency for its sub-clients. A period is a month
// of a contract; its name is its first day.

// UsageQuery is the query of GET /accounts/{id}/usage.
type UsageQuery struct {
	Period  string   `json:"period,omitempty" pattern:"^[0-9]{4}-[0-9]{2}(-[0-9]{2})?$" doc:"First day of the period, or the month it begins in (2026-11); the running one when left out"`
	GroupBy []string `json:"by,omitempty" enum:"key endpoint day" max:"3" doc:"What the lines keep apart, all three when left out; repeated or separated by commas"`
	UsageFilter
	Format     string `json:"format,omitempty" enum:"csv json" default:"json" doc:"CSV has a line for each of lignes, with the columns of GET /usage and the label of the key"`
	CSVDialect string `json:"tableur,omitempty" enum:"standard excel" doc:"Of CSV: RFC 4180, or as a French Excel opens it (UTF-8 with a mark, semicolons). When left out, excel for who prefers French by Accept-Language"`
}

// UsageFilter chooses some of the lines of an account.
type UsageFilter struct {
	Key      string    `json:"cle,omitempty" max:"100" doc:"Only the lines of a key, by its id"`
	Endpoint string    `json:"endpoint,omitempty" max:"100" doc:"Only the lines of an endpoint, such as GET /me"`
	Day      plan.Date `json:"jour,omitzero" doc:"Only the lines of a day"`
}

// Usage is GET /accounts/{id}/usage.
type Usage struct {
	Period plan.Date `json:"periode" doc:"What the period is called: its first day"`
	Interval
	Agency    string      `json:"agence_de,omitempty" doc:"The agency whose contract it counts for"`
	Limit     int64       `json:"limite" doc:"Requests of the account in the period"`
	Total     int64       `json:"total" doc:"What counts, with later corrections"`
	Remaining int64       `json:"restant" doc:"What may still count; of a sub-client no more than its agency has left"`
	Closed    time.Time   `json:"close_le,omitzero" doc:"Since when only corrections change it"`
	State     PeriodState `json:"etat" enum:"en_cours a_clore close" doc:"en_cours: the period is running, more is counted; a_clore: it has ended, and what is late is still counted until it is closed, an hour later; close: only corrections change it"`
	Lines     []UsageLine `json:"lignes" doc:"Their requests add up to total, unless the request chooses some of them"`
	Position  int64       `json:"position,omitempty" doc:"How many entries the record of the period has: while it is the same, so are the figures. Left out for a customer whose agency pays, because the record is of all its agency's customers"`
}

// UsagePeriods is GET /accounts/{id}/usage/periods: the running period, and those in which something was counted.
type UsagePeriods struct {
	Envelope
	Results []UsagePeriod `json:"results" doc:"The latest first"`
}

// UsagePeriod is a period of an account.
type UsagePeriod struct {
	Period plan.Date `json:"periode" doc:"What the period is called: its first day"`
	Interval
	Agency string      `json:"agence_de,omitempty" doc:"The agency whose contract it counts for"`
	Closed time.Time   `json:"close_le,omitzero" doc:"Since when only corrections change it"`
	State  PeriodState `json:"etat" enum:"en_cours a_clore close"`
}

// UsageCountsQuery is the query of GET /accounts/{id}/usage/lines.
type UsageCountsQuery struct {
	Period string `json:"period,omitempty" pattern:"^[0-9]{4}-[0-9]{2}(-[0-9]{2})?$" doc:"First day of the period, or the month it begins in (2026-11); the running one when left out"`
	UsageFilter
	Kind string `json:"nature,omitempty" enum:"comptage reprise correction" doc:"Only entries of a kind"`
	PageQuery
}

// UsageCounts is GET /accounts/{id}/usage/lines: what the figures of a period are made of, as the log holds it.
type UsageCounts struct {
	Envelope
	Results []UsageCount `json:"results" doc:"In the order in which they were counted; on all pages together, their requests add up to those of the same lines of GET /accounts/{id}/usage"`
	Cursor  string       `json:"curseur,omitempty" doc:"Asks for what follows; absent on the last page"`
}

// UsageCount is what the log holds at one place for a key, an endpoint and a day of an account.
type UsageCount struct {
	Recorded time.Time `json:"compte_le" doc:"When it was written down. Requests of a moment are written down together, at most a few tenths of a second later"`
	Kind     CountKind `json:"nature" enum:"comptage reprise correction" doc:"comptage: requests were counted; reprise: counted ones were taken back, because they got no proper answer; correction: billing corrected the closed period"`
	Day      plan.Date `json:"jour"`
	Key      string    `json:"cle" doc:"The key's id"`
	Endpoint string    `json:"endpoint" doc:"Such as GET /me"`
	Requests int64     `json:"requetes" doc:"Negative when taken away"`
	Reason   string    `json:"reason,omitempty" doc:"Of a correction"`
	Position int64     `json:"position,omitempty" doc:"Where it is on the usage log; for operators and auditors alone, because counts of other accounts may be at the same place"`
}

// CountKind is what a UsageCount does.
type CountKind string

const (
	CountTicked   CountKind = "comptage"
	CountRefunded CountKind = "reprise"
	CountAdjusted CountKind = "correction"
)

// PeriodState is how far a period is.
type PeriodState string

const (
	PeriodRunning PeriodState = "en_cours" // more is counted
	PeriodEnded   PeriodState = "a_clore"  // what is late is counted
	PeriodClosed  PeriodState = "close"    // only corrections change it
)

// PeriodStateAt is the state of a period by the first instant after it. It is running if that is not known.
func PeriodStateAt(now, end time.Time, isClosed bool) PeriodState {
	switch {
	case isClosed:
		return PeriodClosed
	case end.IsZero() || now.Before(end):
		return PeriodRunning
	}
	return PeriodEnded
}

// UsageLine is how many requests count, with the dimensions that the request groups by.
type UsageLine struct {
	Day      plan.Date `json:"jour,omitzero"`
	Key      string    `json:"cle,omitempty" doc:"The key's id"`
	Endpoint string    `json:"endpoint,omitempty" doc:"Such as GET /me"`
	Requests int64     `json:"requetes"`
}

// ExportQuery is the query of GET /usage.
type ExportQuery struct {
	Period     string `json:"period,omitempty" pattern:"^[0-9]{4}-[0-9]{2}(-[0-9]{2})?$" doc:"First day of the periods, or the month they begin in (2026-11); all periods when left out"`
	Format     string `json:"format,omitempty" enum:"csv json ndjson" default:"json"`
	CSVDialect string `json:"tableur,omitempty" enum:"standard excel" doc:"Of CSV: RFC 4180, or as a French Excel opens it (UTF-8 with a mark, semicolons). When left out, excel for who prefers French by Accept-Language"`
}

// BilledUsage is GET /usage as JSON. As CSV and NDJSON it has the same lines without the envelope.
type BilledUsage struct {
	Envelope
	Results []BilledLine `json:"results"`
}

// BilledLine is a line of an invoice: how many requests one key of one account made to one endpoint on one day. Days are those of
// Europe/Paris.
type BilledLine struct {
	Account  string      `json:"compte"`
	Contract string      `json:"contrat" doc:"The account that pays: itself, or its agency"`
	Period   string      `json:"periode" doc:"Its first day"`
	Day      string      `json:"jour"`
	Key      string      `json:"cle" doc:"The key's id"`
	Endpoint string      `json:"endpoint"`
	Requests int64       `json:"requetes"`
	State    PeriodState `json:"etat,omitempty" enum:"en_cours a_clore close" doc:"Of the period: en_cours, it is running, more is counted; a_clore, it has ended and is closed an hour later; close, only corrections change it. The last column of CSV"`
}

// PeriodsQuery is the query of GET /usage/periods.
type PeriodsQuery struct {
	Period string `json:"period,omitempty" pattern:"^[0-9]{4}-[0-9]{2}(-[0-9]{2})?$" doc:"First day of the periods, or the month they begin in (2026-11); all periods when left out"`
	PageQuery
}

// Periods is GET /usage/periods.
type Periods struct {
	Envelope
	Results []Period `json:"results" doc:"The last to begin comes first"`
	Cursor  string   `json:"curseur,omitempty" doc:"Asks for what follows; absent on the last page"`
}

// Period is a period of a contract in which requests were counted.
type Period struct {
	Contract string    `json:"contrat" doc:"The account that pays"`
	Period   plan.Date `json:"periode" doc:"What the period is called: its first day"`
	Interval
	Limit    int64       `json:"limite" doc:"Requests of the contract in the period"`
	Requests int64       `json:"requetes" doc:"What counts for all its accounts, with later corrections"`
	Closed   time.Time   `json:"close_le,omitzero" doc:"Since when only corrections change it"`
	State    PeriodState `json:"etat" enum:"en_cours a_clore close" doc:"en_cours: it is running, more is counted; a_clore: it has ended and is closed an hour later; close: only corrections change it"`
}

// ReconcileUsage is POST /usage:reconcile.
type ReconcileUsage struct {
	Period string `json:"period,omitempty" pattern:"^[0-9]{4}-[0-9]{2}(-[0-9]{2})?$" doc:"First day of the periods, or the month they begin in (2026-11); all periods when left out"`
}

// Reconciliation compares the usage on the log, folded from its first event, with the usage that is shown and billed.
type Reconciliation struct {
	Periods     int               `json:"periodes" doc:"Periods of contracts that were compared"`
	Lines       int               `json:"lignes" doc:"Lines the log has in them"`
	Requests    int64             `json:"requetes" doc:"The sum of those"`
	Differences []UsageDifference `json:"differences" doc:"Empty when all agrees"`
	Unanswered  []Unanswered      `json:"sans_reponse" doc:"What may have been billed and not answered, by the instance that counted it"`
}

// UsageDifference is one value on which the log and the read model differ. Kind names the value; of the fields from Day to
// Endpoint those are set that identify it.
type UsageDifference struct {
	Contract string    `json:"contrat" doc:"Empty for a solde of a stream that several contracts share"`
	Period   string    `json:"periode" doc:"The period's first day; for such a stream the month in which its periods begin"`
	Kind     string    `json:"objet" enum:"ligne utilise limite total lignes empreinte solde cloture periode retard" doc:"What differs; solde and cloture are what the log says of itself at a revision"`
	Day      plan.Date `json:"jour,omitzero"`
	Account  string    `json:"compte,omitempty"`
	Key      string    `json:"cle,omitempty"`
	Endpoint string    `json:"endpoint,omitempty"`
	InLog    string    `json:"journal" doc:"What the log comes to"`
	Shown    string    `json:"lu" doc:"What the read model holds, or the event says"`
}

// Unanswered is what an instance that has not ended in good order counted last: it may not have answered those requests.
type Unanswered struct {
	InstanceID string       `json:"incarnation"`
	Started    time.Time    `json:"debut,omitzero"`
	Running    bool         `json:"en_cours" doc:"It still runs: they are being answered"`
	Requests   int64        `json:"requetes"`
	Lines      []BilledLine `json:"lignes"`
}

// AdjustUsage is POST /usage:adjust: a correction of a closed period, for good.
type AdjustUsage struct {
	Contract string    `json:"contrat" pattern:"^[a-z0-9-]{1,64}$" doc:"The account that pays"`
	Period   string    `json:"periode" pattern:"^[0-9]{4}-[0-9]{2}(-[0-9]{2})?$" doc:"Its first day, or the month it begins in (2026-11)"`
	Day      plan.Date `json:"jour"`
	Account  string    `json:"compte,omitempty" pattern:"^[a-z0-9-]{1,64}$" doc:"The account that pays when left out"`
	Key      string    `json:"cle" min:"1" max:"100" doc:"The key's id"`
	Endpoint string    `json:"endpoint" min:"1" max:"100" doc:"Such as GET /me"`
	Requests int64     `json:"requetes" min:"-1000000000000" max:"1000000000000" doc:"More, or with a minus less"`
	Reason   string    `json:"reason" min:"1" max:"500" doc:"Goes with an erasure of the account"`
}
