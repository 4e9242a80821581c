// Package usagefold decides which requests count. Its state is the pure fold of one stream, usage-{contract}-{period}: anybody
// who folds the stream, on any machine and at any time, finds the same ticks counted and the same ones void. Only the order of
// the stream decides, and the log's clock only decides whether a period may begin. A stream that the periods of several contracts
// share is folded by a SharedState (shared.go), by the same rules for each of them.
//
//	stream ──event──► PeriodState.Apply ──Verdict──► Lines.Apply      requests by day, account, key and endpoint
//	                       │       ▲
//	                 Snapshot     RestorePeriod                       so that a fold need not begin at the beginning
//	                       ▼       │
//	              event.UsageSnapshotTaken
//
// PeriodUsage does both Applies. A TickDraft collects requests that would count if they were the next event.
package usagefold

import (
	"maps"
	"slices"
	"strings"
	"time"

	"lieudit/schemas/event"
	"lieudit/schemas/plan"
)

// MaxEarlyOpening is how long before its first instant a period may be opened, by the clock of the log. It allows for clocks
// that differ.
const MaxEarlyOpening = time.Minute

// StreamName is the name of the stream of a contract's period.
func StreamName(contract string, first plan.Date) string {
	return "usage-" + contract + "-" + first.String()
}

// ParseStreamName returns the contract and the first day of the period in the name of a stream; false for other streams.
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

// Verdict tells whether an event counts and, if not, why it is void.
type Verdict uint8

const (
	Counted       Verdict = iota // it counts
	Duplicate                    // it repeats an earlier event, or is older than one that counted
	PeriodNotOpen                // the period has not begun
	PeriodClosed                 // the period is closed, or its counting has ended
	KeyRevoked                   // one of its keys is revoked
	AccountClosed                // one of its accounts, or the contract, is closed
	CapUnknown                   // one of its accounts has no cap yet
	CapReached                   // it would exceed a cap
	Unnumbered                   // the key or the endpoint of a line has no number in the shared stream
)

// PeriodState is the fold of one period's stream. The zero PeriodState is that of a stream without events. It is not safe
// for concurrent use.
type PeriodState struct {
	Contract string
	Period   plan.Period

	opened, closed bool
	ended          bool  // nothing counts any more, although it is not closed; only in a shared stream
	stated         bool  // the state is what UsageLinesStated states, without the shared stream
	used           int64 // requests counted for the contract, all accounts together
	accounts       map[string]*accountState
	revokedKeys    map[string]bool
	lastSequences  map[string]int64 // by instance id
}

// accountState is the state of one account. That of the contract's own account has the cap of the contract.
type accountState struct {
	cap     int64
	capAsOf int64 // log position of the event that the cap follows from
	used    int64
	closed  bool
}

// IsOpen reports whether requests can be counted: the period has begun and is neither closed nor ended.
func (p *PeriodState) IsOpen() bool { return p.opened && !p.closed && !p.ended }

// IsEnded reports whether nothing counts any more but corrections.
func (p *PeriodState) IsEnded() bool { return p.ended || p.closed }

// IsClosed reports whether the period was closed.
func (p *PeriodState) IsClosed() bool { return p.closed }

// Used is how many requests count for an account. For the contract's own account it is the sum of all accounts.
func (p *PeriodState) Used(account string) int64 {
	if account == p.Contract {
		return p.used
	}
	if a := p.accounts[account]; a != nil {
		return a.used
	}
	return 0
}

// Cap is how many requests may count for an account, and the log position that this follows from.
func (p *PeriodState) Cap(account string) (requests, asOf int64, known bool) {
	if a := p.accounts[account]; a != nil {
		return a.cap, a.capAsOf, true
	}
	return 0, 0, false
}

// Remaining is how many more requests with a key of an account would count. If it is 0 the verdict is the reason.
func (p *PeriodState) Remaining(account, key string) (int64, Verdict) {
	if v := p.verdictFor(account, key, 1, 1); v != Counted {
		return 0, v
	}
	remaining := p.accounts[p.Contract].cap - p.used
	if a := p.accounts[account]; account != p.Contract {
		remaining = min(remaining, a.cap-a.used)
	}
	return remaining, Counted
}

// verdictFor is the verdict on a tick with this key that adds ofContract requests to the contract, ofAccount of them to the
// account. The contract's own account has no cap besides that of the contract. A tick of zero or fewer requests never counts,
// so that no tick can lower the usage.
func (p *PeriodState) verdictFor(account, key string, ofContract, ofAccount int64) Verdict {
	a, contract := p.accounts[account], p.accounts[p.Contract]
	switch {
	case !p.opened:
		return PeriodNotOpen
	case p.closed, p.ended:
		return PeriodClosed
	case p.revokedKeys[key]:
		return KeyRevoked
	case a == nil:
		return CapUnknown
	case a.closed || contract.closed:
		return AccountClosed
	case ofAccount <= 0, p.used+ofContract > contract.cap, a != contract && a.used+ofAccount > a.cap:
		return CapReached
	}
	return Counted
}

