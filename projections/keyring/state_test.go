package keyring

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

var startTime = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestEveryEventOfItsCategoriesIsHandled(t *testing.T) {
	t.Parallel()
	for _, line := range event.All() {
		v := reflect.New(line.GoType).Elem()
		for _, name := range []string{"Hash", "TokenHash"} {
			if h := v.FieldByName(name); h.IsValid() {
				h.SetBytes(make([]byte, 32))
			}
		}
		r := eventstore.RecordedEvent{Stream: line.Category() + "-a", Type: line.Name, Time: startTime}
		err := newState().applyEvent(r, event.Latest(v.Interface().(event.Event)))
		if categories.Matches(r.Stream) && err != nil {
			t.Errorf("%s: %v", line.Name, err)
		}
		if !categories.Matches(r.Stream) && (err == nil || !strings.Contains(err.Error(), line.Name)) {
			t.Errorf("%s is of another category and was taken: %v", line.Name, err)
		}
	}
}

// ringFixture folds events, each append an hour after the one before, and checks what the ring answers then.
type ringFixture struct {
	t *testing.T
	*Ring
	*fakeLog
	now time.Time
}

func newRingFixture(t *testing.T) *ringFixture {
	return &ringFixture{t: t, Ring: New(nil, time.Now, "", nil), fakeLog: newFakeLog(), now: startTime}
}

func (h *ringFixture) appendEvents(stream string, events ...event.Event) {
	h.t.Helper()
	h.now = h.now.Add(time.Hour)
	from := len(h.events)
	h.add(stream, h.now, events...)
	feedEvents(h.t, h.Ring, h.events[from:], h.fakeLog)
}

func (h *ringFixture) checkGrant(key string, at time.Time, want *grant.Grant) {
	h.t.Helper()
	got, ok := h.FindKey(hash(key), at)
	if want == nil {
		if ok {
			h.t.Errorf("%s at %v: got %+v, want nothing", key, at, got)
		}
		return
	}
	if diff := cmp.Diff(*want, got); diff != "" || !ok {
		h.t.Errorf("%s at %v: found %v, %s", key, at, ok, diff)
	}
}

func secretGrant(key, account string, terms grant.Terms) *grant.Grant {
	return &grant.Grant{KeyID: key, Kind: token.Secret, Hint: "ld_sk_…" + key, Account: account, Terms: terms}
}

func TestAKeyGivesWhatItsAccountHasAtThatInstant(t *testing.T) {
	t.Parallel()
	h := newRingFixture(t)
	anchor := accountOpened("a").Anchor
	h.appendEvents("account-a", accountOpened("a"), secretIssued("k"))
	h.checkGrant("k", h.now, secretGrant("k", "a", grant.Terms{Plan: plan.Growth, Quota: 500_000, Anchor: anchor}))
	later := h.now.Add(48 * time.Hour)
	h.appendEvents("account-a", event.PlanChanged{To: plan.Starter, Quota: 9, Effective: later})
	h.checkGrant("k", later.Add(-time.Microsecond), secretGrant("k", "a", grant.Terms{Plan: plan.Growth, Quota: 500_000, Anchor: anchor}))
	h.checkGrant("k", later, secretGrant("k", "a", grant.Terms{Plan: plan.Starter, Quota: 9, Anchor: anchor}))
	h.appendEvents("account-a", event.PlanChanged{To: plan.Business, Quota: 10, Effective: h.now.Add(time.Hour)})
	for _, at := range []time.Time{h.now, later, later.AddDate(1, 0, 0)} { // terms that had not begun were replaced
		h.checkGrant("k", at, secretGrant("k", "a", grant.Terms{Plan: plan.Business, Quota: 10, Anchor: anchor}))
	}
}

