package keyring

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore"
	"lieudit/eventstore/disk/osfile"
	"lieudit/schemas/event"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

var update = flag.Bool("update", false, "write the golden snapshot file; only for a new format")

// format3File is a snapshot written by the releases that introduced format 3. It is never written again.
const format3File = "testdata/format3"

// formatEvents are events that produce everything a snapshot can hold: scheduled terms, an agency, one that was closed before
// a join began, a closed account, all kinds of credentials, and a stopped stream.
func formatEvents(l *fakeLog) {
	later := startTime.Add(time.Hour)
	l.add("account-agency", startTime, event.AccountOpened{Account: "agency", Plan: plan.Growth, Quota: 900, Anchor: plan.Date{Year: 2026, Month: 2, Day: 28}})
	l.add("account-a", startTime, accountOpened("a"), event.PlanChanged{To: plan.Starter, Quota: 7, Effective: later},
		event.AgencyJoined{Agency: "agency", Effective: later.Add(time.Hour)})
	p := hash("p")
	l.add("account-a", startTime, secretIssued("k"), secretIssued("revoked"), keyRevoked("revoked"),
		event.PublishableKeyIssued{Key: "p", Hash: p[:], Hint: "ld_pk_…p", Origins: []string{"https://a.fr", "https://*.b.fr"}})
	l.add("account-gone", startTime.Add(-time.Hour), accountOpened("gone"))
	l.add("account-b", startTime.Add(-time.Hour), accountOpened("b"), secretIssued("of b"), event.AgencyJoined{Agency: "gone", Effective: later})
	l.add("account-gone", startTime, event.AccountClosed{})
	l.add("account-closed", startTime, accountOpened("closed"), secretIssued("of closed"), event.AccountClosed{})
	l.add("account-stopped", startTime, accountOpened("stopped"), secretIssued("of stopped"))
	customer, operator := hash("customer"), hash("operator")
	l.add("token-customer", startTime, event.TokenIssued{Token: "customer", Role: "customer", Account: "a", Hash: customer[:], Hint: "ld_ct_…c"})
	l.add("token-operator", startTime, event.TokenIssued{Token: "operator", Role: "operator", Hash: operator[:], Hint: "ld_ct_…o"})
}

// writeFormat writes the snapshot file of formatEvents.
func writeFormat(t *testing.T) {
	t.Helper()
	l := newFakeLog()
	formatEvents(l)
	r := ringFrom(t, l.events, l)
	r.state.Load().stopStream(eventstore.RecordedEvent{Stream: "account-stopped", Revision: 2})
	if err := r.takeSnapshot().writeFile(format3File, osfile.Disk{}); err != nil {
		t.Fatal(err)
	}
}

// TestSnapshotOfFormat3IsRead: a data folder made by an earlier release opens.
func TestSnapshotOfFormat3IsRead(t *testing.T) {
	t.Parallel()
	if *update {
		writeFormat(t)
	}
	s, checkpoint, err := readSnapshotFile(format3File)
	if err != nil || s == nil {
		t.Fatalf("state %v, error %v", s, err)
	}
	r := New(nil, time.Now, "", nil)
	r.adoptState(s, checkpoint)
	if st := r.Status(startTime); st.Keys != 6 || st.Position == 0 || checkpoint.Event == (eventstore.Checkpoint{}).Event {
		t.Errorf("status %+v of %+v, want the six credentials of open accounts", st, checkpoint)
	}
	checkFormatKeys(t, r)
	if got, ok := r.FindToken(hash("customer")); !ok || got != (grant.TokenGrant{TokenID: "customer", Hint: "ld_ct_…c", Role: grant.RoleCustomer, Account: "a"}) {
		t.Errorf("customer's token: %+v, %v", got, ok)
	}
	if got, ok := r.FindToken(hash("operator")); !ok || got != (grant.TokenGrant{TokenID: "operator", Hint: "ld_ct_…o", Role: grant.RoleOperator}) {
		t.Errorf("operator's token: %+v, %v", got, ok)
	}
	if events := s.stoppedStreams()["account-stopped"]; !slices.Equal(events, []eventstore.Revision{2}) {
		t.Errorf("stopped events %v", events)
	}
}

func checkFormatKeys(t *testing.T, r *Ring) {
	t.Helper()
	opened, later := accountOpened("a"), startTime.Add(time.Hour)
	own := grant.Terms{Plan: opened.Plan, Quota: opened.Quota, Anchor: opened.Anchor}
	scheduled := grant.Terms{Plan: plan.Starter, Quota: 7, Anchor: opened.Anchor}
	joined := grant.Terms{Plan: plan.Growth, Quota: 7, Anchor: plan.Date{Year: 2026, Month: 2, Day: 28}, Agency: "agency", AgencyQuota: 900}
	publishable := &grant.Grant{KeyID: "p", Kind: token.Publishable, Hint: "ld_pk_…p", Origins: []string{"https://a.fr", "https://*.b.fr"}, Account: "a", Terms: own}
	stopped := secretGrant("of stopped", "stopped", own)
	stopped.Stopped = true
	for _, c := range []struct {
		key  string
		at   time.Time
		want *grant.Grant
	}{
		{"k", startTime, secretGrant("k", "a", own)},
		{"k", later, secretGrant("k", "a", scheduled)},
		{"k", later.Add(time.Hour), secretGrant("k", "a", joined)},
		{"of b", later, secretGrant("of b", "b", own)},
		{"p", startTime, publishable},
		{"revoked", startTime, nil},
		{"of closed", startTime, nil},
		{"of stopped", startTime, stopped},
		{"customer", startTime, nil},
	} {
		got, ok := r.FindKey(hash(c.key), c.at)
		if ok != (c.want != nil) {
			t.Errorf("%s at %v: found %v", c.key, c.at, ok)
		} else if ok && !cmp.Equal(got, *c.want) {
			t.Errorf("%s at %v: %s", c.key, c.at, cmp.Diff(*c.want, got))
		}
	}
}
