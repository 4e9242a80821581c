package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"lieudit/cmd/lieudit/adminclient"
	"lieudit/schemas/body"
)

// billLine is the key under which requests are billed. endpoint is the service's name of it: "GET /me".
type billLine struct{ account, endpoint string }

// counts are the requests of a billLine.
type counts struct {
	answered int64 // with a status that is billed: all of them must be billed
	doubtful int64 // without an answer, or answered 5xx just before a kill: they may be billed
}

// bill counts the requests that clients sent, by their answers, for comparison with what the service bills. It covers all
// rounds of a run and every request to the API. It is safe for concurrent use.
type bill struct {
	mu             sync.Mutex
	lines          map[billLine]*counts
	pendingRefunds map[*serverProcess]map[billLine]int64 // answered with 5xx since the account was last answered: their refund may be under way
}

// newBill returns a bill without requests.
func newBill() *bill {
	return &bill{lines: map[billLine]*counts{}, pendingRefunds: map[*serverProcess]map[billLine]int64{}}
}

// countsOf returns the counts of a line and makes them on first use. b.mu must be held.
func (b *bill) countsOf(l billLine) *counts {
	c := b.lines[l]
	if c == nil {
		c = &counts{}
		b.lines[l] = c
	}
	return c
}

// recordAnswer records the answer of a process to a request. Status 0: the request was sent, and the connection broke. The
// service refunds a request that it answers with 5xx. It writes billed requests and refunds of an account in their order,
// so once a later request is billed, the refunds before it are done. Until then a kill may prevent them.
func (b *bill) recordAnswer(by *serverProcess, l billLine, status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case status == 0:
		b.countsOf(l).doubtful++
	case status >= http.StatusInternalServerError:
		if b.pendingRefunds[by] == nil {
			b.pendingRefunds[by] = map[billLine]int64{}
		}
		b.pendingRefunds[by][l]++
	case isBilled(status):
		b.countsOf(l).answered++
		maps.DeleteFunc(b.pendingRefunds[by], func(other billLine, _ int64) bool { return other.account == l.account })
	}
}

// isBilled reports whether a request with a valid key to a known route is billed, by the status of its answer.
func isBilled(status int) bool {
	switch status {
	case http.StatusOK, http.StatusCreated, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// recordKill records that a process was killed or has ended by itself: the requests that it had to refund may stay billed.
// It is called after the end of the process; a second call does nothing.
func (b *bill) recordKill(p *serverProcess) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for at, n := range b.pendingRefunds[p] {
		b.countsOf(at).doubtful += n
	}
	delete(b.pendingRefunds, p)
}

// compareBilled compares the requests of one account with those that the service bills. unanswered is, by endpoint, how
// many requests are billed beyond those that were answered; wrong are the violations.
func (b *bill) compareBilled(account string, billed map[string]int64) (unanswered map[string]int64, wrong []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	unanswered = map[string]int64{}
	endpoints := maps.Clone(billed)
	// An endpoint that only one side has is compared with 0 on the other.
	for l := range b.lines {
		if l.account == account {
			endpoints[l.endpoint] += 0
		}
	}
	for _, endpoint := range slices.Sorted(maps.Keys(endpoints)) {
		c, n := b.countsOf(billLine{account, endpoint}), billed[endpoint]
		unanswered[endpoint] = n - c.answered
		switch {
		case n < c.answered:
			wrong = append(wrong, fmt.Sprintf("%s: %d requests of %s were answered and only %d are billed", account, c.answered, endpoint, n))
		case n > c.answered+c.doubtful:
			wrong = append(wrong, fmt.Sprintf("%s: %d requests of %s are billed, %d were answered and no more than %d can have been on their way",
				account, n, endpoint, c.answered, c.doubtful))
		}
	}
	return unanswered, wrong
}

// checkBills lets the service compare its read model of usage with its log (reconcile), compares what is billed with what
// was answered, and checks that no account is billed more than its quota.
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
	// Each account is checked even where another one cannot be read.
	listed := listedUnanswered(found)
	totals := billTotals{unlisted: map[string]int64{}}
	for _, a := range r.openedAccounts() {
		usage, err := r.readUsage(ctx, at, a)
		if err != nil {
			r.reportViolation("%v", err)
			continue
		}
		unanswered, wrong := r.bill.compareBilled(a.id, usage.lines)
		for _, w := range wrong {
			r.reportViolation("%s", w)
		}
		if usage.total > a.quota {
			r.reportViolation("%s is billed %d requests, its quota is %d", a.id, usage.total, a.quota)
		}
		totals.addBill(a.id, usage.total, unanswered, listed)
	}
	r.updateTotals(totals.writeTotals)
	if len(totals.unlisted) > 0 {
		r.logf("billed without an answer and not listed by reconcile: %v", totals.unlisted)
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

// billTotals are sums over all accounts, for the report.
type billTotals struct {
	billed, unanswered int64
	unlisted           map[string]int64 // by endpoint
}

// addBill adds an account. reconcile lists, for instances that did not end in good order, the requests that may have been billed
// without an answer. What is billed without an answer and not listed is counted as unlisted. It is a figure of the report and
// no violation.
func (b *billTotals) addBill(account string, billed int64, unanswered map[string]int64, listed map[billLine]int64) {
	b.billed += billed
	for endpoint, n := range unanswered {
		b.unanswered += n
		if more := n - listed[billLine{account, endpoint}]; more > 0 {
			b.unlisted[endpoint] += more
		}
	}
}

// writeTotals replaces the sums of the check before: each check sums everything again.
func (b *billTotals) writeTotals(t *Totals) {
	t.Billed, t.BilledUnanswered, t.Unlisted = b.billed, b.unanswered, 0
	for _, n := range b.unlisted {
		t.Unlisted += n
	}
}

// usage is what an account is billed in its current period, as the customer area shows it. A run that passes the end of a
// period would compare it with the requests of both.
type usage struct {
	total int64
	lines map[string]int64 // by endpoint
}

// readUsage reads what an account is billed, and compares the total with the sum of its lines.
func (r *run) readUsage(ctx context.Context, at *serverProcess, a *account) (usage, error) {
	got := r.retryArea(ctx, at, http.MethodGet, adminclient.JoinPath("", "accounts", a.id, "usage")+"?by=endpoint", nil)
	var shown body.Usage
	if err := json.Unmarshal(got.body, &shown); err != nil || got.status != http.StatusOK {
		return usage{}, fmt.Errorf("usage of %s: %s", a.id, got)
	}
	u := usage{shown.Total, map[string]int64{}}
	var sum int64
	for _, l := range shown.Lines {
		u.lines[l.Endpoint] += l.Requests
		sum += l.Requests
	}
	if sum != shown.Total {
		return u, fmt.Errorf("usage of %s: its lines add up to %d, its total is %d", a.id, sum, shown.Total)
	}
	return u, nil
}
