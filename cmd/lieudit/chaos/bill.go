package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"lieudit/cmd/lieudit/backoffice"
	"lieudit/schemas/body"
)

// line is what requests are billed by. Endpoints are called as the service calls them: "GET /me".
type line struct{ account, endpoint string }

// counts are the requests of a line.
type counts struct {
	answered int64 // with what counts: all of them have to be billed
	doubtful int64 // that a kill left without an answer, or without their refund: they may be billed
}

// bill is what clients were answered, to be held against what the service bills. It is safe for concurrent use.
type bill struct {
	mu    sync.Mutex
	lines map[line]*counts
	open  map[*life]map[line]int64 // answered with 5xx since the account was last answered: their refund may be under way
}

func newBill() *bill { return &bill{lines: map[line]*counts{}, open: map[*life]map[line]int64{}} }

func (b *bill) of(l line) *counts {
	c := b.lines[l]
	if c == nil {
		c = &counts{}
		b.lines[l] = c
	}
	return c
}

// answer notes the answer to a request by one life of an instance. Status 0: the connection broke, the request was sent.
// What is answered with 5xx is refunded, in the order of the account's ticks: an answer that counts comes after the
// refunds of those before it. Until then a kill may prevent the refund.
func (b *bill) answer(by *life, l line, status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case status == 0:
		b.of(l).doubtful++
	case status >= http.StatusInternalServerError:
		if b.open[by] == nil {
			b.open[by] = map[line]int64{}
		}
		b.open[by][l]++
	case counted(status):
		b.of(l).answered++
		maps.DeleteFunc(b.open[by], func(other line, _ int64) bool { return other.account == l.account })
	}
}

// counted says whether a request with a valid key to a known route counts, by its answer.
func counted(status int) bool {
	switch status {
	case http.StatusOK, http.StatusCreated, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// killed notes that a life was killed: what it had to refund may stay billed.
func (b *bill) killed(l *life) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for at, n := range b.open[l] {
		b.of(at).doubtful += n
	}
	delete(b.open, l)
}

// judge compares the lines of one account with those it is billed. unanswered is how many requests it is billed beyond
// those that were answered, by endpoint.
func (b *bill) judge(account string, billed map[string]int64) (unanswered map[string]int64, wrong []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	unanswered = map[string]int64{}
	endpoints := maps.Clone(billed)
	for l := range b.lines {
		if l.account == account {
			endpoints[l.endpoint] += 0
		}
	}
	for _, endpoint := range slices.Sorted(maps.Keys(endpoints)) {
		c, n := b.of(line{account, endpoint}), billed[endpoint]
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

// checkBills compares what is billed with what was answered, lets the service compare its read model with its log, and
// holds every account to its quota.
func (r *run) checkBills(ctx context.Context, at *life) {
	a := r.askArea(ctx, at, http.MethodPost, "/usage:reconcile", body.ReconcileUsage{})
	var found body.Reconciliation
	if err := json.Unmarshal(a.body, &found); err != nil || a.status != http.StatusOK {
		r.violate("reconcile: %s", a)
		return
	}
	for _, d := range found.Differences {
		r.violate("reconcile: %+v", d)
	}
	listed := listedBy(found)
	books := books{unlisted: map[string]int64{}}
	for _, a := range r.opened() {
		usage, err := r.usage(ctx, at, a)
		if err != nil {
			r.violate("%v", err)
			continue
		}
		unanswered, wrong := r.bill.judge(a.id, usage.lines)
		for _, w := range wrong {
			r.violate("%s", w)
		}
		if usage.total > a.quota {
			r.violate("%s is billed %d requests, its quota is %d", a.id, usage.total, a.quota)
		}
		books.add(a.id, usage.total, unanswered, listed)
	}
	r.count(books.tell)
	if len(books.unlisted) > 0 {
		r.note("billed without an answer and not listed by reconcile: %v", books.unlisted)
	}
}

// listedBy is what reconcile lists of instances that have ended.
func listedBy(found body.Reconciliation) map[line]int64 {
	listed := map[line]int64{}
	for _, u := range found.Unanswered {
		for _, l := range u.Lines {
			if !u.Running {
				listed[line{l.Account, l.Endpoint}] += l.Requests
			}
		}
	}
	return listed
}

// books are sums over all accounts.
type books struct {
	billed, unanswered int64
	unlisted           map[string]int64 // by endpoint
}

func (b *books) add(account string, billed int64, unanswered map[string]int64, listed map[line]int64) {
	b.billed += billed
	for endpoint, n := range unanswered {
		b.unanswered += n
		if more := n - listed[line{account, endpoint}]; more > 0 {
			b.unlisted[endpoint] += more
		}
	}
}

func (b *books) tell(t *Totals) {
	t.Billed, t.BilledUnanswered, t.Unlisted = b.billed, b.unanswered, 0
	for _, n := range b.unlisted {
		t.Unlisted += n
	}
}

// usage is what the customer area says an account is billed in its running period.
type usage struct {
	total int64
	lines map[string]int64 // by endpoint
}

func (r *run) usage(ctx context.Context, at *life, a *account) (usage, error) {
	got := r.askArea(ctx, at, http.MethodGet, backoffice.Path("", "accounts", a.id, "usage")+"?by=endpoint", nil)
	var told body.Usage
	if err := json.Unmarshal(got.body, &told); err != nil || got.status != http.StatusOK {
		return usage{}, fmt.Errorf("usage of %s: %s", a.id, got)
	}
	u := usage{told.Total, map[string]int64{}}
	var sum int64
	for _, l := range told.Lines {
		u.lines[l.Endpoint] += l.Requests
		sum += l.Requests
	}
	if sum != told.Total {
		return u, fmt.Errorf("usage of %s: its lines add up to %d, its total is %d", a.id, sum, told.Total)
	}
	return u, nil
}
