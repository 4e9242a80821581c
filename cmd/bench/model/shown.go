package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// BilledLine is a line of GET /usage.
type BilledLine struct {
	Account  string `json:"compte"`
	Contract string `json:"contrat"`
	Period   string `json:"periode"`
	Day      string `json:"jour"`
	Key      string `json:"cle"` // its id
	Endpoint string `json:"endpoint"`
	Requests int64  `json:"requetes"`
}

// SettleUsage compares what is billed with what was served. From then on the billed counts are the truth. It returns, for each line, how many
// requests since the last quiet moment are billed but were not answered.
func (m *Model) SettleUsage(billed []BilledLine) (unanswered map[Line]int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.billed = billed
	shown := map[Line]int64{}
	for _, b := range billed {
		l := Line{b.Account, b.Contract, m.labelOf(b.Account, b.Key), b.Endpoint, b.Day}
		shown[l] += b.Requests
		m.book.line(l)
		if want := m.periodOf(l); want != b.Period {
			m.report(BilledByContract, "", "%+v: the period of that day begins on %s", b, want)
		}
	}
	unanswered = map[Line]int64{}
	for _, lines := range m.book {
		for l, n := range lines {
			unanswered[l] = shown[l] - n.sure
			m.settleLine(l, n, shown[l])
		}
	}
	return unanswered
}

func (m *Model) settleLine(l Line, n *count, billed int64) {
	if billed < n.sure || billed > n.sure+n.maybe {
		rule := UsageIsServed
		for _, lines := range m.book { // the same requests on another contract
			for other, count := range lines {
				if other.Contract != l.Contract && count.most() > 0 && other.Account == l.Account && other.Key == l.Key && other.Day == l.Day {
					rule = BilledByContract
				}
			}
		}
		m.report(rule, "", "%+v: %d are billed, %d were served and %d are of unknown fate", l, billed, n.sure, n.maybe)
	}
	*n = count{sure: billed, failed: map[int][]failure{}}
}

// labelOf returns the label of a key by its id, or the id if nobody has that key.
func (m *Model) labelOf(account, id string) string {
	for _, s := range m.customer(account).secrets {
		if s.ID == id {
			return s.Label
		}
	}
	return id
}

// periodOf names the period of the line's contract that contains the line's day.
func (m *Model) periodOf(l Line) string {
	day, err := time.ParseInLocation(time.DateOnly, l.Day, paris)
	if err != nil {
		return err.Error()
	}
	begin, _ := periodAt(m.latest(l.Contract).anchor, day)
	return Day(begin)
}

// CheckUsage compares the usage shown to an account with what is billed, and with its quota.
func (m *Model) CheckUsage(id string, a Answer, wall time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var shown struct {
		Period string `json:"periode"`
		Limit  int64  `json:"limite"`
		Total  int64  `json:"total"`
		Lines  []struct {
			Requests int64 `json:"requetes"`
		} `json:"lignes"`
	}
	if a.Status != 200 || json.Unmarshal(a.Body, &shown) != nil {
		m.report(EveryAccountAnswers, "", "usage of %s: %s", id, short(a))
		return
	}
	state := m.latest(id).at(wall)
	l := Line{Account: id, Contract: state.contract(id), Day: Day(wall)}
	billed, sum := m.countedOf(id, m.periodOf(l)), int64(0)
	for _, line := range shown.Lines {
		sum += line.Requests
	}
	if shown.Total != billed || sum != billed || shown.Period != m.periodOf(l) {
		m.report(UsageAgrees, "", "%s: %d are billed in the period %s: %s", id, billed, m.periodOf(l), short(a))
	}
	if shown.Limit != state.terms.Quota && !m.customer(id).account.isUntold {
		m.report(UsageAgrees, "", "%s has a quota of %d: %s", id, state.terms.Quota, short(a))
	}
}

// countedOf sums the requests of an account in a period, whoever pays: when a sub-client leaves its agency through an instance whose clock is
// behind, other instances may have counted for the agency in the period in which it leaves.
func (m *Model) countedOf(id, period string) (n int64) {
	for _, lines := range m.book {
		for l, c := range lines {
			if l.Account == id && m.periodOf(l) == period {
				n += c.sure
			}
		}
	}
	return n
}

// SettlePlaces compares the referentials of an account and all their sites with the possible states.
func (m *Model) SettlePlaces(id string, referentials Answer, sites map[string]Answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list struct{ Results []shownReferential }
	shown := places{}
	if json.Unmarshal(referentials.Body, &list) != nil {
		m.report(EveryAccountAnswers, "", "referentials of %s: %s", id, short(referentials))
		return
	}
	for _, r := range list.Results {
		shown = shown.withReferential(r.Code, referential{name: r.Name, isArchived: r.Status == "archived"})
		var page struct{ Results []shownSite }
		if json.Unmarshal(sites[r.Code].Body, &page) != nil {
			m.report(EveryAccountAnswers, "", "sites of %s: %s", id, short(sites[r.Code]))
			return
		}
		set := map[siteID]site{}
		for _, s := range page.Results {
			m.checkShown(id, "", "the list of "+id, s)
			set[siteID{r.Code, s.ExternalID}] = site{s.Name, s.Properties["note"], s.IsActive, s.Version}
		}
		shown = shown.withSites(set)
		if n := shown.activeSites(r.Code); n != r.Active {
			m.report(AcknowledgedIsThere, "", "%s of %s is said to have %d active sites, and %d are listed", r.Code, id, r.Active, n)
		}
	}
	var others []string
	matches := func(p places) bool {
		if p.isShownAs(shown) {
			return true
		}
		if len(others) < 4 {
			others = append(others, p.difference(shown))
		}
		return false
	}
	if !m.customer(id).places.settle(matches, shown) {
		m.report(AcknowledgedIsThere, "", "the places of %s are none of those possible, which differ by %q", id, others)
	}
}

