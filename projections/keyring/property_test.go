package keyring

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"lieudit/schemas/event"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// randomHistory appends random events of a few accounts to a fake log, and keeps their expected result in the plainest form.
type randomHistory struct {
	*rand.Rand
	*fakeLog
	now      time.Time
	accounts map[string]*plainAccount
	names    []string // of accounts, in the order they were opened
	keys     map[string]*grant.Grant
	tokens   map[string]*grant.TokenGrant
	passes   map[string]plainPass // by secret
	lastPass time.Time            // when the last was made
}

type plainPass struct {
	token, id string
	isSession bool
	expires   time.Time
}

type plainAccount struct {
	terms  grant.Scheduled[terms]
	plan   grant.Scheduled[plan.Name]
	agency []plainMembership // in the order they were decided
	anchor plan.Date
	closed time.Time
}

// plainMembership is an agency, "" for none, from an instant on.
type plainMembership struct {
	agency             string
	effective, decided time.Time
}

// agencyAt applies the rules of memberships one by one. A change that is replaced before it begins never happens, nor does a
// join whose agency is closed before it begins. A decision after that join would have begun also ends the state it replaced
// (only an account without an agency can join one, so there is nothing to end).
func (c *randomHistory) agencyAt(id string, at time.Time) (agency string) {
	all := c.accounts[id].agency
	for i, m := range all {
		isReplaced := i+1 < len(all) && m.effective.After(all[i+1].decided)
		isJoin := m.agency != "" && m.effective.After(m.decided)
		if isReplaced || m.effective.After(at) {
			continue
		}
		closed := c.closedAt(m.agency)
		isVoid := isJoin && !closed.IsZero() && closed.Before(m.effective)
		switch {
		case !isVoid:
			agency = m.agency
		case i+1 < len(all):
			agency = ""
		}
	}
	return agency
}

func (c *randomHistory) closedAt(id string) time.Time {
	if id == "" {
		return time.Time{}
	}
	return c.accounts[id].closed
}

func newRandomHistory(seed uint64) *randomHistory {
	return &randomHistory{Rand: rand.New(rand.NewPCG(seed, 0)), fakeLog: newFakeLog(), now: startTime,
		accounts: map[string]*plainAccount{}, keys: map[string]*grant.Grant{}, tokens: map[string]*grant.TokenGrant{}, passes: map[string]plainPass{}}
}

func (c *randomHistory) nearFuture() time.Time {
	return c.now.Add(time.Duration(c.IntN(200)-20) * time.Hour)
}

func (c *randomHistory) randomPlan() plan.Name { return plan.All()[c.IntN(len(plan.All()))].Name }

func (c *randomHistory) randomAccount() string { return c.names[c.IntN(len(c.names))] }

func (c *randomHistory) appendRandom() {
	c.now = c.now.Add(time.Duration(c.IntN(10)) * time.Hour)
	if len(c.names) < 2 {
		c.openAccount()
		return
	}
	switch n := c.IntN(100); {
	case n < 8:
		c.openAccount()
	case n < 20:
		c.changePlan()
	case n < 32:
		c.changeAgency()
	case n < 34:
		c.closeAccount()
	case n < 65:
		c.issueKey()
	case n < 72:
		c.issueToken()
	case n < 77:
		c.changeOrigins()
	case n < 85:
		c.issuePass()
	case n < 87:
		c.endPass()
	case n < 98:
		c.revokeCredentials()
	default:
		c.add("account-"+c.randomAccount(), c.now, event.AccountActionRefused{Action: "x"})
	}
}

func (c *randomHistory) openAccount() {
	id := fmt.Sprintf("%d-%x", len(c.names), c.Uint32())
	e := event.AccountOpened{Account: id, Plan: c.randomPlan(), Quota: c.Int64N(1e6), Anchor: plan.Date{Year: 2020 + c.IntN(9), Month: 3, Day: 1 + c.IntN(31)}}
	if len(c.names) > 0 && c.IntN(3) == 0 {
		e.Agency = c.randomAccount()
	}
	a := &plainAccount{anchor: e.Anchor}
	a.terms.Set(terms{quota: e.Quota}, c.now, c.now)
	a.plan.Set(e.Plan, c.now, c.now)
	a.agency = []plainMembership{{e.Agency, c.now, c.now}}
	c.names, c.accounts[id] = append(c.names, id), a
	c.add("account-"+id, c.now, e)
}

func (c *randomHistory) changePlan() {
	id := c.randomAccount()
	e := event.PlanChanged{To: c.randomPlan(), Quota: c.Int64N(1e6), Effective: c.nearFuture()}
	c.accounts[id].terms.Set(terms{quota: e.Quota}, e.Effective, c.now)
	c.accounts[id].plan.Set(e.To, e.Effective, c.now)
	c.add("account-"+id, c.now, e)
}

func (c *randomHistory) changeAgency() {
	id, to, at := c.randomAccount(), c.randomAccount(), c.nearFuture()
	if c.IntN(2) == 0 {
		c.accounts[id].agency = append(c.accounts[id].agency, plainMembership{"", at, c.now})
		c.add("account-"+id, c.now, event.AgencyLeft{Agency: to, Effective: at})
		return
	}
	c.accounts[id].agency = append(c.accounts[id].agency, plainMembership{to, at, c.now})
	c.add("account-"+id, c.now, event.AgencyJoined{Agency: to, Effective: at})
}

