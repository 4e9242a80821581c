package locations

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/eventstore"
)

// faultyStore is a log and a vault whose calls fail as its hooks say. A nil hook fails nothing.
type faultyStore struct {
	eventstore.Store
	eventstore.Vault

	healed  atomic.Bool
	appends func(stream string) error // called before an append; its error is returned
	reads   func(stream string) error // likewise, before a read
	keys    func() error              // likewise, before a key is read
}

func (f *faultyStore) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	if err := f.callHook(f.appends, stream); err != nil {
		return eventstore.AppendResult{}, err
	}
	return f.Store.Append(ctx, stream, expected, events)
}

func (f *faultyStore) ReadStream(ctx context.Context, stream string, from eventstore.Revision, d eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	if err := f.callHook(f.reads, stream); err != nil {
		return func(yield func(eventstore.RecordedEvent, error) bool) { yield(eventstore.RecordedEvent{}, err) }
	}
	return f.Store.ReadStream(ctx, stream, from, d)
}

func (f *faultyStore) Key(ctx context.Context, subject string, create bool) ([]byte, error) {
	if f.keys != nil && !f.healed.Load() {
		if err := f.keys(); err != nil {
			return nil, err
		}
	}
	return f.Vault.Key(ctx, subject, create)
}

func (f *faultyStore) callHook(hook func(string) error, stream string) error {
	if hook == nil || f.healed.Load() {
		return nil
	}
	return hook(stream)
}

// isStaging reports whether a stream has staged rows.
func isStaging(stream string) bool { return strings.HasPrefix(stream, "sync-") }

// failFromCall returns a hook that fails the n-th call, counted from 1, and all calls after it.
func failFromCall(n int, err error) func() error {
	var calls atomic.Int64
	return func() error {
		if calls.Add(1) >= int64(n) {
			return err
		}
		return nil
	}
}

// failStagingFrom returns a hook that fails the n-th append of staged rows and all after it.
func failStagingFrom(n int, err error) func(string) error {
	failFrom := failFromCall(n, err)
	return func(stream string) error {
		if isStaging(stream) {
			return failFrom()
		}
		return nil
	}
}

// TestSyncWhoseStagingFailsAppendsNothing: whatever fails at whichever step, the account's stream is as it was, the same
// instance and others continue, and the same request made again is done as if for the first time.
func TestSyncWhoseStagingFailsAppendsNothing(t *testing.T) {
	t.Parallel()
	const rows = 2_600 // two appends of staged rows at least
	broken := errors.New("it is broken")
	type scene struct {
		name string
		set  func(f *faultyStore, cancel context.CancelFunc)
	}
	var scenes []scene
	for _, n := range []int{1, 2, rows / 2, rows} {
		scenes = append(scenes, scene{fmt.Sprintf("vault_at_key_%d", n), func(f *faultyStore, _ context.CancelFunc) { f.keys = failFromCall(n, broken) }})
	}
	for n := 1; n <= 2; n++ {
		for _, err := range []error{eventstore.ErrUnavailable, eventstore.ErrTooLarge, eventstore.ErrIDReused, eventstore.ErrClosed, broken} {
			scenes = append(scenes, scene{fmt.Sprintf("append_%d_%s", n, strings.ReplaceAll(err.Error(), " ", "_")),
				func(f *faultyStore, _ context.CancelFunc) { f.appends = failStagingFrom(n, err) }})
		}
		scenes = append(scenes, scene{fmt.Sprintf("append_%d_of_unknown_outcome", n), func(f *faultyStore, cancel context.CancelFunc) {
			f.appends = failStagingFrom(n, eventstore.ErrUnknown)
			time.AfterFunc(50*time.Millisecond, cancel)
		}})
		scenes = append(scenes, scene{fmt.Sprintf("context_ends_at_append_%d", n), func(f *faultyStore, cancel context.CancelFunc) {
			fails := failStagingFrom(n, broken)
			f.appends = func(stream string) error {
				if fails(stream) != nil {
					cancel()
				}
				return nil
			}
		}})
	}
	for _, c := range scenes {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := newFixture(t)
			mustOpen(t, s.newInstance(s.store), "magasins")
			mustPut(t, s.newInstance(s.store), rowAt("x", "X", 44))
			f := &faultyStore{Store: s.store, Vault: s.vault}
			l := New(f, eventstore.NewCodec(f), s.plans, s.ban, time.Now)
			c.set(f, cancel)
			checkFailedSync(t, ctx, s, l, f, Batch{Rows: manyRows(rows), IdempotencyKey: "k", RequestDigest: []byte("r")}, rows)
		})
	}
}

