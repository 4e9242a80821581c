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

// MaxEarlyOpening is how much before its first instant a period may be opened, by the clock of the log.
const MaxEarlyOpening = time.Minute

// StreamName is the stream of a contract's period.
func StreamName(contract string, first plan.Date) string {
	return "usage-" + contract + "-" + first.String()
}

// ParseStreamName is the contract and the first day of the period that a stream is of.
func ParseStreamName(stream string) (contract string, first plan.Date, ok bool) {
	const day = len("-2026-11-21")
	name, found := strings.CutPrefix(stream, "usage-")
	if !found || len(name) <= day {
		return "", plan.Date{}, false
	}
	contract = name[:len(name)-day]
	first, err := plan.ParseDate(name[len(contract)+1:])
	return contract, first, err == nil && StreamName(contract, first) == stream
}

// Verdict is what an event came to.
type Verdict uint8

const (
	Counted       Verdict = iota // it holds
	Duplicate                    // it says again what was said before, or an older thing
	PeriodNotOpen                // the period has not begun
	PeriodClosed                 // the period is closed
	KeyRevoked                   // a key it counts for is revoked
	AccountClosed                // an account it counts for is closed
	CapUnknown                   // an account it counts for has no cap yet
	CapReached                   // a cap would be passed
)

// PeriodState is the state of a stream. The zero PeriodState is that of a stream without events.
type PeriodState struct {
	Contract string
	Period   plan.Period

	opened, closed bool
	used           int64 // by the contract
	accounts       map[string]*accountState
	revokedKeys    map[string]bool
	lastSequences  map[string]int64 // by incarnation: the last sequence
}

type accountState struct {
	cap, capAsOf, used int64
	closed             bool
}

// IsOpen says whether requests can be counted: the period has begun and is not closed.
func (b *PeriodState) IsOpen() bool { return b.opened && !b.closed }

// IsClosed says whether the period was closed.
func (b *PeriodState) IsClosed() bool { return b.closed }

// Used is what counts for an account, and for the contract when it is the contract's own.
func (b *PeriodState) Used(account string) int64 {
	if account == b.Contract {
		return b.used
	}
	if a := b.accounts[account]; a != nil {
		return a.used
	}
	return 0
}

// Cap is what an account may use, and since when that is so.
func (b *PeriodState) Cap(account string) (requests, asOf int64, known bool) {
	if a := b.accounts[account]; a != nil {
		return a.cap, a.capAsOf, true
	}
	return 0, 0, false
}

// Remaining is how many more requests with a key of an account would count, and why none would when that is 0: Spent,
// or what ended the counting.
func (b *PeriodState) Remaining(account, key string) (int64, Verdict) {
	a := b.accounts[account]
	switch {
	case !b.opened:
		return 0, PeriodNotOpen
	case b.closed:
		return 0, PeriodClosed
	case b.revokedKeys[key]:
		return 0, KeyRevoked
	case a == nil:
		return 0, CapUnknown
	case a.closed || b.accounts[b.Contract].closed:
		return 0, AccountClosed
	}
	room := b.accounts[b.Contract].cap - b.used
	if account != b.Contract {
		room = min(room, a.cap-a.used)
	}
	if room <= 0 {
		return 0, CapReached
	}
	return room, Counted
}

// LimitingCap is the cap that stands in the way of an account: its own, or else its contract's.
func (b *PeriodState) LimitingCap(account string) int64 {
	if a := b.accounts[account]; a != nil && account != b.Contract && a.used >= a.cap {
		return a.cap
	}
	requests, _, _ := b.Cap(b.Contract)
	return requests
}

// Apply folds the next event of the stream; recorded is when the log recorded it.
func (b *PeriodState) Apply(e event.Event, recorded time.Time) Verdict {
	switch e := e.(type) {
	case event.UsageOpened:
		return b.applyOpened(e, recorded)
	case event.UsageSnapshotTaken: // says what is known
		return Counted
	}
	switch {
	case !b.opened:
		return PeriodNotOpen
	case b.closed:
		if _, after := e.(event.UsageAdjusted); after {
			return Counted
		}
		return PeriodClosed
	}
	switch e := e.(type) {
	case event.UsageTicked:
		return b.applyTick(e)
	case event.UsageRefunded:
		return b.applyRefund(e)
	case event.UsageCapSet:
		return b.applyCapSet(e)
	case event.UsageKeyRevoked:
		if b.revokedKeys[e.Key] {
			return Duplicate
		}
		b.revokedKeys[e.Key] = true
	case event.UsageAccountClosed:
		a := b.ensureAccount(e.Account)
		if a.closed {
			return Duplicate
		}
		a.closed = true
	case event.UsageClosed:
		b.closed = true
	}
	return Counted
}

func (b *PeriodState) applyOpened(e event.UsageOpened, recorded time.Time) Verdict {
	switch {
	case b.opened:
		return Duplicate
	case recorded.Before(e.First.Start().Add(-MaxEarlyOpening)):
		return PeriodNotOpen
	}
	b.opened, b.Contract, b.Period = true, e.Contract, plan.Period{First: e.First, Next: e.Next}
	b.accounts, b.revokedKeys, b.lastSequences = map[string]*accountState{e.Contract: {cap: e.Cap, capAsOf: e.AsOfPosition}}, map[string]bool{}, map[string]int64{}
	return Counted
}

func (b *PeriodState) ensureAccount(id string) *accountState {
	a := b.accounts[id]
	if a == nil {
		a = &accountState{}
		b.accounts[id] = a
	}
	return a
}

func (b *PeriodState) applyCapSet(e event.UsageCapSet) Verdict {
	if a, known := b.accounts[e.Account]; known && a.capAsOf >= e.AsOfPosition {
		return Duplicate
	}
	a := b.ensureAccount(e.Account)
	a.cap, a.capAsOf = e.Cap, e.AsOfPosition
	return Counted
}

// recordSequence notes that an incarnation said something, whatever it comes to: said again it is nothing new, even when by
// then there would be room for it.
func (b *PeriodState) recordSequence(incarnation string, sequence int64) (isNew bool) {
	if sequence <= b.lastSequences[incarnation] {
		return false
	}
	b.lastSequences[incarnation] = sequence
	return true
}

func (b *PeriodState) applyTick(e event.UsageTicked) Verdict {
	if !b.recordSequence(e.InstanceID, e.Sequence) {
		return Duplicate
	}
	for i, c := range e.Counts {
		b.addRequests(c, 1)
		if v := b.checkCaps(c); v != Counted {
			for _, c := range e.Counts[:i+1] {
				b.addRequests(c, -1)
			}
			return v
		}
	}
	return Counted
}

// checkCaps says whether what was added is within what an account may use.
func (b *PeriodState) checkCaps(c event.UsageCount) Verdict {
	a, contract := b.accounts[c.Account], b.accounts[b.Contract]
	switch {
	case b.revokedKeys[c.Key]:
		return KeyRevoked
	case a == nil:
		return CapUnknown
	case a.closed || contract.closed:
		return AccountClosed
	case c.Requests <= 0, b.used > contract.cap, a != contract && a.used > a.cap:
		return CapReached
	}
	return Counted
}

func (b *PeriodState) applyRefund(e event.UsageRefunded) Verdict {
	if !b.recordSequence(e.InstanceID, e.Sequence) {
		return Duplicate
	}
	for _, c := range e.Counts {
		b.addRequests(c, -1)
	}
	return Counted
}

func (b *PeriodState) addRequests(c event.UsageCount, sign int64) {
	b.used += sign * c.Requests
	if a := b.accounts[c.Account]; a != nil {
		a.used += sign * c.Requests
	}
}