func TestASubClientHasThePlanAndAnchorOfItsAgency(t *testing.T) {
	t.Parallel()
	h := newRingFixture(t)
	agency := accountOpened("agency")
	agency.Plan, agency.Anchor = plan.Business, plan.Date{Year: 2025, Month: 1, Day: 31}
	h.appendEvents("account-agency", agency, event.AgencyActivated{})
	h.appendEvents("account-a", accountOpened("a"), secretIssued("k"))
	joins, leaves := h.now.AddDate(0, 1, 0), h.now.AddDate(0, 2, 0)
	own := secretGrant("k", "a", grant.Terms{Plan: plan.Growth, Quota: 500_000, Anchor: accountOpened("a").Anchor})
	sub := secretGrant("k", "a", grant.Terms{Plan: plan.Business, Quota: 500_000, Anchor: agency.Anchor, Agency: "agency", AgencyQuota: agency.Quota})
	h.appendEvents("account-a", event.AgencyJoined{Agency: "agency", Effective: joins})
	h.checkGrant("k", joins.Add(-time.Microsecond), own)
	h.checkGrant("k", joins, sub)
	h.now = joins
	h.appendEvents("account-a", event.AgencyLeft{Agency: "agency", Effective: leaves})
	h.checkGrant("k", leaves.Add(-time.Microsecond), sub)
	h.checkGrant("k", leaves, own)
	h.appendEvents("account-agency", event.AccountClosed{})
	h.checkGrant("k", leaves.Add(-time.Microsecond), nil)
	h.checkGrant("k", leaves, own)
	if _, ok := h.Terms("a", h.now); ok {
		t.Error("terms of an account whose agency is closed")
	}
}

// A scheduled join ends with its agency, whichever of the two is recorded first, and even for later decisions about the
// account.
func TestAJoinToComeEndsWithItsAgency(t *testing.T) {
	t.Parallel()
	h := newRingFixture(t)
	joins := h.now.AddDate(0, 1, 0)
	own := func(id string) *grant.Grant {
		return secretGrant("k"+id, id, grant.Terms{Plan: plan.Growth, Quota: 500_000, Anchor: accountOpened(id).Anchor})
	}
	for _, id := range []string{"agency", "a", "late", "again", "member"} {
		h.appendEvents("account-"+id, accountOpened(id), secretIssued("k"+id))
	}
	h.appendEvents("account-member", event.AgencyJoined{Agency: "agency", Effective: h.now})
	for _, id := range []string{"a", "again"} {
		h.appendEvents("account-"+id, event.AgencyJoined{Agency: "agency", Effective: joins})
	}
	h.appendEvents("account-agency", event.AccountClosed{})
	h.appendEvents("account-late", event.AgencyJoined{Agency: "agency", Effective: joins}) // decided a moment before it was closed
	for _, at := range []time.Time{h.now, joins, joins.AddDate(1, 0, 0)} {
		for _, id := range []string{"a", "late", "again"} {
			h.checkGrant("k"+id, at, own(id))
		}
		h.checkGrant("kmember", at, nil)
	}
	h.now = joins.AddDate(0, 0, 1)
	h.appendEvents("account-other", accountOpened("other"))
	h.appendEvents("account-again", event.AgencyJoined{Agency: "other", Effective: joins.AddDate(0, 1, 0)})
	h.checkGrant("kagain", h.now, own("again"))
	h.checkGrant("kagain", joins.AddDate(0, 1, 0), secretGrant("kagain", "again", grant.Terms{
		Plan: plan.Growth, Quota: 500_000, Anchor: accountOpened("other").Anchor, Agency: "other", AgencyQuota: accountOpened("other").Quota}))
}

func TestAnAgencysOwnAgencyIsIgnored(t *testing.T) {
	t.Parallel()
	h := newRingFixture(t)
	top, middle, low := accountOpened("top"), accountOpened("middle"), accountOpened("low")
	middle.Agency, middle.Plan, low.Agency = "top", plan.Starter, "middle"
	h.appendEvents("account-top", top)
	h.appendEvents("account-middle", middle)
	h.appendEvents("account-low", low, secretIssued("k"))
	want := secretGrant("k", "low", grant.Terms{Plan: plan.Starter, Quota: 500_000, Anchor: middle.Anchor, Agency: "middle", AgencyQuota: middle.Quota})
	h.checkGrant("k", h.now, want)
	h.appendEvents("account-top", event.AccountClosed{})
	h.checkGrant("k", h.now, want)
	h.appendEvents("account-middle", event.AccountClosed{})
	h.checkGrant("k", h.now, nil)
}

