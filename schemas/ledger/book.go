// Package ledger says which requests count. A book is the pure fold of one stream, usage-{contract}-{period}: whoever
// folds it, on whatever machine and at whatever time, finds the same ticks valid and the same ones void. Nothing
// but the order of the stream decides; of clocks, only the log's own, and only whether a period may begin.
package ledger

import (
	"strings"
	"time"

	"lieudit/schemas/event"
	"lieudit/schemas/plan"
)

// Early is how much before its first instant a period may be opened, by the clock of the log.
const Early = time.Minute

// Stream is the stream of a contract's period.
func Stream(contract string, first plan.Date) string {
	return "usage-" + contract + "-" + first.String()
}

// Parse is the contract and the first day of the period that a stream is of.
func Parse(stream string) (contract string, first plan.Date, ok bool) {
	const day = len("-2026-11-21")
	name, found := strings.CutPrefix(stream, "usage-")
	if !found || len(name) <= day {
		return "", plan.Date{}, false
	}
	contract = name[:len(name)-day]
	first, err := plan.ParseDate(name[len(contract)+1:])
	return contract, first, err == nil && Stream(contract, first) == stream
}

// Verdict is what an event came to.
type Verdict uint8

const (
	Counts   Verdict = iota // it holds
	Repeated                // it says again what was said before, or an older thing
	Unopened                // the period has not begun
	Ended                   // the period is closed
	Revoked                 // a key it counts for is revoked
	Shut                    // an account it counts for is closed
	Uncapped                // an account it counts for has no cap yet
	Spent                   // a cap would be passed
)

// Book is the state of a stream. The zero Book is that of a stream without events.
type Book struct {
	Contract string
	Period   plan.Period

	opened, closed bool
	used           int64 // by the contract
	accounts       map[string]*balance
	revoked        map[string]bool
	said           map[string]int64 // by incarnation: the last sequence
}

type balance struct {
	cap, asOf, used int64
	closed          bool
}

// Opened says whether requests can be counted: the period has begun and is not closed.
func (b *Book) Opened() bool { return b.opened && !b.closed }

// Closed says whether the period was closed.
func (b *Book) Closed() bool { return b.closed }

// Used is what counts for an account, and for the contract when it is the contract's own.
func (b *Book) Used(account string) int64 {
	if account == b.Contract {
		return b.used
	}
	if a := b.accounts[account]; a != nil {
		return a.used
	}
	return 0
}

// Cap is what an account may use, and since when that is so.
func (b *Book) Cap(account string) (requests, asOf int64, known bool) {
	if a := b.accounts[account]; a != nil {
		return a.cap, a.asOf, true
	}
	return 0, 0, false
}

// Room is how many more requests with a key of an account would count, and why none would when that is 0: Spent,
// or what ended the counting.
func (b *Book) Room(account, key string) (int64, Verdict) {
	a := b.accounts[account]
	switch {
	case !b.opened:
		return 0, Unopened
	case b.closed:
		return 0, Ended
	case b.revoked[key]:
		return 0, Revoked
	case a == nil:
		return 0, Uncapped
	case a.closed || b.accounts[b.Contract].closed:
		return 0, Shut
	}
	room := b.accounts[b.Contract].cap - b.used
	if account != b.Contract {
		room = min(room, a.cap-a.used)
	}
	if room <= 0 {
		return 0, Spent
	}
	return room, Counts
}

// Limit is the cap that stands in the way of an account: its own, or else its contract's.
func (b *Book) Limit(account string) int64 {
	if a := b.accounts[account]; a != nil && account != b.Contract && a.used >= a.cap {
		return a.cap
	}
	requests, _, _ := b.Cap(b.Contract)
	return requests
}

// Apply folds the next event of the stream; recorded is when the log recorded it.
func (b *Book) Apply(e event.Event, recorded time.Time) Verdict {
	switch e := e.(type) {
	case event.UsageOpened:
		return b.open(e, recorded)
	case event.UsageBalanced: // says what is known
		return Counts
	}
	switch {
	case !b.opened:
		return Unopened
	case b.closed:
		if _, after := e.(event.UsageAdjusted); after {
			return Counts
		}
		return Ended
	}
	switch e := e.(type) {
	case event.UsageTicked:
		return b.tick(e)
	case event.UsageRefunded:
		return b.refund(e)
	case event.UsageCapSet:
		return b.setCap(e)
	case event.UsageKeyRevoked:
		if b.revoked[e.Key] {
			return Repeated
		}
		b.revoked[e.Key] = true
	case event.UsageAccountClosed:
		a := b.account(e.Account)
		if a.closed {
			return Repeated
		}
		a.closed = true
	case event.UsageClosed:
		b.closed = true
	}
	return Counts
}

func (b *Book) open(e event.UsageOpened, recorded time.Time) Verdict {
	switch {
	case b.opened:
		return Repeated
	case recorded.Before(e.First.Start().Add(-Early)):
		return Unopened
	}
	b.opened, b.Contract, b.Period = true, e.Contract, plan.Period{First: e.First, Next: e.Next}
	b.accounts, b.revoked, b.said = map[string]*balance{e.Contract: {cap: e.Cap, asOf: e.AsOf}}, map[string]bool{}, map[string]int64{}
	return Counts
}

func (b *Book) account(id string) *balance {
	a := b.accounts[id]
	if a == nil {
		a = &balance{}
		b.accounts[id] = a
	}
	return a
}

func (b *Book) setCap(e event.UsageCapSet) Verdict {
	if a, known := b.accounts[e.Account]; known && a.asOf >= e.AsOf {
		return Repeated
	}
	a := b.account(e.Account)
	a.cap, a.asOf = e.Cap, e.AsOf
	return Counts
}

// says notes that an incarnation said something, whatever it comes to: said again it is nothing new, even when by
// then there would be room for it.
func (b *Book) says(incarnation string, sequence int64) (fresh bool) {
	if sequence <= b.said[incarnation] {
		return false
	}
	b.said[incarnation] = sequence
	return true
}

func (b *Book) tick(e event.UsageTicked) Verdict {
	if !b.says(e.Incarnation, e.Sequence) {
		return Repeated
	}
	for i, c := range e.Counts {
		b.add(c, 1)
		if v := b.bears(c); v != Counts {
			for _, c := range e.Counts[:i+1] {
				b.add(c, -1)
			}
			return v
		}
	}
	return Counts
}

// bears says whether what was added is within what an account may use.
func (b *Book) bears(c event.UsageCount) Verdict {
	a, contract := b.accounts[c.Account], b.accounts[b.Contract]
	switch {
	case b.revoked[c.Key]:
		return Revoked
	case a == nil:
		return Uncapped
	case a.closed || contract.closed:
		return Shut
	case c.Requests <= 0, b.used > contract.cap, a != contract && a.used > a.cap:
		return Spent
	}
	return Counts
}

func (b *Book) refund(e event.UsageRefunded) Verdict {
	if !b.says(e.Incarnation, e.Sequence) {
		return Repeated
	}
	for _, c := range e.Counts {
		b.add(c, -1)
	}
	return Counts
}

func (b *Book) add(c event.UsageCount, sign int64) {
	b.used += sign * c.Requests
	if a := b.accounts[c.Account]; a != nil {
		a.used += sign * c.Requests
	}
}
