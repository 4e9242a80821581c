package repair_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"lieudit/commands"
	"lieudit/commands/account"
	"lieudit/commands/repair"
	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// fakeVault has a key for every subject.
type fakeVault struct{}

func (fakeVault) Key(context.Context, string, bool) ([]byte, error) { return make([]byte, 32), nil }
func (fakeVault) DestroyKey(context.Context, string) error          { return nil }
func (fakeVault) ForgetKeys()                                       {}

var (
	codec    = eventstore.NewCodec(fakeVault{})
	operator = commands.Metadata{Actor: "token:operator", Reason: "damaged"}
)

func openLog(t *testing.T) *journal.Journal {
	t.Helper()
	j, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func appendRaw(t *testing.T, log eventstore.Store, stream, name, data string) {
	t.Helper()
	_, err := log.Append(t.Context(), stream, eventstore.Any, []eventstore.ProposedEvent{{ID: uuid.New(), Type: name, Data: []byte(data), Metadata: []byte(`{}`)}})
	if err != nil {
		t.Fatal(err)
	}
}

// openDamagedLog returns a log with an account that has three unusable events.
func openDamagedLog(t *testing.T) (*journal.Journal, *account.Accounts) {
	log := openLog(t)
	a := account.New(log, codec, token.DefaultPrefixes, time.Now)
	if _, err := a.OpenAccount(t.Context(), operator, account.OpenRequest{ID: "a", Name: "A", Plan: plan.Starter}); err != nil {
		t.Fatal(err)
	}
	appendRaw(t, log, "account-a", "account.closed.v1", `[]`)
	appendRaw(t, log, "account-a", "account.agency-activated.v1", `{}`)
	appendRaw(t, log, "locations-a", "locations.referential-opened.v1", `{"code":"m"}`)
	appendRaw(t, log, "locations-a", "locations.sync-committed.v1", `{"sync":"s","events":2}`)
	appendRaw(t, log, "locations-a", "locations.sync-committed.v1", `{"sync":""}`) // an empty commit is not unusable
	appendRaw(t, log, "locations-a", "locations.sites-changed.v1", `{"rows":[{"externalId":"x","content":"in clear"}]}`)
	return log, a
}

func TestRepairVoidsWhatCannotBeUsedAndNothingElse(t *testing.T) {
	t.Parallel()
	log, a := openDamagedLog(t)
	if _, _, err := a.CloseAccount(t.Context(), "a", operator); err == nil {
		t.Fatal("the account was closed on a state that may be wrong")
	}
	r := repair.New(log, codec)
	found, err := r.RepairAccount(t.Context(), "a", operator)
	if err != nil {
		t.Fatal(err)
	}
	type line struct {
		Stream   string
		Revision int64
	}
	var got []line
	for _, v := range found {
		if got = append(got, line{v.Stream, v.Revision}); v.Reason == "" || v.Type == "" || v.EventID == "" || v.Position == 0 {
			t.Errorf("got %+v", v)
		}
	}
	if diff := cmp.Diff([]line{{"account-a", 1}, {"locations-a", 1}, {"locations-a", 3}}, got); diff != "" {
		t.Error(diff)
	}
	if _, _, err := a.CloseAccount(t.Context(), "a", operator); err != nil {
		t.Errorf("after the repair: %v", err)
	}
	if again, err := r.RepairAccount(t.Context(), "a", operator); err != nil || len(again) != 0 {
		t.Errorf("again: got %+v, %v, want nothing", again, err)
	}
	if _, err := r.RepairAccount(t.Context(), "nobody", operator); !errors.Is(err, repair.ErrNoStreams) {
		t.Errorf("got %v, want ErrNothing", err)
	}
}

func TestRepairOfATokenRepairsItsStreamAlone(t *testing.T) {
	t.Parallel()
	log := openLog(t)
	appendRaw(t, log, "token-t", "token.issued.v1", `{"token":4}`)
	found, err := repair.New(log, codec).RepairToken(t.Context(), "t", operator)
	if err != nil || len(found) != 1 || found[0].Stream != "token-t" {
		t.Errorf("got %+v, %v", found, err)
	}
}

// racingStore is a log to which another writer appends before the first append.
type racingStore struct {
	eventstore.Store
	other func()
}

func (r *racingStore) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	if other := r.other; other != nil {
		r.other = nil
		other()
	}
	return r.Store.Append(ctx, stream, expected, events)
}

func TestRepairReadsAgainAfterAConflict(t *testing.T) {
	t.Parallel()
	log, _ := openDamagedLog(t)
	racing := &racingStore{Store: log, other: func() { appendRaw(t, log, "account-a", "account.closed.v1", `{`) }}
	found, err := repair.New(racing, codec).RepairAccount(t.Context(), "a", operator)
	if err != nil || len(found) != 4 {
		t.Errorf("got %+v, %v, want the one that came between too", found, err)
	}
}

// TestRepairVoidsNothingOfATypeItDoesNotKnow: a later release may know the type.
func TestRepairVoidsNothingOfATypeItDoesNotKnow(t *testing.T) {
	t.Parallel()
	log := openLog(t)
	appendRaw(t, log, "account-a", "account.painted.v1", `{`)
	if found, err := repair.New(log, codec).RepairAccount(t.Context(), "a", operator); !errors.Is(err, event.ErrUnknownType) {
		t.Errorf("got %+v, %v", found, err)
	}
}
