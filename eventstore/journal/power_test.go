package journal_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
)

func discardLogger() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func isLongRun() bool { return os.Getenv("LIEUDIT_TEST_LONG") != "" }

// A thousand power cuts on machines that suffer several each, at any operation of opening, writing, starting a segment and
// indexing.
func TestPowerLossLosesNothingAcknowledgedAndRevivesNothing(t *testing.T) {
	t.Parallel()
	machines, starts := 125, 8
	if isLongRun() {
		machines *= 20
	}
	for n := range machines {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			h := newHistory()
			m := newPowerLossFS(uint64(n))
			dir := t.TempDir()
			for start := range starts {
				m.opsLeft = m.rng.IntN(400)
				if err := h.openCheckAndWrite(t, dir, m, uint64(n*starts+start)); err != nil {
					t.Fatalf("machine %d, start %d: %v", n, start, err)
				}
				m = m.restart()
			}
			if err := h.openCheckAndWrite(t, dir, m, 0); err != nil {
				t.Fatalf("machine %d, at the end: %v", n, err)
			}
		})
	}
}

// history is everything ever sent to a log and what is known about it.
type history struct {
	mu      sync.Mutex
	sent    map[uuid.UUID]sentEvent
	durable map[uuid.UUID]eventstore.Position // events seen or acknowledged: they stay
	missing map[uuid.UUID]bool                // events missing once: they never come back
}

type sentEvent struct {
	stream string
	data   []byte
	index  int // in its append
	of     int
}

func newHistory() *history {
	return &history{sent: map[uuid.UUID]sentEvent{}, durable: map[uuid.UUID]eventstore.Position{}, missing: map[uuid.UUID]bool{}}
}

// openCheckAndWrite opens the log, checks it, and writes to it until the power goes or it has written enough.
func (h *history) openCheckAndWrite(t *testing.T, dir string, m *powerLossFS, seed uint64) error {
	j, err := journal.Open(dir, journal.Options{SegmentSize: 16 << 10, FS: m, Logger: discardLogger()})
	if err != nil {
		if errors.Is(err, errPowerOff) {
			return nil
		}
		return err
	}
	defer func() {
		if err := j.Close(); err != nil && !errors.Is(err, errPowerOff) {
			t.Error(err)
		}
	}()
	if err := h.checkLog(t.Context(), j); err != nil {
		if errors.Is(err, errPowerOff) {
			return nil
		}
		return err
	}
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() { h.write(t.Context(), j, rand.New(rand.NewPCG(seed, uint64(w)))) })
	}
	writers.Wait()
	return nil
}

func (h *history) write(ctx context.Context, j *journal.Journal, rng *rand.Rand) {
	for range 30 {
		stream := fmt.Sprintf("s-%d", rng.IntN(5))
		batch := h.newBatch(rng, stream)
		got, err := j.Append(ctx, stream, eventstore.Any, batch)
		switch {
		case err == nil:
			h.acknowledge(batch, got.Position)
		case !errors.Is(err, eventstore.ErrUnknown):
			h.markMissing(batch)
			return
		default:
			return
		}
	}
}

func (h *history) newBatch(rng *rand.Rand, stream string) []eventstore.ProposedEvent {
	batch := make([]eventstore.ProposedEvent, 1+rng.IntN(4))
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range batch {
		data := bytes.Repeat([]byte{byte('a' + rng.IntN(26))}, rng.IntN(1+rng.IntN(3000)))
		batch[i] = eventstore.ProposedEvent{ID: uuid.New(), Type: "t", Data: data}
		h.sent[batch[i].ID] = sentEvent{stream, data, i, len(batch)}
	}
	return batch
}

func (h *history) acknowledge(batch []eventstore.ProposedEvent, last eventstore.Position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, e := range batch {
		h.durable[e.ID] = 0
		if i == len(batch)-1 {
			h.durable[e.ID] = last
		}
	}
}

func (h *history) markMissing(batch []eventstore.ProposedEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range batch {
		h.missing[e.ID] = true
	}
}

// checkLog reads the whole log: every acknowledged event is there once, at its position, in a whole append, and nothing else
// but whole appends that were sent and never missing before.
func (h *history) checkLog(ctx context.Context, j *journal.Journal) error {
	next, open, seen := map[string]eventstore.Revision{}, 0, map[uuid.UUID]bool{}
	for s, err := range j.ReadAll(ctx, eventstore.Checkpoint{}, nil) {
		if err != nil {
			return fmt.Errorf("read all: %w", err)
		}
		if s.Kind != eventstore.EventAppeared {
			continue
		}
		e := s.Event
		if err := h.checkEvent(e); err != nil {
			return err
		}
		switch was := h.sent[e.ID]; {
		case seen[e.ID]:
			return fmt.Errorf("event %s at %d is there twice", e.ID, e.Position)
		case e.Revision != next[e.Stream]:
			return fmt.Errorf("event %s@%d where revision %d was due", e.Stream, e.Revision, next[e.Stream])
		case was.index != open:
			return fmt.Errorf("event %d of an append where %d was due", was.index, open)
		}
		open = (open + 1) % h.sent[e.ID].of
		next[e.Stream]++
		seen[e.ID] = true
		h.durable[e.ID] = e.Position
	}
	if open != 0 {
		return errors.New("the log ends inside an append")
	}
	for id := range h.durable {
		if !seen[id] {
			return fmt.Errorf("event %s of %s is lost", id, h.sent[id].stream)
		}
	}
	for id := range h.sent {
		if !seen[id] {
			h.missing[id] = true
		}
	}
	return h.checkStreams(ctx, j, next)
}

