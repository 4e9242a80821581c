package usage_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/usagefold"
)

// restorableStore is a log that an older copy can replace under its users, as on a server.
type restorableStore struct {
	mu      sync.Mutex
	journal *journal.Journal
	dir     string
}

func openRestorableStore(t *testing.T, dir string) *restorableStore {
	t.Helper()
	return &restorableStore{dir: dir, journal: openJournal(t, dir)}
}

func openJournal(t *testing.T, dir string) *journal.Journal {
	t.Helper()
	j, err := journal.Open(dir, journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func (r *restorableStore) current() *journal.Journal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.journal
}

// copyLog copies the log as it is into a new folder.
func (r *restorableStore) copyLog(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(r.dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// restore replaces the log by another journal.
func (r *restorableStore) restore(j *journal.Journal) {
	r.mu.Lock()
	old := r.journal
	r.journal = j
	r.mu.Unlock()
	old.Close()
}

func (r *restorableStore) Identity(ctx context.Context) (uuid.UUID, error) {
	return r.current().Identity(ctx)
}
func (r *restorableStore) Health() error { return r.current().Health() }
func (r *restorableStore) Close() error  { return r.current().Close() }

func (r *restorableStore) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	return r.current().Append(ctx, stream, expected, events)
}

func (r *restorableStore) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	return r.current().ReadStream(ctx, stream, from, dir)
}

func (r *restorableStore) ReadAll(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return r.current().ReadAll(ctx, after, want)
}

func (r *restorableStore) Subscribe(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		for j := r.current(); ; j = r.current() {
			for s, err := range j.Subscribe(ctx, after, want) {
				if errors.Is(err, eventstore.ErrClosed) && r.current() != j {
					break
				}
				if !yield(s, err) || err != nil {
					return
				}
				after = s.Checkpoint
			}
		}
	}
}

// countUntil counts requests one by one until n are served or the cap is reached, and returns how many were. A few may fail with
// ErrUnavailable: those whose stream was replaced.
func countUntil(t *testing.T, m *usage.Meter, account string, limit int64, n int) (served int) {
	t.Helper()
	for refused := 0; served < n; {
		_, err := countRequest(t.Context(), m, newWait(account), grantOf(account, limit), "GET /me")
		var spent *usage.QuotaExceededError
		switch {
		case err == nil:
			served++
		case errors.As(err, &spent):
			return served
		case errors.Is(err, usage.ErrUnavailable) && refused < fewRefused:
			refused++
		default:
			t.Fatal(err)
		}
	}
	return served
}

const fewRefused = 3

func TestCountingGoesOnFromARestoredUsageLog(t *testing.T) {
	t.Parallel()
	for _, elsewhere := range []int{0, 20, 50, 90} { // requests that another instance counts on the copy: fewer, as many and more than were lost
		t.Run(fmt.Sprintf("%d counted elsewhere", elsewhere), func(t *testing.T) {
			t.Parallel()
			const limit, before, lost = 300, 40, 50
			quotas := &fakeQuotas{caps: map[string]int64{"a": limit}}
			log := openRestorableStore(t, t.TempDir())
			m := startMeter(t, log, openLog(t), quotas, time.Now)
			countUntil(t, m, "a", limit, before)
			copied := log.copyLog(t)
			countUntil(t, m, "a", limit, lost)

			older := openJournal(t, copied)
			other := startMeter(t, older, openLog(t), quotas, time.Now)
			countUntil(t, other, "a", limit, elsewhere)
			log.restore(older)
			served := countUntil(t, m, "a", limit, 2*limit)
			f, _ := foldStream(t, older, usagefold.StreamName("a", plan.PeriodAt(anchor, time.Now()).First))
			// The first tick was appended to a stream other than the folded one. Its requests are counted again, and it is taken back.
			if got := before + elsewhere + served; f.Used("a") != limit || got != limit {
				t.Errorf("the log says %d of %d; %d were served that it holds", f.Used("a"), limit, got)
			}
		})
	}
}

// A cap that is read again is the first to find that the log was restored. The request is counted all the same.
func TestANewQuotaIsInForceAtOnceOnARestoredUsageLog(t *testing.T) {
	t.Parallel()
	quotas := &fakeQuotas{caps: map[string]int64{"a": 10}}
	log := openRestorableStore(t, t.TempDir())
	m := startMeter(t, log, openLog(t), quotas, time.Now)
	countUntil(t, m, "a", 10, 2)
	copied := log.copyLog(t)
	countUntil(t, m, "a", 10, 5)

	older := openJournal(t, copied)
	log.restore(older)
	quotas.set("a", 20)
	time.Sleep(200 * time.Millisecond) // a cap is not read again sooner
	if u, err := countRequest(t.Context(), m, newWait("a"), grantOf("a", 20), "GET /me"); err != nil || u.Used != 3 || u.Limit != 20 {
		t.Errorf("the first request after the restoring: %d of %d, %v; want 3 of 20", u.Used, u.Limit, err)
	}
	checkTotal(t, older, usagefold.StreamName("a", plan.PeriodAt(anchor, time.Now()).First), 3)
}

func TestRevocationsAreFollowedOnARestoredLog(t *testing.T) {
	t.Parallel()
	core := openRestorableStore(t, t.TempDir())
	appendEvent(t, core, "account-b", event.AccountClosed{})
	older := openJournal(t, core.copyLog(t)) // closed after the instance has ended
	quotas := &fakeQuotas{caps: map[string]int64{"a": 100}}
	m := startMeter(t, openLog(t), core, quotas, time.Now)
	appendEvent(t, core, "account-b", event.AccountClosed{})
	countUntil(t, m, "a", 100, 1)
	core.restore(older)
	revoked := func() bool {
		appendEvent(t, core, "account-a", event.KeyRevoked{Key: "key-a", Hash: make([]byte, 32)})
		_, err := countRequest(t.Context(), m, newWait("a"), grantOf("a", 100), "GET /me")
		return errors.Is(err, usage.ErrRevoked)
	}
	for end := time.Now().Add(30 * time.Second); !revoked(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the revocation of the key was not followed")
		}
	}
}

// failingOnceStore is a log whose first subscription fails.
type failingOnceStore struct {
	eventstore.Store
	err    error // nil: it ends without one
	failed sync.Once
}

func (s *failingOnceStore) Subscribe(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		isFirst := false
		if s.failed.Do(func() { isFirst = true }); !isFirst {
			s.Store.Subscribe(ctx, after, want)(yield)
		} else if s.err != nil {
			yield(eventstore.Signal{}, s.err)
		}
	}
}

// Whatever ends a subscription, the next one continues: the right log is back, or a disk reads the right bytes again.
func TestRevocationsAreFollowedAfterASubscriptionFailed(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"another log":   &eventstore.DivergedError{Reason: "another log", IsOtherLog: true},
		"wrong bytes":   &eventstore.CorruptError{Reason: "wrong bytes were read"},
		"without words": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core, quotas := openLog(t), &fakeQuotas{caps: map[string]int64{"a": 100}}
			m := startMeter(t, openLog(t), &failingOnceStore{Store: core, err: err}, quotas, time.Now)
			countUntil(t, m, "a", 100, 1)
			appendEvent(t, core, "account-a", event.KeyRevoked{Key: "key-a", Hash: make([]byte, 32)})
			revoked := func() bool {
				_, err := countRequest(t.Context(), m, newWait("a"), grantOf("a", 100), "GET /me")
				return errors.Is(err, usage.ErrRevoked)
			}
			for end := time.Now().Add(30 * time.Second); !revoked(); time.Sleep(20 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the revocation of the key was not followed")
				}
			}
		})
	}
}
