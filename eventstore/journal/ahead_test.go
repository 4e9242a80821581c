package journal

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/schemas/deadlinetest"
)

// turnstile is a folder whose syncs wait to be let through, each with the outcome it is given.
type turnstile struct {
	FS
	waiting chan chan<- error // one for every sync that has arrived
	open    chan struct{}     // closed when they need not wait any more
}

type turnstileFile struct {
	File
	t *turnstile
}

func (t *turnstile) Open(name string, create bool) (File, error) {
	f, err := t.FS.Open(name, create)
	return turnstileFile{f, t}, err
}

func (f turnstileFile) Sync() error {
	verdict := make(chan error, 1)
	select {
	case <-f.t.open:
		return f.File.Sync()
	case f.t.waiting <- verdict:
	}
	if err := <-verdict; err != nil {
		return err
	}
	return f.File.Sync()
}

// relay is a journal whose writer is about to flush a group of appends with a second one behind it.
type relay struct {
	*Journal
	turnstile *turnstile
	answers   chan error // of both groups
}

const groupOf = handOver + 10

// newRelay returns when the first group waits for its sync and the second has gathered.
func newRelay(t *testing.T, dir string) *relay {
	t.Helper()
	r := &relay{answers: make(chan error, 2*groupOf), turnstile: &turnstile{FS: Dir(dir), waiting: make(chan chan<- error), open: make(chan struct{})}}
	open := make(chan struct{})
	close(open)
	shut := r.turnstile.open
	r.turnstile.open = open
	j, err := Open(dir, Options{FS: r.turnstile, SegmentSize: 1 << 20, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	r.Journal = j
	if err := r.add(t, "known"); err != nil {
		t.Fatal(err)
	}
	r.turnstile.open = shut
	alone := make(chan error, 1)
	go func() { alone <- r.add(t, "alone") }()
	first := <-r.turnstile.waiting // the writer itself syncs it: what comes now makes one group
	r.start(t, "first")
	until(t, func() bool { j.queue.mu.Lock(); defer j.queue.mu.Unlock(); return len(j.queue.waiting) == groupOf })
	first <- nil
	if err := <-alone; err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *relay) add(t *testing.T, data string) error {
	_, err := r.Append(t.Context(), "a-1", eventstore.Any, []eventstore.Proposed{{ID: uuid.New(), Type: "t", Data: []byte(data)}})
	return err
}

func (r *relay) start(t *testing.T, data string) {
	for range groupOf {
		go func() { r.answers <- r.add(t, data) }()
	}
}

func (r *relay) answered(n int) (failed int) {
	for range n {
		if err := <-r.answers; errors.Is(err, eventstore.ErrUnknown) {
			failed++
		}
	}
	return failed
}

func (r *relay) contents(t *testing.T) map[string]int {
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

func until(t *testing.T, reached func() bool) {
	t.Helper()
	deadlinetest.Until(t, deadlinetest.Hang, "what the test waits for", reached)
}

// The flusher goes on to the second group while the first is on disk but nobody was told: the writer stands between.
func TestAGroupFlushedAheadOfOneThatIsStillLandingWaitsItsTurn(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]error{"it succeeds": nil, "it fails": errors.New("the disk is broken")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := newRelay(t, dir)
			first := <-r.turnstile.waiting
			r.start(t, "second")
			until(t, func() bool {
				r.writer.mu.Lock()
				defer r.writer.mu.Unlock()
				return len(r.writer.group.answers) == groupOf
			})
			end := r.End()

			r.index.mu.RLock() // so that the writer cannot show the first group
			first <- nil
			second := <-r.turnstile.waiting
			if got := len(r.answers); got != 0 || r.End() != end {
				t.Errorf("%d callers were answered and the log ends at %d before the first group was shown", got, r.End().Position)
			}
			second <- outcome
			close(r.turnstile.open)
			r.index.mu.RUnlock()

			want := map[string]int{"known": 1, "alone": 1, "first": groupOf, "second": groupOf}
			failures := 0
			if outcome != nil {
				failures = groupOf
				delete(want, "second")
			}
			if got := r.answered(2 * groupOf); got != failures {
				t.Errorf("%d appends of unknown outcome, want %d", got, failures)
			}
			if got := r.contents(t); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("readers see %v, want %v", got, want)
			}
		})
	}
}

// Sending an append of unknown outcome again must not find that it was certainly not made: it may be on the disk.
func TestAnAppendInAFailedGroupStaysUnknownHoweverOftenItIsSent(t *testing.T) {
	t.Parallel()
	r := newRelay(t, t.TempDir())
	first := <-r.turnstile.waiting
	twin := []eventstore.Proposed{{ID: uuid.New(), Type: "t", Data: []byte("twin")}}
	send := func() error {
		_, err := r.Append(t.Context(), "a-1", eventstore.Any, twin)
		return err
	}
	sent, again := make(chan error, 1), make(chan error, 1)
	go func() { sent <- send() }()
	until(t, func() bool { r.writer.mu.Lock(); defer r.writer.mu.Unlock(); return len(r.writer.group.answers) == 1 })
	first <- nil
	second := <-r.turnstile.waiting // with the twin's first sending in it
	go func() { again <- send() }()
	until(t, func() bool { r.writer.mu.Lock(); defer r.writer.mu.Unlock(); return len(r.writer.group.answers) == 1 })
	second <- errors.New("the disk is broken")
	for what, err := range map[string]error{"the first sending": <-sent, "one behind it": <-again, "one after the failure": send()} {
		if !errors.Is(err, eventstore.ErrUnknown) || errors.Is(err, eventstore.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnknown", what, err)
		}
	}
	if err := r.add(t, "another"); !errors.Is(err, eventstore.ErrUnavailable) {
		t.Errorf("another append: %v, want ErrUnavailable", err)
	}
	close(r.turnstile.open)
}

func TestAnAppendOfOneEventIsKnownHoweverManyLaterEventsCameSince(t *testing.T) {
	t.Parallel()
	r, id := newRecent(), uuid.New()
	r.add(streamKey{}, 0, 1, []uuid.UUID{id})
	for range 3 {
		ids := make([]uuid.UUID, recentIDs/2)
		for i := range ids {
			ids[i] = uuid.New()
		}
		r.add(streamKey{}, 1, 2, ids)
	}
	m, ok := r.find(id)
	if same, known := r.same(m, []uuid.UUID{id}); !ok || !same || !known {
		t.Errorf("remembered %v, the same %v, certainly %v; want all three", ok, same, known)
	}
}
