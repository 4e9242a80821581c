package ledger

import (
	"maps"
	"slices"

	"lieudit/schemas/event"
	"lieudit/schemas/plan"
)

// Balance is the book as an event, as of a revision.
func (b *Book) Balance(asOf int64) event.UsageBalanced {
	e := event.UsageBalanced{
		AsOf: asOf, Contract: b.Contract, First: b.Period.First, Next: b.Period.Next, Used: b.used,
		Accounts: []event.UsageBalance{}, Revoked: slices.Sorted(maps.Keys(b.revoked)), Said: []event.UsageIncarnated{},
	}
	for _, id := range slices.Sorted(maps.Keys(b.accounts)) {
		a := b.accounts[id]
		e.Accounts = append(e.Accounts, event.UsageBalance{Account: id, Cap: a.cap, AsOf: a.asOf, Used: a.used, Closed: a.closed})
	}
	for _, id := range slices.Sorted(maps.Keys(b.said)) {
		e.Said = append(e.Said, event.UsageIncarnated{Incarnation: id, Sequence: b.said[id]})
	}
	return e
}

// Resume is the book a balance tells of, to be folded on from the revision after the one it is as of.
func Resume(e event.UsageBalanced) *Book {
	b := &Book{
		Contract: e.Contract, Period: plan.Period{First: e.First, Next: e.Next}, opened: true, used: e.Used,
		accounts: map[string]*balance{}, revoked: map[string]bool{}, said: map[string]int64{},
	}
	for _, a := range e.Accounts {
		b.accounts[a.Account] = &balance{a.Cap, a.AsOf, a.Used, a.Closed}
	}
	for _, k := range e.Revoked {
		b.revoked[k] = true
	}
	for _, s := range e.Said {
		b.said[s.Incarnation] = s.Sequence
	}
	return b
}