func (c *randomHistory) closeAccount() {
	id := c.randomAccount()
	if !c.accounts[id].closed.IsZero() {
		return
	}
	c.accounts[id].closed = c.now
	c.add("account-"+id, c.now, event.AccountClosed{})
}

func (c *randomHistory) issueKey() {
	id, key := c.randomAccount(), fmt.Sprintf("key-%x", c.Uint64())
	h := hash(key)
	g := &grant.Grant{KeyID: key, Kind: token.Secret, Hint: "ld_sk_…" + key[:4], Account: id}
	if c.IntN(3) > 0 {
		c.add("account-"+id, c.now, event.SecretKeyIssued{Key: key, Hash: h[:], Hint: g.Hint})
	} else {
		g.Kind, g.Origins = token.Publishable, []string{"https://" + key}
		c.add("account-"+id, c.now, event.PublishableKeyIssued{Key: key, Hash: h[:], Hint: g.Hint, Origins: g.Origins})
	}
	c.keys[key] = g
}

func (c *randomHistory) issueToken() {
	p := &grant.TokenGrant{TokenID: fmt.Sprintf("t-%x", c.Uint64()), Hint: "…", Role: grant.RoleOperator}
	if c.IntN(2) == 0 {
		p.Role, p.Account = grant.RoleAgency, c.randomAccount()
	}
	h := hash(p.TokenID)
	c.tokens[p.TokenID] = p
	c.add("token-"+p.TokenID, c.now, event.TokenIssued{Token: p.TokenID, Role: string(p.Role), Account: p.Account, Hash: h[:], Hint: p.Hint})
}

func (c *randomHistory) issuePass() {
	ids := slices.Sorted(maps.Keys(c.tokens))
	if len(ids) == 0 {
		return
	}
	of := c.tokens[ids[c.IntN(len(ids))]]
	p := plainPass{of.TokenID, fmt.Sprintf("p-%x", c.Uint64()), c.IntN(2) == 0, c.now.Add(time.Duration(1+c.IntN(100)) * time.Hour)}
	h, tokenHash := hash("secret "+p.id), hash(p.token)
	c.passes["secret "+p.id], c.lastPass = p, c.now
	if p.isSession {
		c.add("token-"+p.token, c.now, event.SessionOpened{Token: p.token, Session: p.id, Hash: h[:], TokenHash: tokenHash[:], Expires: p.expires})
		return
	}
	c.add("token-"+p.token, c.now, event.SessionLinkIssued{Token: p.token, Link: p.id, Hash: h[:], TokenHash: tokenHash[:], Expires: p.expires})
}

// countKeptPasses counts the passes that had not expired when the last one was made.
func (c *randomHistory) countKeptPasses() (n int) {
	for _, p := range c.passes {
		if p.expires.After(c.lastPass) {
			n++
		}
	}
	return n
}

// endPass ends a session, or a link that was not used.
func (c *randomHistory) endPass() {
	all := slices.Sorted(maps.Keys(c.passes))
	if len(all) == 0 {
		return
	}
	secret := all[c.IntN(len(all))]
	p, h := c.passes[secret], hash(secret)
	if p.isSession {
		c.add("token-"+p.token, c.now, event.SessionClosed{Token: p.token, Session: p.id, Hash: h[:]})
	} else {
		c.add("token-"+p.token, c.now, event.SessionLinkEnded{Token: p.token, Link: p.id, Hash: h[:]})
	}
	delete(c.passes, secret)
}

func (c *randomHistory) changeOrigins() {
	for k, g := range c.shuffledKeys() {
		if g.Kind == token.Publishable {
			h := hash(k)
			g.Origins = []string{"https://" + k, fmt.Sprintf("https://%x.fr", c.Uint32())}
			c.add("account-"+g.Account, c.now, event.KeyOriginsChanged{Key: k, Hash: h[:], Origins: g.Origins})
			return
		}
	}
}

// shuffledKeys yields the keys in an order determined by the seed.
func (c *randomHistory) shuffledKeys() iter.Seq2[string, *grant.Grant] {
	names := slices.Sorted(maps.Keys(c.keys))
	c.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return func(yield func(string, *grant.Grant) bool) {
		for _, k := range names {
			if !yield(k, c.keys[k]) {
				return
			}
		}
	}
}

func (c *randomHistory) revokeCredentials() {
	for k, g := range c.shuffledKeys() {
		h := hash(k)
		c.add("account-"+g.Account, c.now, event.KeyRevoked{Key: k, Hash: h[:]})
		delete(c.keys, k)
		break
	}
	if c.IntN(5) > 0 {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(c.tokens)) {
		h := hash(id)
		c.add("token-"+id, c.now, event.TokenRevoked{Token: id, Hash: h[:]})
		delete(c.tokens, id)
		return
	}
}

