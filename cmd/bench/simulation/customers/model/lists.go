package model

import (
	"encoding/json"
	"slices"
	"time"
)

// CheckAccountList compares a list of accounts with those that there are: of an agency, its sub-clients; of "", all.
func (m *Model) CheckAccountList(agency string, rows []json.RawMessage, wall time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var listed []string
	for _, row := range rows {
		var s shownAccount
		if json.Unmarshal(row, &s) != nil {
			m.report(ListsShowIt, "", "an account is listed as %s", row)
			return
		}
		listed = append(listed, s.ID)
	}
	for id, of := range m.accounts {
		n := 0
		for _, other := range listed {
			if other == id {
				n++
			}
		}
		isListed := func(a account) bool { // an agency sees who is about to join it, too
			a = a.at(wall)
			return a.wasOpened && (agency == "" || a.agency == agency || a.nextAgency == agency)
		}
		switch {
		case of.isUnreadable || of.account.isUntold:
		case n > 1, !of.account.narrow(func(a account) bool { return isListed(a) == (n == 1) }):
			m.report(ListsShowIt, "", "%s is %d times in the accounts of agency %q: %q", id, n, agency, listed)
		}
	}
	for _, id := range listed {
		if m.accounts[id] == nil {
			m.report(ListsShowIt, "", "nobody opened %s", id)
		}
	}
}

// CheckTokenList compares the list of tokens with those that were issued. Tokens of an issue without an answer may be there too.
func (m *Model) CheckTokenList(rows []json.RawMessage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	type shownToken struct {
		ID      string    `json:"id"`
		Role    string    `json:"role"`
		Account string    `json:"account"`
		Revoked time.Time `json:"revoque_le"`
	}
	var listed []shownToken
	for _, row := range rows {
		var s shownToken
		if json.Unmarshal(row, &s) != nil {
			m.report(ListsShowIt, "", "a token is listed as %s", row)
			return
		}
		listed = append(listed, s)
	}
	for id, t := range m.tokens {
		if id == Operator {
			continue
		}
		i := slices.IndexFunc(listed, func(s shownToken) bool { return s.ID == id })
		if i < 0 || listed[i].Role != t.role || listed[i].Account != t.account ||
			!t.revoked.IsZero() && listed[i].Revoked.IsZero() || t.revoking.IsZero() && !listed[i].Revoked.IsZero() {
			m.report(ListsShowIt, "", "token %s of %s %q, revoked %v, is listed so: %s", id, t.role, t.account, !t.revoked.IsZero(), rows)
		}
	}
}

// Contract is the account that pays for an account, as far as is known.
func (m *Model) Contract(id string, wall time.Time) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latest(id).at(wall).contract(id)
}
