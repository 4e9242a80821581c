package journal_test

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
)

// recordedFS is a disk in memory that keeps its state after every write, rename and removal. A write adds two states: half
// written and complete.
type recordedFS struct {
	mu     sync.Mutex
	files  map[string]*recordedFile
	states []diskState
	acked  eventstore.Position
}

// recordedFile is a file with any name. Each write replaces its bytes, so that states can share them.
type recordedFile struct{ data []byte }

// diskState is what the disk held at one moment. acked is the position of an event that was acknowledged before.
type diskState struct {
	names  map[string]*recordedFile
	data   map[*recordedFile][]byte
	isHalf bool
	acked  eventstore.Position
}

// record adds the present state. The caller holds mu.
func (r *recordedFS) record(isHalf bool) {
	s := diskState{maps.Clone(r.files), map[*recordedFile][]byte{}, isHalf, r.acked}
	for _, f := range r.files {
		s.data[f] = f.data
	}
	r.states = append(r.states, s)
}

// killInWrite goes back to the newest state with half a write of a segment, as a killed process leaves it.
func (r *recordedFS) killInWrite() {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.states) - 1
	for !r.states[n].isHalf {
		n--
	}
	r.states = r.states[:n+1]
	r.files, r.acked = maps.Clone(r.states[n].names), r.states[n].acked
	for _, f := range r.files {
		f.data = r.states[n].data[f]
	}
}

func (r *recordedFS) Open(name string, create bool) (journal.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.files[name]
	if create {
		f = &recordedFile{}
		r.files[name] = f
	} else if f == nil {
		return nil, fs.ErrNotExist
	}
	return recordedHandle{r, f, strings.HasSuffix(name, ".log")}, nil
}

func (r *recordedFS) Names() ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.files)), nil
}

func (r *recordedFS) Rename(from, to string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files[to] = r.files[from]
	delete(r.files, from)
	r.record(false)
	return nil
}

func (r *recordedFS) Remove(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.files, name)
	r.record(false)
	return nil
}

func (*recordedFS) SyncDir() error                            { return nil }
func (*recordedFS) IsSame(string, journal.File) (bool, error) { return true, nil }

type recordedHandle struct {
	fs        *recordedFS
	file      *recordedFile
	isSegment bool // since it was opened
}

func (h recordedHandle) ReadAt(b []byte, at int64) (int, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	return readBytesAt(h.file.data, b, at)
}

func readBytesAt(data, b []byte, at int64) (int, error) {
	n := copy(b, data[min(at, int64(len(data))):])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (h recordedHandle) WriteAt(b []byte, at int64) (int, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	for _, part := range [][]byte{b[:len(b)/2], b} {
		data := append(slices.Clone(h.file.data), make([]byte, max(0, int(at)+len(b)-len(h.file.data)))...)
		copy(data[at:], part)
		h.file.data = data
		h.fs.record(h.isSegment && len(part) < len(b))
	}
	return len(b), nil
}

func (recordedHandle) Sync() error         { return nil }
func (recordedHandle) Reserve(int64) error { return nil }
func (recordedHandle) Close() error        { return nil }

// timelineFS shows a reader the states of a disk, one after the other: each operation moves on to a later one.
type timelineFS struct {
	states []diskState
	at     int
	rng    *rand.Rand
}

func (l *timelineFS) next() diskState {
	l.at = min(len(l.states)-1, l.at+l.rng.IntN(4))
	return l.states[l.at]
}

func (l *timelineFS) Names() ([]string, error) {
	return slices.Collect(maps.Keys(l.next().names)), nil
}

func (l *timelineFS) Open(name string, _ bool) (journal.File, error) {
	f := l.next().names[name]
	if f == nil {
		return nil, fs.ErrNotExist
	}
	return &timelineHandle{journal.File(nil), l, f, l.states[l.at].data[f]}, nil
}

func (*timelineFS) Rename(string, string) error               { return fs.ErrPermission }
func (*timelineFS) Remove(string) error                       { return fs.ErrPermission }
func (*timelineFS) SyncDir() error                            { return fs.ErrPermission }
func (*timelineFS) IsSame(string, journal.File) (bool, error) { return false, fs.ErrPermission }

// timelineHandle reads an open file, even after it was removed. Writing to it panics.
type timelineHandle struct {
	journal.File
	timeline *timelineFS
	file     *recordedFile
	data     []byte
}

func (h *timelineHandle) ReadAt(b []byte, at int64) (int, error) {
	if data, ok := h.timeline.next().data[h.file]; ok {
		h.data = data
	}
	return readBytesAt(h.data, b, at)
}

func (*timelineHandle) Close() error { return nil }

// newTimeline records a log through several openings, closings and kills. It returns the ids of the last events of all
// appends that the log holds at the end, by position.
func newTimeline(t *testing.T) ([]diskState, map[eventstore.Position]uuid.UUID) {
	t.Helper()
	r := &recordedFS{files: map[string]*recordedFile{}}
	open := func() *journal.Journal {
		return openJournal(t, t.TempDir(), journal.Options{SegmentSize: 4 << 10, FS: r, Logger: discardLogger()})
	}
	for round := range 12 {
		j := open()
		for n := range 5 {
			batch := append(newBatch(strings.Repeat("x", 10+n*170)), newBatch("second")...)
			result, err := j.Append(t.Context(), fmt.Sprintf("s-%d", n%3), eventstore.Any, batch)
			if err != nil {
				t.Fatal(err)
			}
			r.mu.Lock()
			r.acked = result.Position
			r.mu.Unlock()
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if round%3 == 1 {
			r.killInWrite()
		}
	}
	written, j := map[eventstore.Position]uuid.UUID{}, open()
	for e, err := range j.Scan(t.Context(), 0, eventstore.Forward) {
		if err != nil {
			t.Fatal(err)
		}
		written[e.Position] = e.ID
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return r.states, written
}

// However the writer's work and the reads interleave, a walk finds no damage, everything acknowledged before it, and nothing
// that the log does not hold at the end.
func TestWalkBesideAWriterIsRightAtEveryMoment(t *testing.T) {
	t.Parallel()
	states, written := newTimeline(t)
	rng := rand.New(rand.NewPCG(3, 5))
	for n := range 40 * len(states) / maxStep() {
		start := rng.IntN(len(states))
		if states[start].names[fmt.Sprintf("%016x.log", 0)] == nil {
			continue // the first segment is not made yet
		}
		last := eventstore.Position(0)
		_, err := journal.WalkLog(t.Context(), &timelineFS{states, start, rng}, journal.WalkVisitor{
			Segment: func(journal.WalkedSegment) error { return nil },
			Append: func(a journal.WalkedAppend) error {
				if last = a.Last.Position; written[last] != a.Last.Event {
					return fmt.Errorf("event %s at %d is not on the log", a.Last.Event, last)
				}
				return nil
			},
			Sealed: func(journal.WalkedSegment, []byte) error { return nil },
		})
		if err != nil || last < states[start].acked {
			t.Fatalf("walk %d from state %d: %v; it ends with the event at %d, want that at %d", n, start, err, last, states[start].acked)
		}
	}
}
