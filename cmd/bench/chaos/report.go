package chaos

import "time"

// Totals are the figures of a run, of one profile or of all.
type Totals struct {
	Kills        int `json:"kills"`
	NodeKills    int `json:"node_kills"`
	Rounds       int `json:"rounds"`
	Accounts     int `json:"accounts"`
	Sites        int `json:"sites"` // active at the end
	Requests     int `json:"requests"`
	Failed       int `json:"answered_5xx"`
	Unanswered   int `json:"unanswered"`
	Acknowledged int `json:"writes_acknowledged"`
	InDoubt      int `json:"writes_in_doubt"`
	Cut          int `json:"large_syncs_cut"` // large syncs whose connection broke before the answer
	Revocations  int `json:"revocations"`

	Billed           int64 `json:"billed"`
	BilledUnanswered int64 `json:"billed_unanswered"` // beyond what was answered
	Unlisted         int64 `json:"unlisted"`          // of these, what reconcile does not list for account and endpoint

	Seconds float64 `json:"seconds"`
}

func (t *Totals) add(a answer) {
	t.Requests++
	switch {
	case a.status == 0 && a.sent:
		t.Unanswered++
	case a.status >= 500:
		t.Failed++
	}
}

// Report is the result of all profiles.
type Report struct {
	Seed       uint64             `json:"seed"`
	Totals     map[Profile]Totals `json:"profiles"`
	LeftOut    []string           `json:"left_out,omitempty"` // profiles and faults that this machine does not allow
	Violations []string           `json:"violations"`
}

func (rep *Report) add(r *run) {
	if rep.Totals == nil {
		rep.Totals = map[Profile]Totals{}
	}
	r.totals.Seconds = time.Since(r.began).Seconds()
	rep.Totals[r.profile] = r.totals
	rep.LeftOut = append(rep.LeftOut, r.leftOut...)
	rep.Violations = append(rep.Violations, r.violations...)
}
