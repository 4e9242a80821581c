package journal_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
)

// newScannedJournal is a journal of several segments with events of plain and "$" streams, and their positions in order.
func newScannedJournal(t *testing.T) (*journal.Journal, []eventstore.Position) {
	t.Helper()
	j, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: 8 << 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	var want []eventstore.Position
	for i := range 100 {
		stream := []string{"a-1", "$$a-1", "b-1"}[i%3]
		e := eventstore.ProposedEvent{ID: uuid.New(), Type: "t", Data: []byte(strings.Repeat("x", 10*i))}
		c, err := j.Append(t.Context(), stream, eventstore.Any, []eventstore.ProposedEvent{e})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, c.Position)
	}
	return j, want
}

func collectPositions(t *testing.T, events iter.Seq2[eventstore.RecordedEvent, error]) []eventstore.Position {
	t.Helper()
	var got []eventstore.Position
	for e, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Position)
	}
	return got
}

func TestScanGoesThroughTheWholeLogBothWays(t *testing.T) {
	t.Parallel()
	j, all := newScannedJournal(t)
	back := slices.Clone(all)
	slices.Reverse(back)
	for _, c := range []struct {
		name string
		from eventstore.Position
		dir  eventstore.Direction
		want []eventstore.Position
	}{
		{"all", 0, eventstore.Forward, all},
		{"from an event on", all[40], eventstore.Forward, all[40:]},
		{"from the last", all[99], eventstore.Forward, all[99:]},
		{"beyond the end", all[99] + 1, eventstore.Forward, nil},
		{"all, backward", math.MaxUint64, eventstore.Backward, back},
		{"before an event", all[40], eventstore.Backward, back[60:]},
		{"before the first", all[0], eventstore.Backward, nil},
		{"before everything", 0, eventstore.Backward, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := collectPositions(t, j.Scan(t.Context(), c.from, c.dir)); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestScanRefusesAPositionWhereNoEventBegins(t *testing.T) {
	t.Parallel()
	j, all := newScannedJournal(t)
	for _, dir := range []eventstore.Direction{eventstore.Forward, eventstore.Backward} {
		var err error
		for _, err = range j.Scan(t.Context(), all[50]+8, dir) {
			break
		}
		var diverged *eventstore.DivergedError
		if !errors.As(err, &diverged) {
			t.Errorf("backward %v: got %v, want a DivergedError", dir, err)
		}
	}
}

func TestWaitReturnsWhenSomethingNewIsDurable(t *testing.T) {
	t.Parallel()
	j, all := newScannedJournal(t)
	if got, err := j.Wait(t.Context(), all[3]); err != nil || got != all[99] {
		t.Fatalf("got %d, %v, want %d", got, err, all[99])
	}
	type result struct {
		at  eventstore.Position
		err error
	}
	woken := make(chan result, 1)
	go func() {
		at, err := j.Wait(t.Context(), all[99])
		woken <- result{at, err}
	}()
	c, err := j.Append(t.Context(), "$x", eventstore.Any, []eventstore.ProposedEvent{{ID: uuid.New(), Type: "t"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := <-woken; got.err != nil || got.at != c.Position {
		t.Errorf("got %d, %v, want %d", got.at, got.err, c.Position)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("enough"))
	if _, err := j.Wait(ctx, c.Position); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
}
