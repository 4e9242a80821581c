package journal

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/deadlinetest"
)

// gatedFS is a folder whose syncs wait until the test gives each its outcome.
type gatedFS struct {
	FS
	arrivals chan chan<- error // one for each sync that waits
	letAll   chan struct{}     // closed when syncs need not wait any more
}

type gatedFile struct {
	File
	fs *gatedFS
}

func (t *gatedFS) Open(name string, create bool) (File, error) {
	f, err := t.FS.Open(name, create)
	return gatedFile{f, t}, err
}

func (f gatedFile) Sync() error {
	result := make(chan error, 1)
	select {
	case <-f.fs.letAll:
		return f.File.Sync()
	case f.fs.arrivals <- result:
	}
	if err := <-result; err != nil {
		return err
	}
	return f.File.Sync()
}

// gatedJournal is a journal whose writer is about to flush a group of appends with a second one behind it.
type gatedJournal struct {
	*Journal
	gate     *gatedFS
	outcomes chan error // of both groups
}

const appendsInGroup = minFlusherAppends + 10

// newGatedJournal returns when the first group waits for its sync. The second is not collected yet.
func newGatedJournal(t *testing.T, dir string) *gatedJournal {
	t.Helper()
	r := &gatedJournal{outcomes: make(chan error, 2*appendsInGroup), gate: &gatedFS{FS: Dir(dir), arrivals: make(chan chan<- error), letAll: make(chan struct{})}}
	open := make(chan struct{})
	close(open)
	shut := r.gate.letAll
	r.gate.letAll = open
	j, err := Open(dir, Options{FS: r.gate, SegmentSize: 1 << 20, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	r.Journal = j
	if err := r.appendOne(t, "known"); err != nil {
		t.Fatal(err)
	}
	r.gate.letAll = shut
	alone := make(chan error, 1)
	go func() { alone <- r.appendOne(t, "alone") }()
	first := <-r.gate.arrivals // the writer itself syncs it: later appends make one group
	r.startAppends(t, "first")
	waitUntil(t, func() bool {
		j.queue.mu.Lock()
		defer j.queue.mu.Unlock()
		return len(j.queue.pending) == appendsInGroup
	})
	first <- nil
	if err := <-alone; err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *gatedJournal) appendOne(t *testing.T, data string) error {
	_, err := r.Append(t.Context(), "a-1", eventstore.Any, []eventstore.ProposedEvent{{ID: uuid.New(), Type: "t", Data: []byte(data)}})
	return err
}

func (r *gatedJournal) startAppends(t *testing.T, data string) {
	for range appendsInGroup {
		go func() { r.outcomes <- r.appendOne(t, data) }()
	}
}

// waitUntilCollected waits until the open group holds n appends.
func (r *gatedJournal) waitUntilCollected(t *testing.T, n int) {
	t.Helper()
	waitUntil(t, func() bool {
		r.writer.mu.Lock()
		defer r.writer.mu.Unlock()
		return len(r.writer.openGroup.replies) == n
	})
}

func (r *gatedJournal) countUnknown(n int) (unknown int) {
	for range n {
		if err := <-r.outcomes; errors.Is(err, eventstore.ErrUnknown) {
			unknown++
		}
	}
	return unknown
}

func (r *gatedJournal) countContents(t *testing.T) map[string]int {
	t.Helper()
	held := map[string]int{}
	next := eventstore.Revision(0)
	for e, err := range r.ReadStream(t.Context(), "a-1", 0, eventstore.Forward) {
		if err != nil || e.Revision != next {
			t.Fatalf("revision %d: got %d, %v", next, e.Revision, err)
		}
		held[string(e.Data)]++
		next++
	}
	return held
}

func waitUntil(t *testing.T, reached func() bool) {
	t.Helper()
	deadlinetest.WaitUntil(t, deadlinetest.DefaultLimit, "what the test waits for", reached)
}

// The flusher writes the second group while the first is on disk but not published, since the writer is held up. The second
// must be published after the first, and only if its write succeeds.
func TestGroupIsPublishedAfterTheGroupBeforeIt(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]error{"it succeeds": nil, "it fails": errors.New("the disk is broken")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := newGatedJournal(t, dir)
			first := <-r.gate.arrivals
			r.startAppends(t, "second")
			r.waitUntilCollected(t, appendsInGroup)
			end := r.LastCheckpoint()

			r.index.mu.RLock() // so that the writer cannot show the first group
			first <- nil
			second := <-r.gate.arrivals
			if got := len(r.outcomes); got != 0 || r.LastCheckpoint() != end {
				t.Errorf("%d callers were answered and the log ends at %d before the first group was shown", got, r.LastCheckpoint().Position)
			}
			second <- outcome
			close(r.gate.letAll)
			r.index.mu.RUnlock()

			want := map[string]int{"known": 1, "alone": 1, "first": appendsInGroup, "second": appendsInGroup}
			failures := 0
			if outcome != nil {
				failures = appendsInGroup
				delete(want, "second")
			}
			if got := r.countUnknown(2 * appendsInGroup); got != failures {
				t.Errorf("%d appends of unknown outcome, want %d", got, failures)
			}
			if got := r.countContents(t); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("readers see %v, want %v", got, want)
			}
		})
	}
}

// An append of unknown outcome may be on disk: a repeat must not get ErrUnavailable, which means that nothing was added.
func TestAppendOfAFailedGroupStaysUnknownHoweverOftenItIsSent(t *testing.T) {
	t.Parallel()
	r := newGatedJournal(t, t.TempDir())
	first := <-r.gate.arrivals
	twin := []eventstore.ProposedEvent{{ID: uuid.New(), Type: "t", Data: []byte("twin")}}
	send := func() error {
		_, err := r.Append(t.Context(), "a-1", eventstore.Any, twin)
		return err
	}
	sent, again := make(chan error, 1), make(chan error, 1)
	go func() { sent <- send() }()
	r.waitUntilCollected(t, 1)
	first <- nil
	second := <-r.gate.arrivals // the group that holds the first call with twin
	go func() { again <- send() }()
	r.waitUntilCollected(t, 1)
	second <- errors.New("the disk is broken")
	for what, err := range map[string]error{"the first sending": <-sent, "one behind it": <-again, "one after the failure": send()} {
		if !errors.Is(err, eventstore.ErrUnknown) || errors.Is(err, eventstore.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnknown", what, err)
		}
	}
	if err := r.appendOne(t, "another"); !errors.Is(err, eventstore.ErrUnavailable) {
		t.Errorf("another append: %v, want ErrUnavailable", err)
	}
	close(r.gate.letAll)
}

func TestLaterIDsDoNotPushOutFirstIDs(t *testing.T) {
	t.Parallel()
	r, id := newRecentAppends(), uuid.New()
	r.addAppend(streamKey{}, 0, 1, []uuid.UUID{id})
	for range 3 {
		ids := make([]uuid.UUID, maxRecentIDs/2)
		for i := range ids {
			ids[i] = uuid.New()
		}
		r.addAppend(streamKey{}, 1, 2, ids)
	}
	m, ok := r.findByFirstID(id)
	if same, known := r.hasSameIDs(m, []uuid.UUID{id}); !ok || !same || !known {
		t.Errorf("remembered %v, the same %v, certainly %v; want all three", ok, same, known)
	}
}
