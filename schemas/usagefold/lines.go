package usagefold

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"lieudit/schemas/event"
	"lieudit/schemas/plan"
)

// LineKey identifies a line of usage.
type LineKey struct {
	Day                    plan.Date
	Account, Key, Endpoint string
}

// Lines holds how many requests count for each LineKey. Lines of zero requests are not kept. Lines is the second half of the
// fold: it follows the verdicts of PeriodState and has no rules.
type Lines map[LineKey]int64

// Apply adds the requests of an event, if its verdict is Counted.
func (l Lines) Apply(e event.Event, v Verdict) {
	if v != Counted {
		return
	}
	switch e := e.(type) {
	case event.UsageTicked:
		l.addCounts(e.Day, e.Counts, 1)
	case event.UsageRefunded:
		l.addCounts(e.Day, e.Counts, -1)
	case event.UsageAdjusted:
		l.addCounts(e.Day, []event.UsageCount{{Account: e.Account, Key: e.Key, Endpoint: e.Endpoint, Requests: e.Requests}}, 1)
	case event.UsageLinesStated:
		for _, line := range e.Lines {
			l.addCounts(line.Day, []event.UsageCount{line.UsageCount}, 1)
		}
	}
}

// addCounts adds counts to the lines of a day, or with sign -1 takes them away.
func (l Lines) addCounts(day plan.Date, counts []event.UsageCount, sign int64) {
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

// SortedKeys returns the keys of the lines in order of account, day, key and endpoint.
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

// Digest is the SHA-256 of the lines in the order of SortedKeys. Each line is account (quoted), day, key (quoted), endpoint
// (quoted) and requests, separated by blanks and ended by a line feed. The format is frozen: the log holds digests of closed
// periods.
func (l Lines) Digest() []byte {
	h := sha256.New()
	for _, at := range l.SortedKeys() {
		fmt.Fprintf(h, "%q %s %q %q %d\n", at.Account, at.Day, at.Key, at.Endpoint, l[at])
	}
	return h.Sum(nil)
}

// ClosingEvent is the event that closes a period with these lines.
func (l Lines) ClosingEvent() event.UsageClosed {
	return event.UsageClosed{Total: l.Total(), LineCount: int64(len(l)), Digest: l.Digest()}
}

// statedItems is how many accounts and lines a UsageLinesStated has at most. An event of that size fits every log.
const statedItems = 1000

// Statements returns what the own stream of an ended period states before its closing. The same period always gives the same events.
func (f *PeriodUsage) Statements() (all []event.UsageLinesStated) {
	whole, keys := f.Snapshot(0), f.Lines.SortedKeys()
	accounts := whole.Accounts
	for len(all) == 0 || len(accounts)+len(keys) > 0 {
		n := min(len(accounts), statedItems)
		e := event.UsageLinesStated{PeriodRef: event.PeriodRef{Contract: whole.Contract, First: whole.First}, Next: whole.Next, Used: whole.Used, Accounts: accounts[:n]}
		accounts = accounts[n:]
		n = min(len(keys), statedItems-n)
		for _, at := range keys[:n] {
			e.Lines = append(e.Lines, event.UsageLineStated{Day: at.Day, UsageCount: event.UsageCount{Account: at.Account, Key: at.Key, Endpoint: at.Endpoint, Requests: f.Lines[at]}})
		}
		all, keys = append(all, e), keys[n:]
	}
	return all
}

// PeriodUsage is a period's state and its lines, folded together.
type PeriodUsage struct {
	PeriodState
	Lines Lines
}

// NewPeriodUsage is the fold of a stream without events.
func NewPeriodUsage() *PeriodUsage { return &PeriodUsage{Lines: Lines{}} }

// Apply folds the next event of the stream into both, and returns its verdict.
func (f *PeriodUsage) Apply(e event.Event, recorded time.Time) Verdict {
	v := f.PeriodState.Apply(e, recorded)
	f.Lines.Apply(e, v)
	return v
}
