package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// account is the state that operators and customers set in the customer area: SPEC 2.1 to 2.3 and 3, DECISIONS 2, 3 and 7.
type account struct {
	wasOpened, isClosed, isErased, isAgency bool

	name         string
	terms        Terms  // its own; a sub-client has its agency's plan as long as it is one
	anchor       string // first day of the first period
	agency       string // its agency; "" if it is not a sub-client
	next         Terms  // from nextAt on, if that is set
	nextAt       time.Time
	nextAgency   string // the agency from nextAgencyAt on, if that is set; "": it leaves then
	nextAgencyAt time.Time
	agencys      contract       // of the agency that it belongs to, or joins
	before       membership     // the one that has ended by the clock of some instance
	formerTerms  formerTerms    // the terms that have ended by the clock of some instance
	keys         map[string]key // by label
}

// contract is the plan and the anchor that a sub-client has from its agency.
type contract struct{ plan, anchor string }

// membership is an agency, or "", until a time. It still holds for instances whose clocks are behind.
type membership struct {
	agency string
	until  time.Time
}

// formerTerms are terms until a time. They still hold for instances whose clocks are behind.
type formerTerms struct {
	Terms
	until time.Time
}

// plan returns the plan in force.
func (a account) plan() string {
	if a.agency != "" {
		return a.agencys.plan
	}
	return a.terms.Plan
}

// key is an API key. Customers choose its label and its origins, so they are known even if the answer was lost.
type key struct {
	kind      string
	origins   string
	isRevoked bool
	changes   int // counting its issue; 0: its origin is unknown
}

// changed returns the key with one more change, if their number is known.
func (k key) changed() key {
	if k.changes > 0 {
		k.changes++
	}
	return k
}

// AccountCommand is a command on an account.
type AccountCommand interface {
	apply(a account, wall time.Time) []outcome[account]
}

// OpenAccount is POST /accounts. Quota 0 means the plan's own; Agency "" means none.
type OpenAccount struct {
	ID, Name, Plan string
	Quota          int64
	Anchor, Agency string
}