// LimitingCap is the cap that n more requests of an account would exceed: its own if they exceed that, and otherwise its
// contract's.
func (p *PeriodState) LimitingCap(account string, requests int64) int64 {
	if a := p.accounts[account]; a != nil && account != p.Contract && a.used+requests > a.cap {
		return a.cap
	}
	limit, _, _ := p.Cap(p.Contract)
	return limit
}

// Apply folds the next event of the stream and returns its verdict. recorded is when the log recorded it; only UsageOpened
// depends on that. After the period is closed only an adjustment counts. Events of other types change nothing.
func (p *PeriodState) Apply(e event.Event, recorded time.Time) Verdict {
	switch e := e.(type) {
	case event.UsageOpened:
		return p.applyOpened(e, recorded)
	case event.UsageLinesStated:
		return p.applyStated(e)
	case event.UsageSnapshotTaken: // repeats what is known
		return Counted
	}
	switch {
	case !p.opened:
		return PeriodNotOpen
	case p.closed:
		if _, after := e.(event.UsageAdjusted); after {
			return Counted
		}
		return PeriodClosed
	case p.ended:
		if _, closes := e.(event.UsageClosed); !closes {
			return PeriodClosed
		}
	}
	switch e := e.(type) {
	case event.UsageTicked:
		return p.applyTick(e)
	case event.UsageRefunded:
		return p.applyRefund(e)
	case event.UsageCapSet:
		return p.applyCapSet(e)
	case event.UsageKeyRevoked:
		if p.revokedKeys[e.Key] {
			return Duplicate
		}
		p.revokedKeys[e.Key] = true
	case event.UsageAccountClosed:
		a := p.ensureAccount(e.Account)
		if a.closed {
			return Duplicate
		}
		a.closed = true
	case event.SharedUsageEnded:
		p.ended = true
	case event.UsageClosed:
		p.closed = true
	}
	return Counted
}

// applyOpened begins the period. The cap in the event is that of the contract.
func (p *PeriodState) applyOpened(e event.UsageOpened, recorded time.Time) Verdict {
	switch {
	case p.opened:
		return Duplicate
	case recorded.Before(e.First.Start().Add(-MaxEarlyOpening)):
		return PeriodNotOpen
	}
	p.opened, p.Contract, p.Period = true, e.Contract, plan.Period{First: e.First, Next: e.Next}
	p.accounts, p.revokedKeys, p.lastSequences = map[string]*accountState{e.Contract: {cap: e.Cap, capAsOf: e.AsOfPosition}}, map[string]bool{}, map[string]int64{}
	return Counted
}

// applyStated begins, or adds to, the state of a period whose requests were counted in a shared stream, for a reader of its own stream
// alone. To whoever has folded the shared stream it is a repetition.
func (p *PeriodState) applyStated(e event.UsageLinesStated) Verdict {
	if p.opened && (!p.stated || p.closed) {
		return Duplicate
	}
	if !p.opened {
		*p = *RestorePeriod(event.UsageSnapshotTaken{Contract: e.Contract, First: e.First, Next: e.Next, Used: e.Used})
		p.ended, p.stated = true, true
	}
	p.restoreAccounts(e.Accounts, nil, nil)
	return Counted
}

// ensureAccount returns the state of an account, and creates a missing one: UsageAccountClosed may come before any cap.
func (p *PeriodState) ensureAccount(id string) *accountState {
	a := p.accounts[id]
	if a == nil {
		a = &accountState{}
		p.accounts[id] = a
	}
	return a
}

// applyCapSet sets a cap unless the known one follows from the same event of the account or a later one.
func (p *PeriodState) applyCapSet(e event.UsageCapSet) Verdict {
	if a, known := p.accounts[e.Account]; known && a.capAsOf >= e.AsOfPosition {
		return Duplicate
	}
	a := p.ensureAccount(e.Account)
	a.cap, a.capAsOf = e.Cap, e.AsOfPosition
	return Counted
}

// recordSequence notes the sequence of a tick or refund, even if it turns out void: a repeat is a duplicate, even if it would
// not exceed the cap by then.
func (p *PeriodState) recordSequence(instanceID string, sequence int64) (isNew bool) {
	if sequence <= p.lastSequences[instanceID] {
		return false
	}
	p.lastSequences[instanceID] = sequence
	return true
}

// applyTick counts a tick as a whole or not at all. It adds one count after the other, so that each is checked together with
// those before it, and takes them all back at the first that does not count.
func (p *PeriodState) applyTick(e event.UsageTicked) Verdict {
	if !p.recordSequence(e.InstanceID, e.Sequence) {
		return Duplicate
	}
	return p.applyCounts(e.Counts)
}