func TestClosingAnAccountInvalidatesItsKeysAndTokens(t *testing.T) {
	t.Parallel()
	h := newRingFixture(t)
	h.appendEvents("account-a", accountOpened("a"), secretIssued("k"))
	of, none := hash("t"), hash("o")
	h.appendEvents("token-1", event.TokenIssued{Token: "1", Role: "customer", Account: "a", Hash: of[:], Hint: "ld_ct_…1"})
	h.appendEvents("token-2", event.TokenIssued{Token: "2", Role: "operator", Hash: none[:], Hint: "ld_ct_…2"})
	if got, ok := h.FindToken(of); !ok || got != (grant.TokenGrant{TokenID: "1", Hint: "ld_ct_…1", Role: grant.RoleCustomer, Account: "a"}) {
		t.Errorf("got %+v, %v", got, ok)
	}
	h.appendEvents("account-a", event.AccountClosed{})
	h.checkGrant("k", h.now, nil)
	if _, ok := h.Terms("a", h.now); ok {
		t.Error("terms of a closed account")
	}
	if got, ok := h.FindToken(of); ok {
		t.Errorf("token of a closed account: %+v", got)
	}
	if got, ok := h.FindToken(none); !ok || got != (grant.TokenGrant{TokenID: "2", Hint: "ld_ct_…2", Role: grant.RoleOperator}) {
		t.Errorf("got %+v, %v", got, ok)
	}
	h.appendEvents("token-2", event.TokenRevoked{Token: "2", Hash: none[:]})
	if got, ok := h.FindToken(none); ok {
		t.Errorf("revoked token: %+v", got)
	}
}

func TestKeysAreNotFoundAsTokensNorTokensAsKeys(t *testing.T) {
	t.Parallel()
	h := newRingFixture(t)
	tokenHash := hash("t")
	h.appendEvents("account-a", accountOpened("a"), secretIssued("k"))
	h.appendEvents("token-1", event.TokenIssued{Token: "1", Role: "customer", Account: "a", Hash: tokenHash[:]})
	h.checkGrant("t", h.now, nil)
	if got, ok := h.FindToken(hash("k")); ok {
		t.Errorf("a key as a token: %+v", got)
	}
	h.checkGrant("unknown", h.now, nil)
}

func TestAPublishableKeyHasTheOriginsLastGivenToIt(t *testing.T) {
	t.Parallel()
	h := newRingFixture(t)
	p := hash("p")
	first, then := []string{"https://a.fr"}, []string{"https://b.fr", "https://*.c.fr"}
	h.appendEvents("account-a", accountOpened("a"), secretIssued("k"),
		event.PublishableKeyIssued{Key: "p", Hash: p[:], Hint: "ld_pk_…p", Token: "ld_pk_p", Origins: first})
	want := &grant.Grant{KeyID: "p", Kind: token.Publishable, Hint: "ld_pk_…p", Origins: first, Account: "a",
		Terms: grant.Terms{Plan: plan.Growth, Quota: 500_000, Anchor: accountOpened("a").Anchor}}
	h.checkGrant("p", h.now, want)
	h.appendEvents("account-a", event.KeyOriginsChanged{Key: "p", Hash: p[:], Before: first, Origins: then})
	want.Origins = then
	h.checkGrant("p", h.now, want)
	h.appendEvents("account-a", keyRevoked("p"), event.KeyOriginsChanged{Key: "p", Hash: p[:], Origins: first})
	h.checkGrant("p", h.now, nil)
}