// ChangePlan is POST /accounts/{id}:plan, CloseAccount :close and EraseAccount :erase.
type (
	ChangePlan struct {
		Plan     string
		Quota    int64
		ByAgency bool // by the agency of a sub-client
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
	h := hashOf(fmt.Sprint(a.wasOpened, a.isClosed, a.isErased, a.isAgency, a.name, a.terms, a.anchor, a.agency, a.agencys, a.next,
		a.nextAt.Unix(), a.nextAgency, a.nextAgencyAt.Unix()), 0)
	for label, k := range a.keys {
		h ^= hashOf(label, k)
	}
	return h
}

// at returns the account once the terms and the membership that were scheduled up to then have begun.
func (a account) at(wall time.Time) account { return a.withTermsAt(wall).withMembershipAt(wall) }

func (a account) withTermsAt(wall time.Time) account {
	if !a.nextAt.IsZero() && !wall.Before(a.nextAt) {
		a.formerTerms = formerTerms{a.terms, a.nextAt}
		a.terms, a.next, a.nextAt = a.next, Terms{}, time.Time{}
	}
	return a
}

func (a account) withMembershipAt(wall time.Time) account {
	if !a.nextAgencyAt.IsZero() && !wall.Before(a.nextAgencyAt) {
		a.before = membership{a.agency, a.nextAgencyAt}
		a.agency, a.nextAgency, a.nextAgencyAt = a.nextAgency, "", time.Time{}
	}
	return a
}

func (a account) answer(format string, args ...any) []outcome[account] {
	return []outcome[account]{{a, fmt.Sprintf(format, args...)}}
}

// show returns the account in the short form of an answer.
func (a account) show(status int) []outcome[account] {
	next := ""
	if !a.nextAt.IsZero() {
		plan := a.next.Plan
		if a.agency != "" && (a.nextAgencyAt.IsZero() || a.nextAgencyAt.After(a.nextAt)) {
			plan = a.agencys.plan
		}
		next = fmt.Sprint(plan, " ", a.next.Quota, " ", Day(a.nextAt))
	}
	nextAgency := ""
	if !a.nextAgencyAt.IsZero() {
		nextAgency = fmt.Sprintf("%q %s", a.nextAgency, Day(a.nextAgencyAt))
	}
	return a.answer("%d %q %s %d %q %v %q %q closed %v", status, a.name, a.plan(), a.terms.Quota, a.agency, a.isAgency, next, nextAgency, a.isClosed)
}

func (c OpenAccount) apply(a account, wall time.Time) []outcome[account] {
	if a.wasOpened {
		return a.answer("409 compte_deja_ouvert")
	}
	quota := c.Quota
	if quota == 0 {
		quota = plans[rank(c.Plan)].requests
	}
	unknown := a.answer("409 agence_inconnue")
	a = account{wasOpened: true, name: c.Name, terms: Terms{c.Plan, quota}, anchor: c.Anchor, agency: c.Agency, agencys: contract{c.Plan, c.Anchor}}
	if c.Agency != "" {
		a.anchor = Day(wall)
		return append(unknown, a.show(201)...)
	}
	return a.show(201)
}

// refuse begins each command on an account that must exist. It returns nil if nothing is refused.
func (a account) refuse(isClosedToo bool) []outcome[account] {
	switch {
	case !a.wasOpened:
		return a.answer("404")
	case a.isClosed && !isClosedToo:
		return a.answer("409 compte_ferme")
	}
	return nil
}

// decide is refuse for commands on terms and membership. A change that has begun by the clock of one instance is still to come for instances
// whose clocks are behind, so other commands leave it unchanged.
func (a account) decide(wall time.Time) (account, []outcome[account]) {
	return a.at(wall), a.refuse(false)
}

// clocksApart is the greatest difference between the wall clocks of instances and of the log: each may be off twice at the same time.
const clocksApart = 40 * time.Minute

// changedBy returns the possible answers to a command, each with the account after it. A refusal changes nothing: a change that has begun by
// the clock of the refusing instance is still to come for others.
func (a account) changedBy(decided []outcome[account], wall time.Time) []outcome[account] {
	for i, o := range decided {
		if !strings.HasPrefix(o.answer, "200") {
			decided[i].state = a
		}
	}
	return alsoSoon(decided, wall)
}

// alsoSoon adds the answers that a command may get if another clock is ahead: what was to begin soon has begun. Either the terms or the
// membership may have begun alone, because a decision by a clock that is behind holds at once.
func alsoSoon(all []outcome[account], wall time.Time) []outcome[account] {
	later := wall.Add(clocksApart)
	for _, o := range slices.Clone(all) {
		if !strings.HasPrefix(o.answer, "200") {
			continue
		}
		for _, soon := range []account{o.state.at(later), o.state.withTermsAt(later), o.state.withMembershipAt(later)} {
			if soon.hash() != o.state.hash() {
				all = append(all, outcome[account]{o.state, soon.show(200)[0].answer})
			}
		}
	}
	return all
}

// showAt is show by a wall clock.
func (a account) showAt(wall time.Time) []outcome[account] {
	return []outcome[account]{{a, a.at(wall).show(200)[0].answer}}
}

// leastQuota is the smallest quota that customers give an agency.
const leastQuota = 20

func (c ChangePlan) apply(a account, wall time.Time) []outcome[account] {
	return a.changedBy(c.decide(a, wall), wall)
}

func (c ChangePlan) decide(a account, wall time.Time) []outcome[account] {
	a, refused := a.decide(wall)
	if refused != nil {
		return refused
	}
	switch {
	case c.ByAgency && a.agency == "":
		return a.answer("409 pas_sous_client")
	case c.ByAgency && !a.nextAgencyAt.IsZero() && a.nextAgency == "":
		return a.answer("409 sous_client_sur_le_depart")
	case a.agency != "" && c.Plan != a.agencys.plan:
		return a.answer("409 plan_de_l_agence")
	}
	terms, inForce := Terms{c.Plan, c.Quota}, Terms{a.plan(), a.terms.Quota}
	if c.ByAgency {
		terms.Plan = a.terms.Plan // an agency cannot change the plan that its sub-client returns to
	}
	if c.Quota == 0 {
		terms.Quota = plans[rank(c.Plan)].requests
	}
	var tooMuch []outcome[account]
	if c.ByAgency && c.Quota > leastQuota { // the limit is the agency's own quota, which belongs to another account
		tooMuch = a.answer("422 ")
	}
	now := a
	now.terms = terms
	stays := now // the specification leaves open whether scheduled terms survive
	now.next, now.nextAt = Terms{}, time.Time{}
	later := a
	later.next, later.nextAt = terms, a.periodEnd(wall)
	soon := a // for instances whose wall clock is behind
	soon.next, soon.nextAt = terms, wall
	soonShown := outcome[account]{soon, now.show(200)[0].answer}
	isBelow, isSaid := Terms{c.Plan, terms.Quota}.isBelow(inForce)
	switch {
	case !isSaid:
		return append(slices.Concat(now.show(200), later.show(200), tooMuch), soonShown)
	case isBelow:
		return append(later.show(200), tooMuch...)
	}
	return append(slices.Concat(now.show(200), stays.show(200), tooMuch), soonShown)
}

// periodEnd returns the end of the running period. A sub-client's period is its agency's (DECISIONS 2).
func (a account) periodEnd(wall time.Time) time.Time {
	anchor := a.anchor
	if a.agency != "" {
		anchor = a.agencys.anchor
	}
	_, end := periodAt(anchor, wall)
	return end
}

func (c CloseAccount) apply(a account, wall time.Time) []outcome[account] {
	refused := a.refuse(true)
	if refused != nil {
		return refused
	}
	a.isClosed = true
	return a.showAt(wall)
}

func (c EraseAccount) apply(a account, wall time.Time) []outcome[account] {
	refused := a.refuse(true)
	switch {
	case refused != nil:
		return refused
	case !a.isClosed:
		return a.answer("409 compte_ouvert")
	}
	a.isErased, a.name = true, ""
	return a.showAt(wall)
}

func (c BecomeAgency) apply(a account, wall time.Time) []outcome[account] {
	refused := a.refuse(false)
	if refused != nil {
		return refused
	}
	a.isAgency = true
	return a.showAt(wall)
}

// apply joins at the next period. The state of the other account decides whether it is an agency.
func (c JoinAgency) apply(a account, wall time.Time) []outcome[account] {
	return a.changedBy(c.decide(a, wall), wall)
}

func (c JoinAgency) decide(a account, wall time.Time) []outcome[account] {
	a, refused := a.decide(wall)
	if refused != nil {
		return refused
	}
	unknown := a.answer("409 agence_inconnue")
	if a.isAgency {
		return append(unknown, a.answer("409 agence_imbriquee")...)
	}
	if a.agency != "" || a.nextAgency != "" {
		unknown = append(unknown, a.answer("409 deja_sous_client")...)
	}
	if a.agency != c.Agency || !a.nextAgencyAt.IsZero() {
		a.nextAgency, a.nextAgencyAt = c.Agency, a.periodEnd(wall)
		a.agencys = contract{c.Plan, c.Anchor}
	}
	return append(unknown, a.show(200)...)
}

// apply leaves at the next period, with the quota of its own plan. Only agencies ask for it.
func (c LeaveAgency) apply(a account, wall time.Time) []outcome[account] {
	return a.changedBy(c.decide(a, wall), wall)
}

func (c LeaveAgency) decide(a account, wall time.Time) []outcome[account] {
	a, refused := a.decide(wall)
	if refused != nil {
		return refused
	}
	if c.ByAgency {
		return a.answer("409 depart_a_confirmer")
	}
	if a.agency == "" && a.nextAgency == "" {
		return a.answer("409 pas_sous_client")
	}
	if a.agency == "" { // the membership had not begun
		a.nextAgency, a.nextAgencyAt = "", time.Time{}
		return a.show(200)
	}
	silent, isAgain := a, !a.nextAgencyAt.IsZero() // nothing is left to report
	if !isAgain {
		a.nextAgency, a.nextAgencyAt = "", a.periodEnd(wall)
		silent = a
		silent.next, silent.nextAt = Terms{}, time.Time{}
	}
	a.next, a.nextAt = Terms{a.terms.Plan, plans[rank(a.terms.Plan)].requests}, a.nextAgencyAt
	if isAgain || a.next == a.terms {
		return append(a.show(200), silent.show(200)...)
	}
	return a.show(200)
}

// withKey returns a copy with one key set.
func (a account) withKey(label string, k key) account {
	a.keys = maps.Clone(a.keys)
	if a.keys == nil {
		a.keys = map[string]key{}
	}
	a.keys[label] = k
	return a
}

func (c IssueKey) apply(a account, wall time.Time) []outcome[account] {
	refused := a.refuse(false)
	if refused != nil {
		return refused
	}
	if c.Kind == "publishable" {
		active, most := 0, plans[rank(a.at(wall).plan())].publishableKeys
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
	return a.withKey(c.Label, key{kind: c.Kind, origins: origins, changes: 1}).answer("201 %s %q [%s] revoked false", c.Kind, c.Label, origins)
}

func (c RevokeKey) apply(a account, wall time.Time) []outcome[account] {
	k, ok := a.keys[c.Label]
	if !ok {
		return a.answer("404")
	}
	if !k.isRevoked {
		k = k.changed()
		k.isRevoked = true
	}
	return a.withKey(c.Label, k).showChanged(c.Label)
}

// showChanged returns the answers that show a key after a change. They do not wait for the vault, so they may omit the label and then say
// so. The label of an erased account is unreadable.
func (a account) showChanged(label string) []outcome[account] {
	k := a.keys[label]
	shown := shownKey{Kind: k.kind, Label: label, Origins: strings.Fields(k.origins)}
	if k.isRevoked {
		shown.Revoked = time.Unix(1, 0)
	}
	labelled := a.answer("200 %s", shown.text())
	shown.Label, shown.Omitted = "", []string{omittedLabel}
	omitted := a.answer("200 %s", shown.text())
	shown.Omitted = nil
	unlabelled := a.answer("200 %s", shown.text())
	if a.isErased {
		return append(omitted, unlabelled...)
	}
	return append(labelled, omitted...)
}

func (c ChangeOrigins) apply(a account, wall time.Time) []outcome[account] {
	k, ok := a.keys[c.Label]
	if !ok {
		return a.answer("404")
	}
	if a.isClosed || k.isRevoked { // either refusal may come first
		return append(a.answer("409 compte_ferme"), a.answer("409 cle_revoquee")...)
	}
	if origins := strings.Join(c.Origins, " "); origins != k.origins {
		k = k.changed()
		k.origins = origins
	}
	return a.withKey(c.Label, k).showChanged(c.Label)
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
	NextAgency *struct {
		Agency string    `json:"agence_de"`
		At     time.Time `json:"effet"`
	} `json:"prochaine_agence"`
}

// summarizeAccount returns the short form, as commands foresee it, of an answer to a command on an account.
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
	nextAgency := ""
	if s.NextAgency != nil {
		nextAgency = fmt.Sprintf("%q %s", s.NextAgency.Agency, Day(s.NextAgency.At))
	}
	return fmt.Sprintf("%q %s %d %q %v %q %q closed %v", s.Name, s.Plan, s.Quota, s.Agency, s.IsAgency, next, nextAgency, !s.Closed.IsZero())
}

// shownKey is a key in an answer.
type shownKey struct {
	ID      string    `json:"id"`
	Kind    string    `json:"kind"`
	Label   string    `json:"label"`
	Token   string    `json:"token"`
	Origins []string  `json:"origins"`
	Revoked time.Time `json:"revoque_le"`
	Omitted []string  `json:"champs_omis"`
}

// omittedLabel is what an answer says that leaves the label out.
const omittedLabel = "label"

func (k shownKey) text() string {
	label := strconv.Quote(k.Label)
	if slices.Contains(k.Omitted, omittedLabel) && k.Label == "" {
		label = "without label"
	}
	return fmt.Sprintf("%s %s [%s] revoked %v", k.Kind, label, strings.Join(k.Origins, " "), !k.Revoked.IsZero())
}

// shown returns the account as the customer area shows it at a quiet moment. agencies holds the contract that it would have with each agency
// that it knows.
func (a account) shown(s shownAccount, keys []shownKey, agencies map[string]contract, wall time.Time) account {
	a = a.at(wall)
	a.wasOpened, a.isClosed, a.isAgency = true, !s.Closed.IsZero(), s.IsAgency
	a.isErased = s.Name == "" // every account was opened with a name
	a.name, a.terms.Quota, a.agency = s.Name, s.Quota, s.Agency
	if s.Agency == "" {
		a.terms.Plan, a.anchor = s.Plan, s.Anchor
	} else {
		a.agencys = contract{s.Plan, s.Anchor}
	}
	a.next, a.nextAt = Terms{}, time.Time{}
	if s.Next != nil {
		a.next, a.nextAt = Terms{s.Next.Plan, s.Next.Quota}, s.Next.At
	}
	a.nextAgency, a.nextAgencyAt = "", time.Time{}
	if s.NextAgency != nil {
		a.nextAgency, a.nextAgencyAt = s.NextAgency.Agency, s.NextAgency.At
	}
	if joined, ok := agencies[a.nextAgency]; ok {
		a.agencys = joined
	}
	now := map[string]key{}
	for _, k := range keys {
		found := key{kind: k.Kind, origins: strings.Join(k.Origins, " "), isRevoked: !k.Revoked.IsZero()}
		now[a.labelOf(k, found, now)] = found
	}
	a.keys = now
	return a
}

// labelOf returns the label of a shown key. The labels of an erased account are not shown: labelOf then returns that of a key that looks the
// same and was not found before, or a label that no key has.
func (a account) labelOf(shown shownKey, found key, before map[string]key) string {
	if !a.isErased {
		return shown.Label
	}
	for _, label := range slices.Sorted(maps.Keys(a.keys)) {
		_, isTaken := before[label]
		k := a.keys[label]
		if k.changes = 0; shown.Label == "" && !isTaken && k == found {
			return label
		}
	}
	return shown.ID + " " + shown.Label
}

// withOwnPlans returns the account with each plan of its own that it may have. A sub-client's own plan is not shown: it is the one that is
// known, or its agency's, which an operator may have given it.
func (a account) withOwnPlans() []account {
	if a.agency == "" {
		return []account{a}
	}
	same := a
	same.terms.Plan = a.agencys.plan
	return []account{a, same}
}

// text returns everything about an account except what answers do not show.
func (a account) text(wall time.Time) string {
	a = a.at(wall)
	var keys []string
	for label, k := range a.keys {
		keys = append(keys, fmt.Sprintf("%s %q [%s] revoked %v", k.kind, label, k.origins, k.isRevoked))
	}
	slices.Sort(keys)
	return a.show(200)[0].answer + " " + strings.Join(keys, ", ")
}
