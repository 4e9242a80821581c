package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// account is what operators and customers decide in the customer area: SPEC 2.1 to 2.3 and 3, DECISIONS 2, 3 and 7.
type account struct {
	isOpen, isClosed, isErased, isAgency bool

	name    string
	terms   Terms
	anchor  string // first day of the first period
	agency  string // whose sub-client it is, "" for none
	next    Terms  // from nextAt on, where that is set
	nextAt  time.Time
	joins   string // the agency from joinsAt on, "" for none, where that is set
	plan    string // that agency's
	own     string // its plan before it joined, "" for none
	pays    string // the anchor of the agency that it is a sub-client of, or joins
	joinsAt time.Time
	keys    map[string]key // by label
}

// key is an API key. Label and origins are chosen by customers, so that they are there also where the answer was lost.
type key struct {
	kind      string
	origins   string
	isRevoked bool
	changes   int // of its origins
}

// AccountCommand is a command on an account.
type AccountCommand interface {
	apply(a account, wall time.Time) []outcome[account]
}

// OpenAccount is POST /accounts. Quota 0 is the plan's own; Agency "" is none.
type OpenAccount struct {
	ID, Name, Plan string
	Quota          int64
	Anchor, Agency string
}

// ChangePlan is POST /accounts/{id}:plan, CloseAccount :close and EraseAccount :erase.
type (
	ChangePlan struct {
		Plan  string
		Quota int64
	}
	CloseAccount struct{}
	EraseAccount struct{}
)

// BecomeAgency, JoinAgency and LeaveAgency are POST /accounts/{id}:agency.
type (
	BecomeAgency struct{}
	JoinAgency   struct{ Agency, Plan, Anchor string } // the agency's plan and anchor
	LeaveAgency  struct{ ByAgency bool }
)

// IssueKey, RevokeKey and ChangeOrigins are the commands on keys. Labels name keys here.
type (
	IssueKey struct {
		Kind, Label string
		Origins     []string
	}
	RevokeKey     struct{ Label string }
	ChangeOrigins struct {
		Label   string
		Origins []string
	}
)

func (a account) hash() uint64 {
	h := hashOf(fmt.Sprint(a.isOpen, a.isClosed, a.isErased, a.isAgency, a.name, a.terms, a.anchor, a.agency, a.next,
		a.nextAt.Unix(), a.joins, a.joinsAt.Unix()), 0)
	for label, k := range a.keys {
		h ^= hashOf(label, k)
	}
	return h
}

// at is the account when terms and membership that were settled before have begun.
func (a account) at(wall time.Time) account {
	if !a.nextAt.IsZero() && !wall.Before(a.nextAt) {
		a.terms, a.next, a.nextAt = a.next, Terms{}, time.Time{}
	}
	if !a.joinsAt.IsZero() && !wall.Before(a.joinsAt) {
		if a.joins != "" {
			a.own, a.terms.Plan = a.terms.Plan, a.plan
		}
		a.agency, a.joins, a.joinsAt = a.joins, "", time.Time{}
	}
	return a
}

func (a account) answer(format string, args ...any) []outcome[account] {
	return []outcome[account]{{a, fmt.Sprintf(format, args...)}}
}

// show is the account as an answer shows it, in short.
func (a account) show(status int) []outcome[account] {
	next := ""
	if !a.nextAt.IsZero() {
		next = fmt.Sprint(a.next.Plan, " ", a.next.Quota, " ", Day(a.nextAt))
	}
	return a.answer("%d %q %s %d %q %v %q closed %v", status, a.name, a.terms.Plan, a.terms.Quota, a.agency, a.isAgency, next, a.isClosed)
}

func (c OpenAccount) apply(a account, wall time.Time) []outcome[account] {
	if a.isOpen {
		return a.answer("409 compte_deja_ouvert")
	}
	quota := c.Quota
	if quota == 0 {
		quota = plans[rank(c.Plan)].requests
	}
	unknown := a.answer("409 agence_inconnue")
	a = account{isOpen: true, name: c.Name, terms: Terms{c.Plan, quota}, anchor: c.Anchor, agency: c.Agency, pays: c.Anchor}
	if c.Agency != "" {
		a.anchor = Day(wall)
		return append(unknown, a.show(201)...)
	}
	return a.show(201)
}

// decide is the beginning of each command on an account that must be there.
func (a account) decide(wall time.Time, isClosedToo bool) (account, []outcome[account]) {
	switch {
	case !a.isOpen:
		return a, a.answer("404")
	case a.isClosed && !isClosedToo:
		return a, a.answer("409 compte_ferme")
	}
	return a.at(wall), nil
}

