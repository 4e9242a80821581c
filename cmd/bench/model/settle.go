package model

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// Accounts returns the ids of all accounts that any request has named.
func (m *Model) Accounts() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.accounts))
}

// latest returns a state that an account may be in now.
func (m *Model) latest(id string) account { return m.customer(id).account.possible[0].state }

// IsOpen reports whether an account is open, as far as is known.
func (m *Model) IsOpen(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.latest(id)
	return a.wasOpened && !a.isClosed
}

// IsErased reports whether an account was erased, as far as is known.
func (m *Model) IsErased(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latest(id).isErased
}

// IsKnown reports whether an account was opened, as far as is known.
func (m *Model) IsKnown(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latest(id).wasOpened
}

// IsAgency reports whether an account is an agency, as far as is known.
func (m *Model) IsAgency(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latest(id).isAgency
}

func (m *Model) Anchor(id string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latest(id).anchor
}

// Plan returns the plan of an account, as far as is known.
func (m *Model) Plan(id string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latest(id).plan()
}

// Agency returns the agency of a sub-client, as far as is known, "" for none.
func (m *Model) Agency(id string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latest(id).agency
}

// PaysWithOthers reports whether an account is an agency, a sub-client, or about to be one.
func (m *Model) PaysWithOthers(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.latest(id)
	return a.isAgency || a.agency != "" || !a.nextAgencyAt.IsZero()
}

// FindToken returns the label of a token of a role that is not being revoked, "" if there is none.
func (m *Model) FindToken(role, account string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, label := range slices.Sorted(maps.Keys(m.tokens)) {
		if t := m.tokens[label]; t.role == role && t.account == account && t.parent == "" && t.revoking.IsZero() {
			return label
		}
	}
	return ""
}

// FindSession returns the label of a session of a token, ended or not, "" if there is none, and how many have not ended.
func (m *Model) FindSession(token string, pick int) (label string, open int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	for id, t := range m.tokens {
		if t.parent == token {
			all = append(all, id)
			if t.revoking.IsZero() {
				open++
			}
		}
	}
	if len(all) == 0 {
		return "", 0
	}
	slices.Sort(all)
	return all[len(all)-1-pick%min(len(all), recentSessions)], open
}

// recentSessions is how many of the last sessions of a token are used.
const recentSessions = 3

// SettleAccount compares an account and its keys, as shown at a quiet moment, with the possible states.
func (m *Model) SettleAccount(id string, shown, keys Answer, wall time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.customer(id).account
	if shown.Status == 404 {
		if !o.settle(func(a account) bool { return !a.wasOpened }, account{}) {
			m.report(AcknowledgedIsThere, "", "account %s is unknown", id)
		}
		return
	}
	var s shownAccount
	var k struct{ Results []shownKey }
	if shown.Status != 200 || keys.Status != 200 || json.Unmarshal(shown.Body, &s) != nil || json.Unmarshal(keys.Body, &k) != nil {
		m.report(EveryAccountAnswers, "", "account %s: %s; its keys: %s", id, short(shown), short(keys))
		return
	}
	first := m.latest(id).shown(s, k.Results, m.contractsOf(id), wall)
	want := first.text(wall)
	var others []string
	if !o.settle(func(a account) bool {
		if !a.wasOpened || a.text(wall) != want {
			others = append(others, a.text(wall))
			return false
		}
		return true
	}, first.withOwnPlans()...) {
		m.report(AcknowledgedIsThere, "", "account %s is %s, want one of %q: %s", id, want, others, shown.Body)
	}
}

// contractsOf returns the contract that an account would have with each agency that it knows.
func (m *Model) contractsOf(id string) map[string]contract {
	all := map[string]contract{}
	for other := range m.customer(id).related {
		if a := m.latest(other); a.isAgency {
			all[other] = contract{a.plan(), a.anchor}
		}
	}
	return all
}
