package chaos

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"lieudit/cmd/bench/model"
	"lieudit/cmd/lieudit/adminclient"
	"lieudit/schemas/body"
)

// billLine is the key under which reconcile lists requests. endpoint is the service's name of it: "GET /me".
type billLine struct{ account, endpoint string }

// checkBills lets the service compare its read model of usage with its log (reconcile), has the model compare what is billed
// with what was answered, and checks that no account is billed more than its quota.
func (r *run) checkBills(ctx context.Context, at *serverProcess) {
	a := r.retryArea(ctx, at, http.MethodPost, "/usage:reconcile", body.ReconcileUsage{})
	var found body.Reconciliation
	if err := json.Unmarshal(a.body, &found); err != nil || a.status != http.StatusOK {
		r.reportViolation("reconcile: %s", a)
		return
	}
	for _, d := range found.Differences {
		r.reportViolation("reconcile: %+v", d)
	}
	a = r.retryArea(ctx, at, http.MethodGet, "/usage?format=json", nil)
	var billed struct{ Results []model.BilledLine }
	if err := json.Unmarshal(a.body, &billed); err != nil || a.status != http.StatusOK {
		r.reportViolation("usage: %s", a)
		return
	}
	r.noteDeaths()
	for l, n := range r.model.SettleUsage(billed.Results) {
		r.unanswered[billLine{l.Account, l.Endpoint}] += n
	}
	// The usage of each account is checked even if that of another one cannot be read.
	totals := map[string]int64{}
	for _, b := range billed.Results {
		totals[b.Account] += b.Requests
	}
	for _, a := range r.openedAccounts() {
		if totals[a.id] > a.quota {
			r.reportViolation("%s is billed %d requests, its quota is %d", a.id, totals[a.id], a.quota)
		}
		got := r.retryArea(ctx, at, http.MethodGet, adminclient.JoinPath("", "accounts", a.id, "usage"), nil)
		r.model.CheckUsage(a.id, got.forModel(), time.Now())
	}
	r.recordBilled(billed.Results, listedUnanswered(found))
}

// noteDeaths reports the processes that have ended to the model: the requests that they had to refund may stay billed.
func (r *run) noteDeaths() {
	isRunning := map[int]bool{}
	for _, i := range r.instances {
		if p := i.current.Load(); p != nil {
			isRunning[p.number] = true
		}
	}
	for number := range int(r.processes.Load()) + 1 {
		if !isRunning[number] {
			r.model.Died(number)
		}
	}
}

// listedUnanswered returns the billed requests without an answer that reconcile lists for instances that have ended.
func listedUnanswered(found body.Reconciliation) map[billLine]int64 {
	listed := map[billLine]int64{}
	for _, u := range found.Unanswered {
		for _, l := range u.Lines {
			if !u.Running {
				listed[billLine{l.Account, l.Endpoint}] += l.Requests
			}
		}
	}
	return listed
}

// recordBilled replaces the sums of the previous check. reconcile lists, for instances that did not end in good order, the requests that may
// have been billed without an answer. Requests billed without an answer and not listed are counted as unlisted. This is a figure of the report
// and not a violation.
func (r *run) recordBilled(billed []model.BilledLine, listed map[billLine]int64) {
	var total, unanswered, unlisted int64
	for _, b := range billed {
		total += b.Requests
	}
	for l, n := range r.unanswered {
		unanswered += n
		if more := n - listed[l]; more > 0 {
			unlisted += more
		}
	}
	r.updateTotals(func(t *Totals) { t.Billed, t.BilledUnanswered, t.Unlisted = total, unanswered, unlisted })
	if unlisted > 0 {
		r.logf("%d requests are billed without an answer and not listed by reconcile", unlisted)
	}
}
