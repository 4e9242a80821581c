package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
)

func discardLogger() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func isLongRun() bool { return os.Getenv("LIEUDIT_TEST_LONG") != "" }

// A thousand power cuts, spread over machines that each live through several, at any operation of opening,
// writing, rolling and indexing.
func TestPowerLossTakesNothingAcknowledgedAndLeavesNoGhost(t *testing.T) {
	t.Parallel()
	machines, lives := 125, 8
	if isLongRun() {
		machines *= 20
	}
	for n := range machines {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			h := newHistory()
			m := newPowerLossFS(uint64(n))
			dir := t.TempDir()
			for life := range lives {
				m.opsLeft = m.rng.IntN(400)
				if err := h.openCheckAndWrite(t, dir, m, uint64(n*lives+life)); err != nil {
					t.Fatalf("machine %d, life %d: %v", n, life, err)
				}
				m = m.restart()
			}
			if err := h.openCheckAndWrite(t, dir, m, 0); err != nil {
				t.Fatalf("machine %d, at the end: %v", n, err)
			}
		})
	}
}

// history is all that was ever sent to a log and what is known of it.
type history struct {
	mu      sync.Mutex
	sent    map[uuid.UUID]sentEvent
	durable map[uuid.UUID]eventstore.Position // events seen or acknowledged: they stay
	missing map[uuid.UUID]bool                // events missing once: they stay away
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

// checkLog reads the whole log: what was acknowledged is there, whole, once, in its place, and nothing else that is
// not a whole append that was sent and was never missing before.
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
		was, ok := h.sent[e.ID]
		switch {
		case !ok || was.stream != e.Stream || !bytes.Equal(was.data, e.Data):
			return fmt.Errorf("event %s@%d at %d is not what was sent", e.Stream, e.Revision, e.Position)
		case h.missing[e.ID] || seen[e.ID]:
			return fmt.Errorf("event %s at %d is a ghost", e.ID, e.Position)
		case e.Revision != next[e.Stream]:
			return fmt.Errorf("event %s@%d where revision %d was due", e.Stream, e.Revision, next[e.Stream])
		case was.index != open:
			return fmt.Errorf("event %d of an append where %d was due", was.index, open)
		case h.durable[e.ID] != 0 && h.durable[e.ID] != e.Position:
			return fmt.Errorf("event %s moved from %d to %d", e.ID, h.durable[e.ID], e.Position)
		}
		open = (open + 1) % was.of
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