// isShownAs reports whether places look like the shown ones.
func (p places) isShownAs(shown places) bool { return p.difference(shown) == "" }

// difference describes how places differ from the shown ones.
func (p places) difference(shown places) string {
	var all []string
	for _, code := range slices.Sorted(maps.Keys(merge(p.referentials, shown.referentials))) {
		a, isThere := p.referentials[code]
		b, isShown := shown.referentials[code]
		if isThere != isShown || a.name != b.name || a.isArchived != b.isArchived {
			all = append(all, fmt.Sprintf("%s: shown %v %+v, may be %v %+v", code, isShown, b, isThere, a))
		}
	}
	for id := range merge(p.sites, shown.sites) {
		if p.sites[id] != shown.sites[id] {
			all = append(all, fmt.Sprintf("%v: shown %+v, may be %+v", id, shown.sites[id], p.sites[id]))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

func merge[K comparable, V any](a, b map[K]V) map[K]V {
	all := make(map[K]V, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// Sites returns the sites of an account as last seen at a quiet moment, by code/external_id, with their version, state and name.
func (m *Model) Sites(id string) map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]string{}
	for at, s := range m.customer(id).places.possible[0].state.sites {
		all[at.code+"/"+at.externalID] = fmt.Sprintf("v%d %v %q", s.version, s.isActive, s.name)
	}
	return all
}

// KnownSite is a site as the model knows it.
type KnownSite struct {
	ExternalID, Name string
	IsActive         bool
	Version          int
}

// KnownSites returns the sites of a referential, by id, in one of the states that are possible now. pick chooses the state.
func (m *Model) KnownSites(account, code string, pick int) map[string]KnownSite {
	m.mu.Lock()
	defer m.mu.Unlock()
	all, known := m.customer(account).places.possible, map[string]KnownSite{}
	for at, s := range all[pick%len(all)].state.sites {
		if at.code == code {
			known[at.externalID] = KnownSite{at.externalID, s.name, s.isActive, s.version}
		}
	}
	return known
}

// OpenReferentials returns the codes of an account's referentials that accept sites, as last seen at a quiet moment.
func (m *Model) OpenReferentials(id string) (codes []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.customer(id).places.possible[0].state.referentials
	for _, code := range slices.Sorted(maps.Keys(all)) {
		if !all[code].isArchived {
			codes = append(codes, code)
		}
	}
	return codes
}

// Incident is a line of an account's history.
type Incident struct {
	Type    string `json:"type"`
	Subject string `json:"sujet"`
}

// CheckAudit counts the lines of the history about each key, referential and site: every change must appear once.
func (m *Model) CheckAudit(id string, history []Incident) {
	m.mu.Lock()
	defer m.mu.Unlock()
	told := map[string]int{}
	for _, i := range history {
		if !strings.Contains(i.Type, "refused") {
			told[i.Subject]++
		}
	}
	of := m.customer(id)
	for code := range of.places.possible[0].state.referentials { // a sync that changed nothing is a line about the referential
		told[code] = 0
		for _, t := range ofSubject(history, code) {
			if strings.Contains(t, "referential") {
				told[code]++
			}
		}
	}
	check := func(what, subject string, want int) {
		if told[subject] != want {
			m.report(AuditTellsOnce, "", "%s: %d lines of %s %s, want %d: %+v", id, told[subject], what, subject, want, ofSubject(history, subject))
		}
	}
	a, p := of.account.possible[0].state, of.places.possible[0].state
	for _, s := range of.secrets {
		k, ok := a.keys[s.Label]
		if !ok || k.changes > 0 { // no line is left on a log that was restored since
			check("key", s.ID, k.changes)
		}
	}
	if !of.places.isCertain() { // the list that would settle them was refused by the cap
		return
	}
	for code, r := range p.referentials {
		if r.changes > 0 {
			check("referential", code, r.changes)
		}
	}
	for at, s := range p.sites {
		check("site", at.code+"/"+at.externalID, s.version)
	}
}

// ofSubject returns the types of the history's lines about a subject.
func ofSubject(history []Incident, subject string) (types []string) {
	for _, i := range history {
		if i.Subject == subject {
			types = append(types, i.Type)
		}
	}
	return types
}

// CheckAccountList compares a list of accounts with those that exist: an agency's list with its sub-clients, that of "" with all accounts.
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

// CheckTokenList compares the list of tokens with those that were issued. Tokens whose issue got no answer may be in it too.
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
		if id == Operator || t.parent != "" {
			continue
		}
		i := slices.IndexFunc(listed, func(s shownToken) bool { return s.ID == id })
		if i < 0 || listed[i].Role != t.role || listed[i].Account != t.account ||
			!t.revoked.IsZero() && listed[i].Revoked.IsZero() || t.revoking.IsZero() && !listed[i].Revoked.IsZero() {
			m.report(ListsShowIt, "", "token %s of %s %q, revoked %v, is listed so: %s", id, t.role, t.account, !t.revoked.IsZero(), rows)
		}
	}
}

// Contract returns the account that pays for an account, as far as is known.
func (m *Model) Contract(id string, wall time.Time) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latest(id).at(wall).contract(id)
}
