package projectortest

import (
	"context"
	"errors"
	"iter"
	"os"
	"sync"
	"testing"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
)

// Restorable is a log of which an older copy can be restored under those who use it: a subscription goes on, on the log
// that is there then, as over a server that was restarted with it.
type Restorable struct {
	dir string

	mu  sync.Mutex
	log *journal.Journal
}

// NewRestorable is a new log that is closed after the test.
func NewRestorable(t testing.TB) *Restorable {
	t.Helper()
	r := &Restorable{dir: t.TempDir()}
	r.open(t)
	t.Cleanup(func() { r.now().Close() })
	return r
}

func (r *Restorable) open(t testing.TB) {
	t.Helper()
	j, err := journal.Open(r.dir, journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = j
}

func (r *Restorable) now() *journal.Journal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log
}

// Copy is a folder with the log as it is now.
func (r *Restorable) Copy(t testing.TB) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(r.dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// Restore puts a copy in the log's place, which then grows by what more appends.
func (r *Restorable) Restore(t testing.TB, older string, more func()) {
	t.Helper()
	old := r.now()
	r.dir = older
	j, err := journal.Open(older, journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	r.log = j
	r.mu.Unlock()
	more()
	if err := old.Close(); err != nil { // only now do its readers look for another
		t.Fatal(err)
	}
}

// Identity is one of eventstore.Store, and so are the others.
func (r *Restorable) Identity(ctx context.Context) (uuid.UUID, error) { return r.now().Identity(ctx) }

// Append appends to the log that is there.
func (r *Restorable) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.Proposed) (eventstore.Committed, error) {
	return r.now().Append(ctx, stream, expected, events)
}

// ReadStream reads the log that is there.
func (r *Restorable) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.Recorded, error] {
	return r.now().ReadStream(ctx, stream, from, dir)
}

// ReadAll reads the log that is there.
func (r *Restorable) ReadAll(ctx context.Context, after eventstore.Mark, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return r.now().ReadAll(ctx, after, want)
}

// Subscribe follows the log that is there, and then the one that takes its place.
func (r *Restorable) Subscribe(ctx context.Context, after eventstore.Mark, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		for log := r.now(); ; log = r.now() {
			for s, err := range log.Subscribe(ctx, after, want) {
				if errors.Is(err, eventstore.ErrClosed) && r.now() != log {
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

// Health is that of the log that is there.
func (r *Restorable) Health() error { return r.now().Health() }

// Close closes the log that is there.
func (r *Restorable) Close() error { return r.now().Close() }