func (c ChangePlan) apply(a account, wall time.Time) []outcome[account] {
	a, refused := a.decide(wall, false)
	if refused != nil {
		return refused
	}
	terms := Terms(c)
	if c.Quota == 0 {
		terms.Quota = plans[rank(c.Plan)].requests
	}
	now := a
	now.terms = terms
	stays := now // what was settled for later stays, or goes: not said
	now.next, now.nextAt = Terms{}, time.Time{}
	var later []outcome[account]
	for _, end := range a.periodEnds(wall) {
		a.next, a.nextAt = terms, end
		later = append(later, a.show(200)...)
	}
	isBelow, isSaid := terms.isBelow(a.terms)
	switch {
	case !a.joinsAt.IsZero(): // whoever joins or leaves has terms that are settled
		return slices.Concat(now.show(200), later, a.answer("409 sous_client_sur_le_depart"))
	case !isSaid || a.own != "": // it had another plan before it joined
		return slices.Concat(now.show(200), later)
	case isBelow:
		return later
	}
	return slices.Concat(now.show(200), stays.show(200))
}

// periodEnds are when the running period may end. A sub-client's period is its agency's (DECISIONS 2); that its terms change at the end
// of a month since its own opening is allowed as well, until that is decided.
func (a account) periodEnds(wall time.Time) []time.Time {
	_, own := periodAt(a.anchor, wall)
	if a.agency == "" {
		return []time.Time{own}
	}
	_, agencys := periodAt(a.pays, wall)
	return []time.Time{agencys, own}
}

func (c CloseAccount) apply(a account, wall time.Time) []outcome[account] {
	a, refused := a.decide(wall, true)
	if refused != nil {
		return refused
	}
	a.isClosed = true
	return a.show(200)
}

func (c EraseAccount) apply(a account, wall time.Time) []outcome[account] {
	a, refused := a.decide(wall, true)
	switch {
	case refused != nil:
		return refused
	case !a.isClosed:
		return a.answer("409 compte_ouvert")
	}
	a.isErased, a.name = true, ""
	return a.show(200)
}

func (c BecomeAgency) apply(a account, wall time.Time) []outcome[account] {
	a, refused := a.decide(wall, false)
	if refused != nil {
		return refused
	}
	a.isAgency = true
	return a.show(200)
}

// apply joins at the next period. Whether the other is an agency is decided by its own state.
func (c JoinAgency) apply(a account, wall time.Time) []outcome[account] {
	a, refused := a.decide(wall, false)
	if refused != nil {
		return refused
	}
	unknown := a.answer("409 agence_inconnue")
	if a.isAgency {
		return append(unknown, a.answer("409 agence_imbriquee")...)
	}
	if a.agency != "" || a.joins != "" {
		unknown = append(unknown, a.answer("409 deja_sous_client")...)
	}
	if a.agency != c.Agency || !a.joinsAt.IsZero() {
		a.joins, a.plan, a.joinsAt = c.Agency, c.Plan, a.periodEnds(wall)[0]
		a.pays = c.Anchor
	}
	return append(unknown, a.show(200)...)
}

// apply leaves at the next period, with the own plan's number of requests. Agencies only ask for it.
func (c LeaveAgency) apply(a account, wall time.Time) []outcome[account] {
	a, refused := a.decide(wall, false)
	if refused != nil {
		return refused
	}
	if c.ByAgency {
		return a.answer("409 depart_a_confirmer")
	}
	if a.agency == "" && a.joins == "" {
		return a.answer("409 pas_sous_client")
	}
	if a.agency == "" { // it had not begun
		a.joins, a.joinsAt = "", time.Time{}
		return a.show(200)
	}
	var all []outcome[account]
	for _, end := range a.periodEnds(wall) {
		for _, plan := range []string{a.terms.Plan, a.own} { // its own plan: which that is, is not said
			if plan != "" {
				a.joins, a.joinsAt = "", end
				a.next, a.nextAt = Terms{plan, plans[rank(plan)].requests}, end
				all = append(all, a.show(200)...)
			}
		}
	}
	return all
}

// withKey is a copy with one key set.
func (a account) withKey(label string, k key) account {
	a.keys = maps.Clone(a.keys)
	if a.keys == nil {
		a.keys = map[string]key{}
	}
	a.keys[label] = k
	return a
}

func (c IssueKey) apply(a account, wall time.Time) []outcome[account] {
	a, refused := a.decide(wall, false)
	if refused != nil {
		return refused
	}
	if c.Kind == "publishable" {
		active, most := 0, plans[rank(a.terms.Plan)].publishableKeys
		for _, k := range a.keys {
			if k.kind == c.Kind && !k.isRevoked {
				active++
			}
		}
		if active >= most {
			return a.answer("409 capacite_cles_publiables_depassee %d %d", most, active)
		}
	}
	origins := strings.Join(c.Origins, " ")
	return a.withKey(c.Label, key{kind: c.Kind, origins: origins}).answer("201 %s %q [%s] revoked false", c.Kind, c.Label, origins)
}

