package keyring

import (
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

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestEveryEventOfItsCategoriesHasAPlaceInTheRing(t *testing.T) {
	t.Parallel()
	for _, line := range event.All() {
		v := reflect.New(line.Go).Elem()
		if h := v.FieldByName("Hash"); h.IsValid() {
			h.SetBytes(make([]byte, 32))
		}
		r := eventstore.Recorded{Stream: line.Category() + "-a", Type: line.Name, Time: start}
		err := newState().apply(r, v.Interface().(event.Event))
		if wanted.Matches(r.Stream) && err != nil {
			t.Errorf("%s: %v", line.Name, err)
		}
		if !wanted.Matches(r.Stream) && (err == nil || !strings.Contains(err.Error(), line.Name)) {
			t.Errorf("%s is of another category and was taken: %v", line.Name, err)
		}
	}
}

// history folds what is said of each stream, an hour after what was said before, and answers from what follows.
type history struct {
	t *testing.T
	*Ring
	*ledger
	now time.Time
}

func newHistory(t *testing.T) *history {
	return &history{t: t, Ring: New(nil, time.Now, "", nil), ledger: newLedger(), now: start}
}

func (h *history) say(stream string, events ...event.Event) {
	h.t.Helper()
	h.now = h.now.Add(time.Hour)
	from := len(h.events)
	h.add(stream, h.now, events...)
	feed(h.t, h.Ring, h.events[from:], h.ledger)
}

func (h *history) want(key string, at time.Time, want *grant.Grant) {
	h.t.Helper()
	got, ok := h.Find(hash(key), at)
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

func given(key, account string, terms grant.Terms) *grant.Grant {
	return &grant.Grant{Key: key, Kind: token.Secret, Hint: "ld_sk_…" + key, Account: account, Terms: terms}
}

func TestAKeyGivesWhatItsAccountHasAtThatInstant(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	anchor := opened("a").Anchor
	h.say("account-a", opened("a"), issueSecret("k"))
	h.want("k", h.now, given("k", "a", grant.Terms{Plan: plan.Growth, Quota: 500_000, Anchor: anchor}))
	later := h.now.Add(48 * time.Hour)
	h.say("account-a", event.PlanChanged{To: plan.Starter, Quota: 9, Effective: later})
	h.want("k", later.Add(-time.Microsecond), given("k", "a", grant.Terms{Plan: plan.Growth, Quota: 500_000, Anchor: anchor}))
	h.want("k", later, given("k", "a", grant.Terms{Plan: plan.Starter, Quota: 9, Anchor: anchor}))
	h.say("account-a", event.PlanChanged{To: plan.Business, Quota: 10, Effective: h.now.Add(time.Hour)})
	for _, at := range []time.Time{h.now, later, later.AddDate(1, 0, 0)} { // what had not begun was replaced
		h.want("k", at, given("k", "a", grant.Terms{Plan: plan.Business, Quota: 10, Anchor: anchor}))
	}
}

func TestASubClientHasItsAgencysPlanAndAnchorWhileItIsOne(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	agency := opened("agency")
	agency.Plan, agency.Anchor = plan.Business, plan.Date{Year: 2025, Month: 1, Day: 31}
	h.say("account-agency", agency, event.AgencyActivated{})
	h.say("account-a", opened("a"), issueSecret("k"))
	joins, leaves := h.now.AddDate(0, 1, 0), h.now.AddDate(0, 2, 0)
	own := given("k", "a", grant.Terms{Plan: plan.Growth, Quota: 500_000, Anchor: opened("a").Anchor})
	sub := given("k", "a", grant.Terms{Plan: plan.Business, Quota: 500_000, Anchor: agency.Anchor, Agency: "agency"})
	h.say("account-a", event.AgencyJoined{Agency: "agency", Effective: joins})
	h.want("k", joins.Add(-time.Microsecond), own)
	h.want("k", joins, sub)
	h.now = joins
	h.say("account-a", event.AgencyLeft{Agency: "agency", Effective: leaves})
	h.want("k", leaves.Add(-time.Microsecond), sub)
	h.want("k", leaves, own)
	h.say("account-agency", event.AccountClosed{})
	h.want("k", leaves.Add(-time.Microsecond), nil)
	h.want("k", leaves, own)
	if _, ok := h.Terms("a", h.now); ok {
		t.Error("terms of an account whose agency is closed")
	}
}

func TestAnAgencysOwnAgencyCountsForNothing(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	top, middle, low := opened("top"), opened("middle"), opened("low")
	middle.Agency, middle.Plan, low.Agency = "top", plan.Starter, "middle"
	h.say("account-top", top)
	h.say("account-middle", middle)
	h.say("account-low", low, issueSecret("k"))
	want := given("k", "low", grant.Terms{Plan: plan.Starter, Quota: 500_000, Anchor: middle.Anchor, Agency: "middle"})
	h.want("k", h.now, want)
	h.say("account-top", event.AccountClosed{})
	h.want("k", h.now, want)
	h.say("account-middle", event.AccountClosed{})
	h.want("k", h.now, nil)
}

func TestAClosedAccountTakesItsKeysAndTokensAlong(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.say("account-a", opened("a"), issueSecret("k"))
	of, none := hash("t"), hash("o")
	h.say("token-1", event.TokenIssued{Token: "1", Role: "customer", Account: "a", Hash: of[:], Hint: "ld_ct_…1"})
	h.say("token-2", event.TokenIssued{Token: "2", Role: "operator", Hash: none[:], Hint: "ld_ct_…2"})
	if got, ok := h.FindPass(of); !ok || got != (grant.Pass{Token: "1", Hint: "ld_ct_…1", Role: grant.Customer, Account: "a"}) {
		t.Errorf("got %+v, %v", got, ok)
	}
	h.say("account-a", event.AccountClosed{})
	h.want("k", h.now, nil)
	if _, ok := h.Terms("a", h.now); ok {
		t.Error("terms of a closed account")
	}
	if got, ok := h.FindPass(of); ok {
		t.Errorf("pass of a closed account: %+v", got)
	}
	if got, ok := h.FindPass(none); !ok || got != (grant.Pass{Token: "2", Hint: "ld_ct_…2", Role: grant.Operator}) {
		t.Errorf("got %+v, %v", got, ok)
	}
	h.say("token-2", event.TokenRevoked{Token: "2", Hash: none[:]})
	if got, ok := h.FindPass(none); ok {
		t.Errorf("revoked pass: %+v", got)
	}
}

func TestKeysAndTokensDoNotOpenEachOthersDoors(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	pass := hash("t")
	h.say("account-a", opened("a"), issueSecret("k"))
	h.say("token-1", event.TokenIssued{Token: "1", Role: "customer", Account: "a", Hash: pass[:]})
	h.want("t", h.now, nil)
	if got, ok := h.FindPass(hash("k")); ok {
		t.Errorf("a key as a token: %+v", got)
	}
	h.want("unknown", h.now, nil)
}

func TestAPublishableKeyHasTheOriginsLastGivenToIt(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	p := hash("p")
	first, then := []string{"https://a.fr"}, []string{"https://b.fr", "https://*.c.fr"}
	h.say("account-a", opened("a"), issueSecret("k"),
		event.PublishableKeyIssued{Key: "p", Hash: p[:], Hint: "ld_pk_…p", Token: "ld_pk_p", Origins: first})
	want := &grant.Grant{Key: "p", Kind: token.Publishable, Hint: "ld_pk_…p", Origins: first, Account: "a",
		Terms: grant.Terms{Plan: plan.Growth, Quota: 500_000, Anchor: opened("a").Anchor}}
	h.want("p", h.now, want)
	h.say("account-a", event.KeyOriginsChanged{Key: "p", Hash: p[:], Before: first, Origins: then})
	want.Origins = then
	h.want("p", h.now, want)
	h.say("account-a", revoke("p"), event.KeyOriginsChanged{Key: "p", Hash: p[:], Origins: first})
	h.want("p", h.now, nil)
}

func TestAKeyWhoseTextsAreTooLongIsAnErrorAndChangesNothing(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.say("account-a", opened("a"), issueSecret("k"))
	long := issueSecret("j")
	long.Key = strings.Repeat("x", maxText+1)
	h.add("account-a", h.now, long)
	last := h.events[len(h.events)-1]
	mark := eventstore.Mark{Log: h.id, Position: last.Position, Event: last.ID}
	if err := h.take(eventstore.Signal{Event: last, Mark: mark}); err == nil {
		t.Error("an id of 4,096 bytes is taken")
	}
	h.events = slices.Delete(h.events, len(h.events)-1, len(h.events))
	h.want("j", h.now, nil)
	h.want("k", h.now, given("k", "a", grant.Terms{Plan: plan.Growth, Quota: 500_000, Anchor: opened("a").Anchor}))
}