// checkFailedSync writes a batch that cannot be staged, and then the same batch when nothing fails any more.
func checkFailedSync(t *testing.T, ctx context.Context, s *fixture, l *Locations, f *faultyStore, b Batch, rows int) {
	t.Helper()
	before := s.events(t, "locations-a")
	if o, at, err := l.WriteBatch(ctx, "a", shopMeta, "magasins", b); err == nil || at != 0 {
		t.Fatalf("got %+v at %d, want an error", o.SiteWriteSummary, at)
	}
	if after := s.events(t, "locations-a"); len(after) != len(before) {
		t.Fatalf("the sync that failed appended %v", after[len(before):])
	}
	f.healed.Store(true)
	for _, instance := range []*Locations{l, s.newInstance(s.store)} {
		if got, err := instance.CountLocations(t.Context(), "a"); err != nil || got != (Counts{Sites: 1, Referentials: 1}) {
			t.Fatalf("got %+v, %v after the sync that failed", got, err)
		}
	}
	mustPut(t, l, rowAt("y", "Y", 45))
	if o := mustWrite(t, l, "magasins", b); o.Created != rows || o.AccountActive != 2 {
		t.Errorf("the same request again: got %+v", o.SiteWriteSummary)
	}
	if o := mustWrite(t, s.newInstance(s.store), "magasins", b); o.Created != rows || o.AccountActive != 2 {
		t.Errorf("the same request a third time: got %+v, want the second answer", o.SiteWriteSummary)
	}
	if got, err := s.newInstance(s.store).CountLocations(t.Context(), "a"); err != nil || got.Sites != rows+2 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestSyncThatMeetsAnotherAndThenFailsAppendsNothing: rows that were staged before a conflict are not committed with the
// figures of the decision after it.
func TestSyncThatMeetsAnotherAndThenFailsAppendsNothing(t *testing.T) {
	t.Parallel()
	broken := errors.New("it is broken")
	for _, c := range []struct {
		name string
		set  func(f *faultyStore)
	}{
		{"the_vault", func(f *faultyStore) { f.keys = func() error { return broken } }},
		{"the_append", func(f *faultyStore) { f.appends = failStagingFrom(1, eventstore.ErrUnavailable) }},
		{"the_look_at_what_is_staged", func(f *faultyStore) {
			f.reads = func(stream string) error {
				if isStaging(stream) {
					return eventstore.ErrUnavailable
				}
				return nil
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			mustOpen(t, s.newInstance(s.store), "magasins")
			f := &faultyStore{Store: s.store, Vault: s.vault}
			raced := false
			f.appends = func(stream string) error {
				if stream == "locations-a" && !raced {
					raced = true
					row := manyRows(1)[0]
					if c.name == "the_look_at_what_is_staged" {
						row = rowAt("x", "X", 44) // the staged rows stay the same
					}
					mustPut(t, s.newInstance(s.store), row)
					c.set(f)
				}
				return nil
			}
			l := New(f, eventstore.NewCodec(f), s.plans, s.ban, time.Now)
			if _, _, err := l.WriteBatch(t.Context(), "a", shopMeta, "magasins", Batch{Rows: manyRows(1_000)}); err == nil || !raced {
				t.Fatalf("got %v, want an error after a conflict", err)
			}
			if got := s.events(t, "locations-a"); len(got) != 2 {
				t.Fatalf("got %v, want the opening and the other's change", got)
			}
			f.healed.Store(true)
			mustWrite(t, l, "magasins", Batch{Rows: manyRows(1_000)})
		})
	}
}

// replaceableStore is a log that a test replaces while it is in use, as a restore from a backup does.
type replaceableStore struct{ eventstore.Store }

func TestStateIsFoldedAgainWhenTheLogWasRestored(t *testing.T) {
	t.Parallel()
	older, newer := newFixture(t), newFixture(t)
	log := &replaceableStore{newer.store}
	l := newer.newInstance(log)
	for _, s := range []*fixture{older, newer} {
		mustOpen(t, s.newInstance(s.store), "magasins")
		mustPut(t, s.newInstance(s.store), rowAt("x", "X", 44))
	}
	mustWrite(t, l, "magasins", Batch{Rows: manyRows(1_000)})
	log.Store = older.store
	if f, err := l.CountLocations(t.Context(), "a"); err != nil || f.Sites != 1 {
		t.Errorf("got %+v, %v, want the one site of the older log", f, err)
	}
	if o := mustWrite(t, l, "magasins", Batch{Rows: manyRows(1_000)}); o.Created != 1_000 || o.AccountActive != 1 {
		t.Errorf("got %+v", o.SiteWriteSummary)
	}
}

// TestRowsStagedOnALogThatWasReplacedAreStagedAgain: rows that were staged before the log was restored from a backup are
// staged again.
func TestRowsStagedOnALogThatWasReplacedAreStagedAgain(t *testing.T) {
	t.Parallel()
	older, newer := newFixture(t), newFixture(t)
	mustOpen(t, older.newInstance(older.store), "magasins")
	mustOpen(t, newer.newInstance(newer.store), "magasins")
	mustPut(t, newer.newInstance(newer.store), rowAt("x", "X", 44))
	log := &replaceableStore{newer.store}
	l := newer.newInstance(&hookedStore{Store: log, before: func(stream string) error {
		if stream == "locations-a" {
			log.Store = older.store
		}
		return nil
	}})
	mustWrite(t, l, "magasins", Batch{Rows: manyRows(1_000)})
	if f, err := older.newInstance(older.store).CountLocations(t.Context(), "a"); err != nil || f.Sites != 1_000 {
		t.Errorf("got %+v, %v", f, err)
	}
}