// applyCounts is applyTick for a tick that is new.
func (p *PeriodState) applyCounts(counts []event.UsageCount) Verdict {
	for i, c := range counts {
		if v := p.verdictFor(c.Account, c.Key, c.Requests, c.Requests); v != Counted {
			for _, c := range counts[:i] {
				p.addRequests(c, -1)
			}
			return v
		}
		p.addRequests(c, 1)
	}
	return Counted
}

// applyRefund takes requests back. It does not check that they were counted: the instance that appends a refund knows that
// they were.
func (p *PeriodState) applyRefund(e event.UsageRefunded) Verdict {
	if !p.recordSequence(e.InstanceID, e.Sequence) {
		return Duplicate
	}
	for _, c := range e.Counts {
		p.addRequests(c, -1)
	}
	return Counted
}

// addRequests adds requests to the account and the contract, or with sign -1 takes them away.
func (p *PeriodState) addRequests(c event.UsageCount, sign int64) {
	p.used += sign * c.Requests
	if a := p.accounts[c.Account]; a != nil {
		a.used += sign * c.Requests
	}
}

// Snapshot is the state as an event, for an open period whose stream was folded up to revision asOf. The same state always
// gives the same event.
func (p *PeriodState) Snapshot(asOf int64) event.UsageSnapshotTaken {
	e := event.UsageSnapshotTaken{
		AsOfRevision: asOf, Contract: p.Contract, First: p.Period.First, Next: p.Period.Next, Used: p.used,
		Accounts: []event.UsageAccountState{}, RevokedKeys: slices.Sorted(maps.Keys(p.revokedKeys)), Sequences: []event.UsageInstanceSequence{},
	}
	for _, id := range slices.Sorted(maps.Keys(p.accounts)) {
		a := p.accounts[id]
		e.Accounts = append(e.Accounts, event.UsageAccountState{Account: id, Cap: a.cap, CapAsOfPosition: a.capAsOf, Used: a.used, Closed: a.closed})
	}
	for _, id := range slices.Sorted(maps.Keys(p.lastSequences)) {
		e.Sequences = append(e.Sequences, event.UsageInstanceSequence{InstanceID: id, Sequence: p.lastSequences[id]})
	}
	return e
}

// RestorePeriod is the state in a snapshot. Its fold continues with the revision after e.AsOfRevision.
func RestorePeriod(e event.UsageSnapshotTaken) *PeriodState {
	p := &PeriodState{
		Contract: e.Contract, Period: plan.Period{First: e.First, Next: e.Next}, opened: true, used: e.Used,
		accounts: map[string]*accountState{}, revokedKeys: map[string]bool{}, lastSequences: map[string]int64{},
	}
	p.restoreAccounts(e.Accounts, e.RevokedKeys, e.Sequences)
	return p
}

// restoreAccounts adds what a snapshot has of accounts, keys and instances.
func (p *PeriodState) restoreAccounts(accounts []event.UsageAccountState, revokedKeys []string, sequences []event.UsageInstanceSequence) {
	for _, a := range accounts {
		p.accounts[a.Account] = &accountState{a.Cap, a.CapAsOfPosition, a.Used, a.Closed}
	}
	for _, k := range revokedKeys {
		p.revokedKeys[k] = true
	}
	for _, s := range sequences {
		p.lastSequences[s.InstanceID] = s.Sequence
	}
}

// TickDraft collects requests for a tick that would count if it were the next event of the stream. It is void once the
// PeriodState has changed.
type TickDraft struct {
	period   *PeriodState
	used     int64 // requests collected
	accounts []draftAccount
}

// draftAccount is how many requests of one account a draft has.
type draftAccount struct {
	account string
	used    int64
}

// DraftTick begins a tick.
func (p *PeriodState) DraftTick() *TickDraft { return &TickDraft{period: p} }

// AddRequests adds requests with a key of an account if all of them would count. Otherwise it adds none, and the verdict is
// the reason.
func (d *TickDraft) AddRequests(account, key string, requests int64) Verdict {
	a := d.accountOf(account)
	v := d.period.verdictFor(account, key, d.used+requests, a.used+requests)
	if v == Counted {
		d.used += requests
		a.used += requests
	}
	return v
}

// accountOf finds the draft's count of an account. A tick has few accounts: a slice is faster than a map.
func (d *TickDraft) accountOf(account string) *draftAccount {
	for i := range d.accounts {
		if d.accounts[i].account == account {
			return &d.accounts[i]
		}
	}
	d.accounts = append(d.accounts, draftAccount{account: account})
	return &d.accounts[len(d.accounts)-1]
}
