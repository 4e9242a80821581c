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
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
)

// restorable is a log of which an older copy can take the place under those who use it, as on a server.
type restorable struct {
	mu      sync.Mutex
	journal *journal.Journal
	dir     string
}

func openRestorable(t *testing.T, dir string) *restorable {
	t.Helper()
	return &restorable{dir: dir, journal: openIn(t, dir)}
}

func openIn(t *testing.T, dir string) *journal.Journal {
	t.Helper()
	j, err := journal.Open(dir, journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func (r *restorable) now() *journal.Journal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.journal
}

// copied is a folder with the log as it is.
func (r *restorable) copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(r.dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// restore puts another journal in the log's place.
func (r *restorable) restore(j *journal.Journal) {
	r.mu.Lock()
	old := r.journal
	r.journal = j
	r.mu.Unlock()
	old.Close()
}

func (r *restorable) Identity(ctx context.Context) (uuid.UUID, error) { return r.now().Identity(ctx) }
func (r *restorable) Health() error                                   { return r.now().Health() }
func (r *restorable) Close() error                                    { return r.now().Close() }

func (r *restorable) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.Proposed) (eventstore.Committed, error) {
	return r.now().Append(ctx, stream, expected, events)
}

func (r *restorable) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.Recorded, error] {
	return r.now().ReadStream(ctx, stream, from, dir)
}

func (r *restorable) ReadAll(ctx context.Context, after eventstore.Mark, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return r.now().ReadAll(ctx, after, want)
}

func (r *restorable) Subscribe(ctx context.Context, after eventstore.Mark, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		for j := r.now(); ; j = r.now() {
			for s, err := range j.Subscribe(ctx, after, want) {
				if errors.Is(err, eventstore.ErrClosed) && r.now() != j {
					break
				}
				if !yield(s, err) || err != nil {
					return
				}
				after = s.Mark
			}
		}
	}
}

// serve counts requests one by one until n are served or the cap is reached, and says how many were. A few may be refused
// because they cannot be counted: those that find their stream changed.
func serve(t *testing.T, l *usage.Ledger, account string, limit int64, n int) (served int) {
	t.Helper()
	for refused := 0; served < n; {
		_, err := l.Count(t.Context(), holder(account, limit), "GET /me")
		var spent *usage.SpentError
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

func TestARestoredUsageLogIsCountedOnAsItIs(t *testing.T) {
	t.Parallel()
	for _, elsewhere := range []int{0, 20, 50, 90} { // requests that another instance counts on the copy: fewer, as many and more than were lost
		t.Run(fmt.Sprintf("%d counted elsewhere", elsewhere), func(t *testing.T) {
			t.Parallel()
			const limit, before, lost = 300, 40, 50
			terms := &volumes{caps: map[string]int64{"a": limit}}
			log := openRestorable(t, t.TempDir())
			l := instance(t, log, openLog(t), terms, time.Now)
			serve(t, l, "a", limit, before)
			copied := log.copied(t)
			serve(t, l, "a", limit, lost)

			older := openIn(t, copied)
			other := instance(t, older, openLog(t), terms, time.Now)
			serve(t, other, "a", limit, elsewhere)
			log.restore(older)
			served := serve(t, l, "a", limit, 2*limit)
			f, _ := refold(t, older, ledger.Stream("a", plan.PeriodAt(anchor, time.Now()).First))
			// A tick that finds its stream changed is on the log, and its request was refused.
			if got := before + elsewhere + served; f.Used("a") != limit || got > limit || got < limit-fewRefused {
				t.Errorf("the log says %d of %d; %d were served that it holds", f.Used("a"), limit, got)
			}
		})
	}
}

func TestEndsOfKeysAreHeardOnARestoredLogToo(t *testing.T) {
	t.Parallel()
	core := openRestorable(t, t.TempDir())
	write(t, core, "account-b", event.AccountClosed{})
	older := openIn(t, core.copied(t)) // which is closed after the instance has ended
	terms := &volumes{caps: map[string]int64{"a": 100}}
	l := instance(t, openLog(t), core, terms, time.Now)
	write(t, core, "account-b", event.AccountClosed{})
	serve(t, l, "a", 100, 1)
	core.restore(older)
	revoked := func() bool {
		write(t, core, "account-a", event.KeyRevoked{Key: "key-a", Hash: make([]byte, 32)})
		_, err := l.Count(t.Context(), holder("a", 100), "GET /me")
		return errors.Is(err, usage.ErrRevoked)
	}
	for end := time.Now().Add(30 * time.Second); !revoked(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the end of the key is not heard")
		}
	}
}

// swapped is a log in whose place another one is found once.
type swapped struct {
	eventstore.Store
	found sync.Once
}

func (s *swapped) Subscribe(ctx context.Context, after eventstore.Mark, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		isOther := false
		if s.found.Do(func() { isOther = true }); isOther {
			yield(eventstore.Signal{}, &eventstore.DivergedError{Mark: after, Why: "another log", Other: true})
			return
		}
		s.Store.Subscribe(ctx, after, want)(yield)
	}
}

func TestEndsOfKeysAreHeardOnceTheRightLogIsBack(t *testing.T) {
	t.Parallel()
	core, terms := openLog(t), &volumes{caps: map[string]int64{"a": 100}}
	l := instance(t, openLog(t), &swapped{Store: core}, terms, time.Now)
	serve(t, l, "a", 100, 1)
	write(t, core, "account-a", event.KeyRevoked{Key: "key-a", Hash: make([]byte, 32)})
	revoked := func() bool {
		_, err := l.Count(t.Context(), holder("a", 100), "GET /me")
		return errors.Is(err, usage.ErrRevoked)
	}
	for end := time.Now().Add(30 * time.Second); !revoked(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the end of the key is not heard")
		}
	}
}