func (c RevokeKey) apply(a account, wall time.Time) []outcome[account] {
	k, ok := a.keys[c.Label]
	if !ok {
		return a.answer("404")
	}
	k.isRevoked = true
	return a.withKey(c.Label, k).answer("200 %s %q [%s] revoked true", k.kind, c.Label, k.origins)
}

func (c ChangeOrigins) apply(a account, wall time.Time) []outcome[account] {
	k, ok := a.keys[c.Label]
	if !ok {
		return a.answer("404")
	}
	if a.isClosed || k.isRevoked { // which of the two is told first is not said
		return append(a.answer("409 compte_ferme"), a.answer("409 cle_revoquee")...)
	}
	if origins := strings.Join(c.Origins, " "); origins != k.origins {
		k.origins, k.changes = origins, k.changes+1
	}
	return a.withKey(c.Label, k).answer("200 %s %q [%s] revoked false", k.kind, c.Label, k.origins)
}

// shownAccount is an account in an answer.
type shownAccount struct {
	ID       string    `json:"id"`
	Name     string    `json:"nom"`
	Plan     string    `json:"plan"`
	Quota    int64     `json:"quota"`
	Anchor   string    `json:"debut_periode"`
	Agency   string    `json:"agence_de"`
	IsAgency bool      `json:"agence"`
	Closed   time.Time `json:"ferme_le"`
	Next     *struct {
		Plan  string    `json:"plan"`
		Quota int64     `json:"quota"`
		At    time.Time `json:"effet"`
	} `json:"prochain"`
}

// summarizeAccount is an answer to a command on an account, in the short form that commands foresee.
func summarizeAccount(c AccountCommand, a Answer) string {
	if a.Status >= 400 {
		return summarizeRefusal(a)
	}
	switch c.(type) {
	case IssueKey, RevokeKey, ChangeOrigins:
		k := shownKey{}
		if json.Unmarshal(a.Body, &k) != nil {
			return fmt.Sprint(a.Status, " not JSON")
		}
		return fmt.Sprintf("%d %s", a.Status, k.text())
	}
	s := shownAccount{}
	if json.Unmarshal(a.Body, &s) != nil {
		return fmt.Sprint(a.Status, " not JSON")
	}
	return fmt.Sprintf("%d %s", a.Status, s.text())
}

func (s shownAccount) text() string {
	next := ""
	if s.Next != nil {
		next = fmt.Sprint(s.Next.Plan, " ", s.Next.Quota, " ", Day(s.Next.At))
	}
	return fmt.Sprintf("%q %s %d %q %v %q closed %v", s.Name, s.Plan, s.Quota, s.Agency, s.IsAgency, next, !s.Closed.IsZero())
}

// shownKey is a key in an answer.
type shownKey struct {
	ID      string    `json:"id"`
	Kind    string    `json:"kind"`
	Label   string    `json:"label"`
	Token   string    `json:"token"`
	Origins []string  `json:"origins"`
	Revoked time.Time `json:"revoque_le"`
}

func (k shownKey) text() string {
	return fmt.Sprintf("%s %q [%s] revoked %v", k.Kind, k.Label, strings.Join(k.Origins, " "), !k.Revoked.IsZero())
}

// shown is the account as the customer area shows it at a quiet moment. What is settled for later and not shown stays as it was.
func (a account) shown(s shownAccount, keys []shownKey, wall time.Time) account {
	a = a.at(wall)
	a.isOpen, a.isClosed, a.isAgency = true, !s.Closed.IsZero(), s.IsAgency
	a.name, a.terms, a.agency = s.Name, Terms{s.Plan, s.Quota}, s.Agency
	a.next, a.nextAt = Terms{}, time.Time{}
	if s.Next != nil {
		a.next, a.nextAt = Terms{s.Next.Plan, s.Next.Quota}, s.Next.At
	}
	a.keys = map[string]key{}
	for _, k := range keys {
		a.keys[k.Label] = key{kind: k.Kind, origins: strings.Join(k.Origins, " "), isRevoked: !k.Revoked.IsZero()}
	}
	return a
}

// text is the whole of an account but what answers do not show.
func (a account) text(wall time.Time) string {
	a = a.at(wall)
	var keys []string
	for label, k := range a.keys {
		keys = append(keys, fmt.Sprintf("%s %q [%s] revoked %v", k.kind, label, k.origins, k.isRevoked))
	}
	slices.Sort(keys)
	return a.show(200)[0].answer + " " + strings.Join(keys, ", ")
}
