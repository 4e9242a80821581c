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

// RestorableLog is a log of which an older copy can be restored under those who use it: a subscription goes on, on the log
// that is there then, as over a server that was restarted with it.
type RestorableLog struct {
	dir string

	mu  sync.Mutex
	log *journal.Journal
}

// NewRestorableLog is a new log that is closed after the test.
func NewRestorableLog(t testing.TB) *RestorableLog {
	t.Helper()
	r := &RestorableLog{dir: t.TempDir()}
	r.open(t)
	t.Cleanup(func() { r.current().Close() })
	return r
}

func (r *RestorableLog) open(t testing.TB) {
	t.Helper()
	j, err := journal.Open(r.dir, journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = j
}

func (r *RestorableLog) current() *journal.Journal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log
}

// Backup is a folder with the log as it is now.
func (r *RestorableLog) Backup(t testing.TB) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(r.dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// Restore puts a copy in the log's place, which then grows by what more appends.
func (r *RestorableLog) Restore(t testing.TB, backup string, appendMore func()) {
	t.Helper()
	old := r.current()
	r.dir = backup
	j, err := journal.Open(backup, journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	r.log = j
	r.mu.Unlock()
	appendMore()
	if err := old.Close(); err != nil { // only now do its readers look for another
		t.Fatal(err)
	}
}

// Identity is one of eventstore.Store, and so are the others.
func (r *RestorableLog) Identity(ctx context.Context) (uuid.UUID, error) {
	return r.current().Identity(ctx)
}

// Append appends to the log that is there.
func (r *RestorableLog) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	return r.current().Append(ctx, stream, expected, events)
}

// ReadStream reads the log that is there.
func (r *RestorableLog) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	return r.current().ReadStream(ctx, stream, from, dir)
}

// ReadAll reads the log that is there.
func (r *RestorableLog) ReadAll(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return r.current().ReadAll(ctx, after, want)
}

// Subscribe follows the log that is there, and then the one that takes its place.
func (r *RestorableLog) Subscribe(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		for log := r.current(); ; log = r.current() {
			for s, err := range log.Subscribe(ctx, after, want) {
				if errors.Is(err, eventstore.ErrClosed) && r.current() != log {
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

// Health is that of the log that is there.
func (r *RestorableLog) Health() error { return r.current().Health() }

// Close closes the log that is there.
func (r *RestorableLog) Close() error { return r.current().Close() }
