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

// keys is a vault that is never asked in vain.
type keys struct{}

func (keys) Key(context.Context, string, bool) ([]byte, error) { return make([]byte, 32), nil }
func (keys) Destroy(context.Context, string) error             { return nil }

var (
	codec    = eventstore.NewCodec(keys{})
	operator = commands.Intent{Actor: "token:operator", Reason: "damaged"}
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

func raw(t *testing.T, log eventstore.Store, stream, name, data string) {
	t.Helper()
	_, err := log.Append(t.Context(), stream, eventstore.Any, []eventstore.Proposed{{ID: uuid.New(), Type: name, Data: []byte(data), Metadata: []byte(`{}`)}})
	if err != nil {
		t.Fatal(err)
	}
}

// damaged is a log with an account three of whose events cannot be used.
func damaged(t *testing.T) (*journal.Journal, *account.Accounts) {
	log := openLog(t)
	a := account.New(log, codec, token.Default, time.Now)
	if _, err := a.Open(t.Context(), operator, account.Open{ID: "a", Name: "A", Plan: plan.Starter}); err != nil {
		t.Fatal(err)
	}
	raw(t, log, "account-a", "account.closed.v1", `[]`)
	raw(t, log, "account-a", "account.agency-activated.v1", `{}`)
	raw(t, log, "locations-a", "locations.referential-opened.v1", `{"code":"m"}`)
	raw(t, log, "locations-a", "locations.sync-committed.v1", `{"sync":"s","events":2}`)
	raw(t, log, "locations-a", "locations.sync-committed.v1", `{"sync":""}`) // is passed over as it is
	raw(t, log, "locations-a", "locations.sites-changed.v1", `{"rows":[{"externalId":"x","content":"in clear"}]}`)
	return log, a
}

func TestRepairVoidsWhatCannotBeUsedAndNothingElse(t *testing.T) {
	t.Parallel()
	log, a := damaged(t)
	if _, err := a.Close(t.Context(), "a", operator); err == nil {
		t.Fatal("the account was closed on a state that may be wrong")
	}
	r := repair.New(log, codec)
	found, err := r.Account(t.Context(), "a", operator)
	if err != nil {
		t.Fatal(err)
	}
	type line struct {
		Stream   string
		Revision int64
	}
	var got []line
	for _, v := range found {
		if got = append(got, line{v.Stream, v.Revision}); v.Why == "" || v.Type == "" || v.Event == "" || v.Position == 0 {
			t.Errorf("got %+v", v)
		}
	}
	if diff := cmp.Diff([]line{{"account-a", 1}, {"locations-a", 1}, {"locations-a", 3}}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := a.Close(t.Context(), "a", operator); err != nil {
		t.Errorf("after the repair: %v", err)
	}
	if again, err := r.Account(t.Context(), "a", operator); err != nil || len(again) != 0 {
		t.Errorf("again: got %+v, %v, want nothing", again, err)
	}
	if _, err := r.Account(t.Context(), "nobody", operator); !errors.Is(err, repair.ErrNothing) {
		t.Errorf("got %v, want ErrNothing", err)
	}
}

func TestRepairOfATokenIsOfItsStream(t *testing.T) {
	t.Parallel()
	log := openLog(t)
	raw(t, log, "token-t", "token.issued.v1", `{"token":4}`)
	found, err := repair.New(log, codec).Token(t.Context(), "t", operator)
	if err != nil || len(found) != 1 || found[0].Stream != "token-t" {
		t.Errorf("got %+v, %v", found, err)
	}
}

// racing is a log that another writer appends to before the first append.
type racing struct {
	eventstore.Store
	other func()
}

func (r *racing) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.Proposed) (eventstore.Committed, error) {
	if other := r.other; other != nil {
		r.other = nil
		other()
	}
	return r.Store.Append(ctx, stream, expected, events)
}

func TestRepairLooksAtWhatComesBetween(t *testing.T) {
	t.Parallel()
	log, _ := damaged(t)
	between := &racing{Store: log, other: func() { raw(t, log, "account-a", "account.closed.v1", `{`) }}
	found, err := repair.New(between, codec).Account(t.Context(), "a", operator)
	if err != nil || len(found) != 4 {
		t.Errorf("got %+v, %v, want the one that came between too", found, err)
	}
}

// TestRepairVoidsNothingOfATypeItDoesNotKnow: a later program may.
func TestRepairVoidsNothingOfATypeItDoesNotKnow(t *testing.T) {
	t.Parallel()
	log := openLog(t)
	raw(t, log, "account-a", "account.painted.v1", `{`)
	if found, err := repair.New(log, codec).Account(t.Context(), "a", operator); !errors.Is(err, event.ErrUnknownType) {
		t.Errorf("got %+v, %v", found, err)
	}
}