// expectedTerms applies the rules in their plainest form.
func (c *randomHistory) expectedTerms(id string, at time.Time) (t grant.Terms, open bool) {
	a := c.accounts[id]
	t = grant.Terms{Plan: a.plan.At(at), Quota: a.terms.At(at).quota, Anchor: a.anchor, Agency: c.agencyAt(id, at)}
	if t.Agency == "" {
		return t, a.closed.IsZero()
	}
	agency := c.accounts[t.Agency]
	t.Plan, t.Anchor, t.AgencyQuota = agency.plan.At(at), agency.anchor, agency.terms.At(at).quota
	return t, a.closed.IsZero() && agency.closed.IsZero()
}

// checkPass compares what a ring says of a pass with the rules.
func (c *randomHistory) checkPass(t *testing.T, r *Ring, secret string, at time.Time) {
	t.Helper()
	p := c.passes[secret]
	want, wantOK := c.tokens[p.token]
	wantOK = wantOK && at.Before(p.expires) && (want.Account == "" || c.accounts[want.Account].closed.IsZero())
	given, isSession := r.FindSession(hash(secret), at)
	found, isLink := r.FindLink(hash(secret), at)
	if isSession != (wantOK && p.isSession) || isLink != (wantOK && !p.isSession) {
		t.Errorf("%+v: session %v, link %v, want %v", p, isSession, isLink, wantOK)
		return
	}
	if isSession {
		found = given
		if found.Session != p.id {
			t.Errorf("session %s is called %s", p.id, found.Session)
		}
		found.Session = ""
	}
	if wantOK && found != *want {
		t.Errorf("%+v gives %+v, want %+v", p, found, *want)
	}
	if _, ok := r.FindToken(hash(secret)); ok {
		t.Errorf("%+v is taken for a token", p)
	}
	if _, ok := r.FindKey(hash(secret), at); ok {
		t.Errorf("%+v is taken for a key", p)
	}
}

// checkAnswers compares all of a ring's answers at an instant with the rules.
func (c *randomHistory) checkAnswers(t *testing.T, r *Ring, at time.Time) {
	t.Helper()
	for key, g := range c.keys {
		want, wantOK := *g, false
		want.Terms, wantOK = c.expectedTerms(g.Account, at)
		got, ok := r.FindKey(hash(key), at)
		if ok != wantOK || ok && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v, %v", key, got, ok, want, wantOK)
		}
	}
	for _, id := range c.names {
		want, wantOK := c.expectedTerms(id, at)
		if got, ok := r.Terms(id, at); ok != wantOK || ok && got != want {
			t.Errorf("%s: got %+v, %v, want %+v, %v", id, got, ok, want, wantOK)
		}
	}
	for secret := range c.passes {
		c.checkPass(t, r, secret, at)
	}
	for id, want := range c.tokens {
		wantOK := want.Account == "" || c.accounts[want.Account].closed.IsZero()
		if got, ok := r.FindToken(hash(id)); ok != wantOK || ok && got != *want {
			t.Errorf("%s: got %+v, %v, want %+v, %v", id, got, ok, *want, wantOK)
		}
	}
}

// ringFromSnapshot returns a ring that continues from a snapshot taken somewhere in the history, and receives some events
// twice.
func (c *randomHistory) ringFromSnapshot(t *testing.T) *Ring {
	t.Helper()
	at := c.IntN(len(c.events) + 1)
	var file bytes.Buffer
	if err := ringFrom(t, c.events[:at], c.fakeLog).takeSnapshot().marshal(&file); err != nil {
		t.Fatal(err)
	}
	s, checkpoint, err := unmarshalSnapshot(file.Bytes())
	if err != nil || checkpoint != c.checkpointAt(at) {
		t.Fatalf("checkpoint %v, error %v, want %v", checkpoint, err, c.checkpointAt(at))
	}
	r := New(nil, time.Now, "", nil)
	r.adoptState(s, checkpoint)
	for at < len(c.events) {
		from, to := c.IntN(at+1), min(len(c.events), at+1+c.IntN(20))
		feedEvents(t, r, c.events[from:to], c.fakeLog)
		at = to
	}
	return r
}

func TestAnyHistoryGivesTheSameAnswersFromZeroFromASnapshotAndByTheRules(t *testing.T) {
	t.Parallel()
	runs := 60
	if os.Getenv("LIEUDIT_TEST_LONG") != "" {
		runs = 3000
	}
	for seed := range runs {
		c := newRandomHistory(uint64(seed))
		for range 50 + c.IntN(400) {
			c.appendRandom()
		}
		whole, twin := ringFrom(t, c.events, c.fakeLog), c.ringFromSnapshot(t)
		for _, wait := range []time.Duration{0, 50 * time.Hour, 1000 * time.Hour} {
			c.checkAnswers(t, whole, c.now.Add(wait))
			c.checkAnswers(t, twin, c.now.Add(wait))
		}
		if a, b := whole.state.Load().byHash.live, len(c.keys)+len(c.tokens)+c.countKeptPasses(); a != b {
			t.Errorf("%d credentials, want %d", a, b)
		}
		if t.Failed() {
			t.Fatalf("seed %d, %d events", seed, len(c.events))
		}
	}
}
