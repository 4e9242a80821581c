package commands_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/commands"
	"lieudit/commands/account"
	"lieudit/commands/locations"
	"lieudit/eventstore"
	"lieudit/eventstore/disk/osfile"
	"lieudit/schemas/event"
	sites "lieudit/schemas/locations"
	"lieudit/schemas/plan"
)

// appendRaw appends an event of any bytes and returns its revision.
func appendRaw(t *testing.T, log eventstore.Store, stream, name, data string) eventstore.Revision {
	t.Helper()
	done, err := log.Append(t.Context(), stream, eventstore.Any, []eventstore.ProposedEvent{
		{ID: uuid.New(), Type: name, Data: []byte(data), Metadata: []byte(`{"end":true}`)}})
	if err != nil {
		t.Fatal(err)
	}
	return done.Revision
}

// appendCorrection appends a correction of an event.
func appendCorrection(t *testing.T, log eventstore.Store, stream string, correction event.Event) {
	t.Helper()
	batch, err := eventstore.NewCodec(fakeVault{}).Encode(t.Context(), stream, uuid.New(), eventstore.Metadata{}, []event.Event{correction})
	if err == nil {
		_, err = log.Append(t.Context(), stream, eventstore.Any, batch)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func accountVoided(at eventstore.Revision) event.Event {
	return event.AccountEventVoided{EventVoided: event.EventVoided{Revision: int64(at)}}
}

func locationsVoided(at eventstore.Revision) event.Event {
	return event.LocationsEventVoided{EventVoided: event.EventVoided{Revision: int64(at)}}
}

// TestUnusableEventRefusesItsAccountUntilACorrectionNamesIt checks that nothing is decided on a state that may be wrong, and
// that other accounts are not held up.
func TestUnusableEventRefusesItsAccountUntilACorrectionNamesIt(t *testing.T) {
	t.Parallel()
	log := openLog(t, t.TempDir())
	a := newAccounts(log)
	openAccount(t, a, "a", plan.Starter)
	openAccount(t, a, "b", plan.Starter)
	at := appendRaw(t, log, "account-a", "account.plan-changed.v1", `{"quota": "many"}`)
	for _, instance := range []*account.Accounts{a, newAccounts(log)} {
		var unusable *eventstore.UnusableError
		if _, err := instance.IssueKey(t.Context(), "a", operator, publishable("l")); !errors.As(err, &unusable) || unusable.Revision != at {
			t.Errorf("got %v, want an unusable event at %d", err, at)
		}
		if _, err := instance.PlanOf(t.Context(), "a"); !errors.As(err, &unusable) {
			t.Errorf("got %v", err)
		}
		if _, err := instance.IssueKey(t.Context(), "b", operator, account.KeyRequest{Kind: "secret"}); err != nil {
			t.Errorf("another account: %v", err)
		}
	}
	appendCorrection(t, log, "account-a", accountVoided(at))
	for _, instance := range []*account.Accounts{a, newAccounts(log)} {
		if _, err := instance.IssueKey(t.Context(), "a", operator, account.KeyRequest{Kind: "secret"}); err != nil {
			t.Errorf("after the correction: %v", err)
		}
		if s, _, err := instance.StateAsOf(t.Context(), "a", time.Time{}); err != nil || s.Terms.At(time.Now()).Plan != plan.Starter {
			t.Errorf("got %+v, %v", s.Terms, err)
		}
	}
}

func TestUsableEventThatACorrectionNamesIsTakenOutOfTheState(t *testing.T) {
	t.Parallel()
	log := openLog(t, t.TempDir())
	a := newAccounts(log)
	openAccount(t, a, "a", plan.Starter)
	at, _, err := a.CloseAccount(t.Context(), "a", operator)
	if err != nil {
		t.Fatal(err)
	}
	closed := eventstore.Revision(-1)
	for r := range log.ReadStream(t.Context(), "account-a", 0, eventstore.Forward) {
		if r.Position == at {
			closed = r.Revision
		}
	}
	appendCorrection(t, log, "account-a", accountVoided(closed))
	for _, instance := range []*account.Accounts{a, newAccounts(log)} { // one that had folded the event, and one that had not
		if s, err := instance.CurrentState(t.Context(), "a"); err != nil || s.Closed() {
			t.Errorf("got %+v, %v, want it open", s, err)
		}
		if s, _, err := instance.StateAsOf(t.Context(), "a", time.Time{}); err != nil || s.Closed() {
			t.Errorf("got %+v, %v, want it open", s, err)
		}
	}
}

// TestWhatFollowsAnEventThatWasVoidedIsStillFolded folds events about a key, an account or a referential that the state does
// not have without the voided event.
func TestWhatFollowsAnEventThatWasVoidedIsStillFolded(t *testing.T) {
	t.Parallel()
	log := openLog(t, t.TempDir())
	a := newAccounts(log)
	openAccount(t, a, "a", plan.Starter)
	at := appendRaw(t, log, "account-a", "account.secret-key-issued.v1", `{"key": 3}`)
	appendRaw(t, log, "account-a", "account.key-origins-changed.v1", `{"key": "k", "hash":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}`)
	appendRaw(t, log, "account-a", "account.key-revoked.v1", `{"key": "k", "hash":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}`)
	appendCorrection(t, log, "account-a", accountVoided(at))
	if _, err := a.CurrentState(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	unopened := appendRaw(t, log, "account-z", "account.opened.v1", `{"anchor": 3}`)
	appendRaw(t, log, "account-z", "account.secret-key-issued.v1", `{"key": "k", "hash":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}`)
	appendCorrection(t, log, "account-z", accountVoided(unopened))
	if _, err := a.CurrentState(t.Context(), "z"); !errors.Is(err, account.ErrUnknownAccount) {
		t.Errorf("got %v, want an account that was never opened", err)
	}
	openAccount(t, a, "z", plan.Starter)

	at = appendRaw(t, log, "locations-a", "locations.referential-opened.v1", `[]`)
	appendRaw(t, log, "locations-a", "locations.sites-changed.v1", `{"referential":"m","after":1,"rows":[{"externalId":"x","op":"created","version":1}]}`)
	appendRaw(t, log, "locations-a", "locations.referential-renamed.v1", `{"code":"n","name":"N"}`)
	appendCorrection(t, log, "locations-a", locationsVoided(at))
	l := newLocations(log, a)
	if f, err := l.CountLocations(t.Context(), "a"); err != nil || f != (locations.Counts{Sites: 1, Referentials: 2}) {
		t.Errorf("got %+v, %v", f, err)
	}
}

func newLocations(log eventstore.Store, a *account.Accounts) *locations.Locations {
	return locations.New(log, eventstore.NewCodec(fakeVault{}), a, noGeocoder{}, time.Now)
}

type noGeocoder struct{}

func (noGeocoder) Geocode(context.Context, sites.Content) (sites.Position, bool, error) {
	return sites.Position{}, false, nil
}

// makeRows returns n rows, each with a position of its own.
func makeRows(n int) []locations.Row {
	rows := make([]locations.Row, n)
	for i := range rows {
		lat, lon := 44+float64(i)/1e5, 3.5
		rows[i] = locations.Row{ExternalID: fmt.Sprintf("id-%05d", i), Content: sites.Content{Name: "Boulangerie du marché", Lat: &lat, Lon: &lon}}
	}
	return rows
}

// TestEmptyCommitChangesNothingOfAState checks that an empty commit changes no count, no answer to a request, and no snapshot.
func TestEmptyCommitChangesNothingOfAState(t *testing.T) {
	t.Parallel()
	log := openLog(t, t.TempDir())
	a := newAccounts(log)
	openAccount(t, a, "a", plan.Business)
	folder := filepath.Join(t.TempDir(), "folds")
	newInstance := func() *locations.Locations {
		l := newLocations(log, a)
		l.KeepSnapshots(folder, commands.DefaultSnapshotThreshold, osfile.Disk{}, slog.New(slog.DiscardHandler))
		return l
	}
	l := newInstance()
	if _, _, err := l.OpenReferential(t.Context(), "a", operator, "m", "M"); err != nil {
		t.Fatal(err)
	}
	batch := locations.Batch{Rows: makeRows(3_000), IsSync: true, IdempotencyKey: "k", RequestDigest: []byte("r")}
	appendRaw(t, log, "locations-a", "locations.sync-committed.v1", `{"referential":"m","action":"sync","created":3000,"before":0,"after":3000,"active":0,`+
		`"key":"8254c329a92850f6d539dd376f4816ee2764517da5e0235514af433164480d7a","request":"72","sync":"","events":0,"rows":0,"digest":null}`)
	for round, instance := range []*locations.Locations{l, newInstance()} {
		o, _, err := instance.WriteBatch(t.Context(), "a", operator, "m", batch)
		if err != nil || o.Created != 3_000 || o.AccountActive != 0 {
			t.Errorf("round %d: got %+v, %v: the key was never answered", round, o.SiteWriteSummary, err)
		}
		appendRaw(t, log, "locations-a", "locations.sync-committed.v1", `{"referential":"none","after":9}`)
	}
	if files, _ := filepath.Glob(filepath.Join(folder, "*.fold")); len(files) != 1 {
		t.Errorf("got files %v, want the fold's", files)
	}
	if f, err := newInstance().CountLocations(t.Context(), "a"); err != nil || f != (locations.Counts{Sites: 3_000, Referentials: 1}) {
		t.Errorf("got %+v, %v", f, err)
	}
}
