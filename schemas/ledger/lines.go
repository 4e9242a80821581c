package ledger

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"lieudit/schemas/event"
	"lieudit/schemas/plan"
)

// LineKey is what requests are kept apart by.
type LineKey struct {
	Day                    plan.Date
	Account, Key, Endpoint string
}

// Lines is how many requests count, line by line.
type Lines map[LineKey]int64

// Apply adds what an event of the verdict given comes to.
func (l Lines) Apply(e event.Event, v Verdict) {
	if v != Counted {
		return
	}
	switch e := e.(type) {
	case event.UsageTicked:
		l.add(e.Day, e.Counts, 1)
	case event.UsageRefunded:
		l.add(e.Day, e.Counts, -1)
	case event.UsageAdjusted:
		l.add(e.Day, []event.UsageCount{{Account: e.Account, Key: e.Key, Endpoint: e.Endpoint, Requests: e.Requests}}, 1)
	}
}

func (l Lines) add(day plan.Date, counts []event.UsageCount, sign int64) {
	for _, c := range counts {
		at := LineKey{day, c.Account, c.Key, c.Endpoint}
		if l[at] += sign * c.Requests; l[at] == 0 {
			delete(l, at)
		}
	}
}

// Total is the sum of the lines.
func (l Lines) Total() (n int64) {
	for _, requests := range l {
		n += requests
	}
	return n
}

// SortedKeys are the lines in their order: by account, day, key, endpoint.
func (l Lines) SortedKeys() []LineKey {
	all := make([]LineKey, 0, len(l))
	for at := range l {
		all = append(all, at)
	}
	slices.SortFunc(all, func(a, b LineKey) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), a.Day.Start().Compare(b.Day.Start()),
			cmp.Compare(a.Key, b.Key), cmp.Compare(a.Endpoint, b.Endpoint))
	})
	return all
}

// Digest is the SHA-256 of the lines in their order, each written as account, day, key, endpoint and requests in
// quotes or digits with a blank between and a line feed after.
func (l Lines) Digest() []byte {
	h := sha256.New()
	for _, at := range l.SortedKeys() {
		fmt.Fprintf(h, "%q %s %q %q %d\n", at.Account, at.Day, at.Key, at.Endpoint, l[at])
	}
	return h.Sum(nil)
}

// ClosingEvent is the event that closes a book with these lines.
func (l Lines) ClosingEvent() event.UsageClosed {
	return event.UsageClosed{Total: l.Total(), LineCount: int64(len(l)), Digest: l.Digest()}
}

// PeriodUsage is a book and its lines, folded together.
type PeriodUsage struct {
	PeriodState
	Lines Lines
}

// NewPeriodUsage begins at the beginning of a stream.
func NewPeriodUsage() *PeriodUsage { return &PeriodUsage{Lines: Lines{}} }

// Apply folds the next event of the stream.
func (f *PeriodUsage) Apply(e event.Event, recorded time.Time) Verdict {
	v := f.PeriodState.Apply(e, recorded)
	f.Lines.Apply(e, v)
	return v
}
