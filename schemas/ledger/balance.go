package ledger

import (
	"maps"
	"slices"

	"lieudit/schemas/event"
	"lieudit/schemas/plan"
)

// Snapshot is the book as an event, as of a revision.
func (b *PeriodState) Snapshot(asOf int64) event.UsageSnapshotTaken {
	e := event.UsageSnapshotTaken{
		AsOfRevision: asOf, Contract: b.Contract, First: b.Period.First, Next: b.Period.Next, Used: b.used,
		Accounts: []event.UsageAccountState{}, RevokedKeys: slices.Sorted(maps.Keys(b.revokedKeys)), Sequences: []event.UsageInstanceSequence{},
	}
	for _, id := range slices.Sorted(maps.Keys(b.accounts)) {
		a := b.accounts[id]
		e.Accounts = append(e.Accounts, event.UsageAccountState{Account: id, Cap: a.cap, CapAsOfPosition: a.capAsOf, Used: a.used, Closed: a.closed})
	}
	for _, id := range slices.Sorted(maps.Keys(b.lastSequences)) {
		e.Sequences = append(e.Sequences, event.UsageInstanceSequence{InstanceID: id, Sequence: b.lastSequences[id]})
	}
	return e
}

// RestorePeriod is the book a balance tells of, to be folded on from the revision after the one it is as of.
func RestorePeriod(e event.UsageSnapshotTaken) *PeriodState {
	b := &PeriodState{
		Contract: e.Contract, Period: plan.Period{First: e.First, Next: e.Next}, opened: true, used: e.Used,
		accounts: map[string]*accountState{}, revokedKeys: map[string]bool{}, lastSequences: map[string]int64{},
	}
	for _, a := range e.Accounts {
		b.accounts[a.Account] = &accountState{a.Cap, a.CapAsOfPosition, a.Used, a.Closed}
	}
	for _, k := range e.RevokedKeys {
		b.revokedKeys[k] = true
	}
	for _, s := range e.Sequences {
		b.lastSequences[s.InstanceID] = s.Sequence
	}
	return b
}
