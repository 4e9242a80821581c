package journal_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
)

// Many writers append to the same 200 streams, each with the revision that it read last, while a subscriber follows. Every
// success adds one event at its revision, every conflict names a revision that the stream had, and the subscriber misses
// nothing.
func TestWritersOnTwoHundredStreamsConflictAndLoseNothing(t *testing.T) {
	t.Parallel()
	const streams, writers, rounds = 200, 32, 60
	j := openJournal(t, t.TempDir(), journal.Options{SegmentSize: 128 << 10, Logger: discardLogger()})
	var won [streams]atomic.Int64
	var conflicts atomic.Int64
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(w)))
			for range rounds {
				n := rng.IntN(streams)
				if rng.IntN(2) == 0 {
					n = rng.IntN(3) // some streams get many more appends than others
				}
				conflicts.Add(appendUntilWon(t, j, fmt.Sprintf("s-%d", n)))
				won[n].Add(1)
			}
		})
	}
	followed := make(chan map[string]eventstore.Revision)
	go func() { followed <- countByStream(t, j, writers*rounds) }()
	all.Wait()
	got := <-followed
	for n := range won {
		if want := eventstore.Revision(won[n].Load()); got[fmt.Sprintf("s-%d", n)] != want {
			t.Errorf("stream s-%d: the subscriber saw %d events, %d were appended", n, got[fmt.Sprintf("s-%d", n)], want)
		}
	}
	if conflicts.Load() == 0 {
		t.Error("nobody ever lost: the test shows nothing")
	}
	if n, err := j.Verify(t.Context()); err != nil || n != writers*rounds {
		t.Errorf("verify counts %d events, %v; want %d", n, err, writers*rounds)
	}
}

// appendUntilWon appends one event with an expected revision until it succeeds, and returns how often it lost.
func appendUntilWon(t *testing.T, j *journal.Journal, stream string) (lost int64) {
	batch, expected := newBatch("x"), eventstore.NoStream
	for {
		c, err := j.Append(t.Context(), stream, expected, batch)
		var conflict *eventstore.ConflictError
		switch {
		case err == nil && c.Revision != expected+1:
			t.Errorf("append expecting %d went to %d", expected, c.Revision)
			return lost
		case err == nil:
			return lost
		case !errors.As(err, &conflict) || conflict.Current <= expected:
			t.Errorf("append expecting %d: %v", expected, err)
			return lost
		}
		expected = conflict.Current
		lost++
	}
}

// countByStream subscribes until it has seen n events, in order, and counts them by stream.
func countByStream(t *testing.T, j *journal.Journal, n int) map[string]eventstore.Revision {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen, last := map[string]eventstore.Revision{}, eventstore.Position(0)
	for s, err := range j.Subscribe(ctx, eventstore.Checkpoint{}, nil) {
		if err != nil {
			t.Error(err)
			break
		}
		if s.Kind != eventstore.EventAppeared {
			continue
		}
		if e := s.Event; e.Position <= last || e.Revision != seen[e.Stream] {
			t.Errorf("%s@%d at %d after position %d and %d events of its stream", e.Stream, e.Revision, e.Position, last, seen[e.Stream])
		}
		last = s.Event.Position
		seen[s.Event.Stream]++
		if n--; n == 0 {
			break
		}
	}
	return seen
}