func TestUnusableCredentialEventIsAnErrorAndChangesNothing(t *testing.T) {
	t.Parallel()
	h := newRingFixture(t)
	h.appendEvents("account-a", accountOpened("a"), secretIssued("k"))
	long, short := secretIssued("j"), secretIssued("j")
	long.Key, short.Hash = strings.Repeat("x", maxText+1), short.Hash[:31]
	for _, e := range []event.Event{long, short, event.KeyRevoked{}, event.KeyOriginsChanged{}, event.TokenRevoked{}} {
		h.add("account-a", h.now, e)
		last := h.events[len(h.events)-1]
		if err := h.state.Load().foldEvent(last); err == nil {
			t.Errorf("%s taken: %.60s", last.Type, last.Data)
		}
		h.events = slices.Delete(h.events, len(h.events)-1, len(h.events))
	}
	h.checkGrant("j", h.now, nil)
	h.checkGrant("k", h.now, secretGrant("k", "a", grant.Terms{Plan: plan.Growth, Quota: 500_000, Anchor: accountOpened("a").Anchor}))
}

func TestRevokedKeysFreeTheirRows(t *testing.T) {
	t.Parallel()
	l := newFakeLog()
	r := New(nil, time.Now, "", nil)
	l.add("account-a", startTime, accountOpened("a"))
	for i := range 20_000 {
		l.add("account-a", startTime, secretIssued(fmt.Sprint(i)), keyRevoked(fmt.Sprint(i-100)))
	}
	feedEvents(t, r, l.events, l)
	s := r.state.Load()
	if s.byHash.live != 100 || s.keys.rows > 110 || len(*s.byHash.slots.Load()) > 1024 {
		t.Errorf("%d keys in %d rows and %d slots", s.byHash.live, s.keys.rows, len(*s.byHash.slots.Load()))
	}
	text := 0
	for _, p := range s.keys.snapshot().pages {
		text += len(p.texts)
	}
	if text > 100*32 {
		t.Errorf("%d bytes of text for 100 keys", text)
	}
}

func TestConcurrentFindsSeeConsistentKeys(t *testing.T) {
	t.Parallel()
	l := newFakeLog()
	l.add("account-a", startTime, accountOpened("a"), secretIssued("stays"))
	r := ringFrom(t, l.events, l)
	done := make(chan struct{})
	failed := make(chan string, 4)
	for range cap(failed) {
		go func() { failed <- queryUntilDone(r, done) }()
	}
	for round := range 8 {
		from := len(l.events)
		for i := range 300 {
			l.add("account-a", startTime, secretIssued(fmt.Sprint(i)), event.PlanChanged{To: plan.Growth, Quota: int64(round)})
		}
		for i := range 300 {
			l.add("account-a", startTime, keyRevoked(fmt.Sprint(i)))
		}
		feedEvents(t, r, l.events[from:], l)
		r.takeSnapshot()
	}
	close(done)
	for range cap(failed) {
		if what := <-failed; what != "" {
			t.Error(what)
		}
	}
}

// queryUntilDone looks up keys that come and go and one that stays, and returns what was wrong with an answer.
func queryUntilDone(r *Ring, done chan struct{}) string {
	names := make([]string, 300)
	hashes := make([]token.Hash, len(names))
	for i := range names {
		names[i] = fmt.Sprint(i)
		hashes[i] = hash(names[i])
	}
	stays := hash("stays")
	for i := 0; ; i = (i + 1) % len(names) {
		select {
		case <-done:
			return ""
		default:
		}
		if g, ok := r.FindKey(hashes[i], startTime); ok && (g.KeyID != names[i] || g.Hint != "ld_sk_…"+names[i] || g.Account != "a") {
			return fmt.Sprintf("asked for %s, got %+v", names[i], g)
		}
		if g, ok := r.FindKey(stays, startTime); !ok || g.KeyID != "stays" || g.Plan != plan.Growth {
			return fmt.Sprintf("asked for stays, got %v, %+v", ok, g)
		}
	}
}