// checkEvent checks that an event of the log was sent, was never missing, and keeps its position.
func (h *history) checkEvent(e eventstore.RecordedEvent) error {
	was, ok := h.sent[e.ID]
	switch {
	case !ok || was.stream != e.Stream || !bytes.Equal(was.data, e.Data):
		return fmt.Errorf("event %s@%d at %d is not what was sent", e.Stream, e.Revision, e.Position)
	case h.missing[e.ID]:
		return fmt.Errorf("event %s at %d was missing before", e.ID, e.Position)
	case h.durable[e.ID] != 0 && h.durable[e.ID] != e.Position:
		return fmt.Errorf("event %s moved from %d to %d", e.ID, h.durable[e.ID], e.Position)
	}
	return nil
}

// checkStreams reads every stream by the index, both ways.
func (h *history) checkStreams(ctx context.Context, j *journal.Journal, length map[string]eventstore.Revision) error {
	for stream, n := range length {
		due := eventstore.Revision(0)
		for e, err := range j.ReadStream(ctx, stream, 0, eventstore.Forward) {
			if err != nil || e.Revision != due || h.durable[e.ID] != e.Position {
				return fmt.Errorf("%s forward, revision %d: got %d, %w", stream, due, e.Revision, err)
			}
			due++
		}
		if due != n {
			return fmt.Errorf("%s forward: %d events, want %d", stream, due, n)
		}
		for e, err := range j.ReadStream(ctx, stream, eventstore.End, eventstore.Backward) {
			if due--; err != nil || e.Revision != due || h.durable[e.ID] != e.Position {
				return fmt.Errorf("%s backward, revision %d: got %d, %w", stream, due, e.Revision, err)
			}
		}
		if due != 0 {
			return fmt.Errorf("%s backward: %d events missing", stream, due)
		}
	}
	return nil
}

func TestKilledProcessLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	dir, rng := t.TempDir(), rand.New(rand.NewPCG(1, 1))
	acknowledged, kept := map[string]string{}, 0
	for kill := range 50 {
		acks := killAfter(t, dir, 1+rng.IntN(40))
		for id, pos := range acks {
			acknowledged[id] = pos
		}
		n, err := checkSurvived(t, dir, acknowledged)
		if err != nil {
			t.Fatalf("after kill %d: %v", kill, err)
		}
		if n < kept {
			t.Fatalf("after kill %d the log holds %d events, it had held %d", kill, n, kept)
		}
		kept = n
	}
}

// killAfter runs the child until it has acknowledged n appends and kills it. It returns what it acknowledged.
func killAfter(t *testing.T, dir string, n int) map[string]string {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), envWriteIn+"="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	acks, output := map[string]string{}, ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		output += lines.Text() + "\n"
		if f := strings.Fields(lines.Text()); len(f) == 3 && f[0] == "ack" {
			acks[f[2]] = f[1]
		}
		if len(acks) == n {
			if err := child.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	_ = child.Wait() // it was killed: an error is expected
	if len(acks) < n {
		t.Fatalf("the child wrote %d appends, want %d: %s", len(acks), n, output)
	}
	return acks
}

// checkSurvived opens the log and counts its events. All acknowledged are there and every append is whole.
func checkSurvived(t *testing.T, dir string, acknowledged map[string]string) (events int, err error) {
	t.Helper()
	j, err := journal.Open(dir, journal.Options{SegmentSize: 64 << 10, Logger: discardLogger()})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	found, due, of := map[string]string{}, 0, 1
	for s, err := range j.ReadAll(t.Context(), eventstore.Checkpoint{}, nil) {
		if err != nil {
			return events, err
		}
		if s.Kind != eventstore.EventAppeared {
			continue
		}
		var i int
		if _, err := fmt.Sscanf(string(s.Event.Data), "%d of %d", &i, &of); err != nil || i != due {
			return events, fmt.Errorf("event %d of an append at %d, want %d: %w", i, s.Event.Position, due, err)
		}
		due = (i + 1) % of
		events++
		found[s.Event.ID.String()] = fmt.Sprint(s.Event.Position)
	}
	if due != 0 {
		return events, errors.New("the log ends inside an append")
	}
	for id, pos := range acknowledged {
		if found[id] != pos {
			return events, fmt.Errorf("event %s was acknowledged at %s and is at %q", id, pos, found[id])
		}
	}
	return events, nil
}
