package model

import (
	"maps"
	"slices"
)

// Snapshot is what a model knew at a quiet moment.
type Snapshot struct {
	accounts map[string]*customer
	tokens   map[string]*areaToken
	book     book
	billed   []BilledLine
}

// Snapshot copies what is known.
func (m *Model) Snapshot() Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Snapshot{m.accounts, m.tokens, m.book, m.billed}.clone()
}

// Restore makes a snapshot the truth, as after the logs were restored. Secrets that were told since are still tried. Data that was
// erased since stays unreadable: the log says no more why (DESIGN.md, "What operators must be able to rely on").
func (m *Model) Restore(s Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.accounts
	s = s.clone()
	m.accounts, m.tokens, m.book, m.billed = s.accounts, s.tokens, s.book, s.billed
	for id, was := range old {
		of := m.customer(id)
		of.secrets = was.secrets
		of.isUnreadable = was.isUnreadable || was.account.possible[0].state.isErased && !of.account.possible[0].state.isErased
	}
}

// HasErasedSince reports whether an account may have been erased since a snapshot.
func (m *Model) HasErasedSince(s Snapshot) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	isErased := func(of *customer) bool {
		return of != nil && slices.ContainsFunc(of.account.possible, func(b branch[account]) bool { return b.state.isErased })
	}
	for id, of := range m.accounts {
		if isErased(of) && !isErased(s.accounts[id]) {
			return true
		}
	}
	return false
}

// IsUnreadable reports whether an account's data was erased on a log that was restored to an older copy since.
func (m *Model) IsUnreadable(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return id != "" && m.customer(id).isUnreadable
}

func (s Snapshot) clone() Snapshot {
	c := Snapshot{map[string]*customer{}, map[string]*areaToken{}, book{}, s.billed}
	for id, of := range s.accounts {
		copied := *of
		copied.account, copied.places = of.account.clone(), of.places.clone()
		copied.ids, copied.secrets, copied.related = maps.Clone(of.ids), slices.Clone(of.secrets), maps.Clone(of.related)
		c.accounts[id] = &copied
	}
	for label, t := range s.tokens {
		copied := *t
		c.tokens[label] = &copied
	}
	for _, lines := range s.book {
		for l, n := range lines {
			*c.book.line(l) = count{n.sure, n.maybe, maps.Clone(n.failed)}
		}
	}
	return c
}
