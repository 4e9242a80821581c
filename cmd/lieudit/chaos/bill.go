package chaos

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
)

// line is what requests are billed by.
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
