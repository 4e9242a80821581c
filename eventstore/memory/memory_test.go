package memory_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/memory"
	"lieudit/eventstore/storetest"
)

func TestTheLogKeepsTheContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) eventstore.Store { return memory.New(time.Now) }, storetest.Options{
		Reopen: func(_ *testing.T, s eventstore.Store) eventstore.Store { return s.(*memory.Log).Reopen() },
		ReopenWithoutIDs: func(_ *testing.T, s eventstore.Store) eventstore.Store {
			again := s.(*memory.Log).Reopen()
			again.ForgetIDs()
			return again
		},
	})
}

// appendNamed appends one event of a type to a stream.
func appendNamed(t *testing.T, l *memory.Log, stream, eventType string) eventstore.AppendResult {
	t.Helper()
	made, err := l.Append(t.Context(), stream, eventstore.Any, []eventstore.ProposedEvent{{ID: uuid.New(), Type: eventType}})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestARestoredLogIsAsItWasAndGoesOnOtherwise(t *testing.T) {
	t.Parallel()
	l := memory.New(time.Now)
	first := appendNamed(t, l, "a-1", "first")
	lost := appendNamed(t, l, "a-1", "lost")
	appendNamed(t, l, "a-1", "lost too")
	appendNamed(t, l, "b-1", "lost")
	l.Restore(first.Position)
	if got := l.LastPosition(); got != first.Position {
		t.Errorf("the log ends at %d, want %d", got, first.Position)
	}
	if other := appendNamed(t, l, "a-1", "other"); other != lost {
		t.Errorf("the next event is at %+v, want the place of the lost one, %+v", other, lost)
	}
	var types []string
	for e, err := range l.ReadStream(t.Context(), "a-1", 0, eventstore.Forward) {
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, e.Type)
	}
	if len(types) != 2 || types[1] != "other" {
		t.Errorf("the stream holds %v", types)
	}
	if made := appendNamed(t, l, "b-1", "other"); made.Revision != 0 {
		t.Errorf("a stream that was lost whole begins at %d", made.Revision)
	}
}

func TestAReaderFindsThatItsPlaceWasRestoredAway(t *testing.T) {
	t.Parallel()
	for name, readsLost := range map[string]bool{"beyond the copy": true, "within the copy": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := memory.New(time.Now)
			first := appendNamed(t, l, "a-1", "first")
			if readsLost {
				appendNamed(t, l, "a-1", "lost")
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			seen := 0
			var end error
			for s, err := range l.Subscribe(ctx, eventstore.Checkpoint{}, nil) {
				if end = err; err != nil {
					break
				}
				switch {
				case s.Kind == eventstore.EventAppeared:
					seen++
				case s.Kind == eventstore.CaughtUp && seen == 3 || !readsLost && seen == 2:
					stop()
				case s.Kind == eventstore.CaughtUp:
					l.Restore(first.Position)
					appendNamed(t, l, "a-1", "other")
				}
			}
			_, hasDiverged := errors.AsType[*eventstore.DivergedError](end)
			if hasDiverged != readsLost {
				t.Errorf("the subscription ended with %v after %d events", end, seen)
			}
		})
	}
}

func TestScanYieldsTheLogBothWays(t *testing.T) {
	t.Parallel()
	l := memory.New(time.Now)
	var places []eventstore.Position
	for _, stream := range []string{"a-1", "$system", "b-1"} {
		places = append(places, appendNamed(t, l, stream, "x").Position)
	}
	for name, c := range map[string]struct {
		from eventstore.Position
		dir  eventstore.Direction
		want []eventstore.Position
	}{
		"from the beginning":         {0, eventstore.Forward, places},
		"from an event":              {places[1], eventstore.Forward, places[1:]},
		"from behind the last":       {places[2] + 1, eventstore.Forward, nil},
		"back from the end":          {math.MaxUint64, eventstore.Backward, []eventstore.Position{places[2], places[1], places[0]}},
		"back from before an event":  {places[1], eventstore.Backward, places[:1]},
		"back from before the first": {places[0], eventstore.Backward, nil},
	} {
		var got []eventstore.Position
		for e, err := range l.Scan(t.Context(), c.from, c.dir) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Position)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestScanRefusesAPositionAtWhichNoEventBegins(t *testing.T) {
	t.Parallel()
	l := memory.New(time.Now)
	inside := appendNamed(t, l, "a-1", "x").Position + 1
	appendNamed(t, l, "a-1", "x")
	for _, dir := range []eventstore.Direction{eventstore.Forward, eventstore.Backward} {
		for _, err := range l.Scan(t.Context(), inside, dir) {
			if _, hasDiverged := errors.AsType[*eventstore.DivergedError](err); !hasDiverged {
				t.Errorf("direction %v: got %v", dir, err)
			}
		}
	}
}

func TestWaitEndsWithTheNextEventOrItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(time.Now)
		waited := make(chan eventstore.Position)
		go func() {
			last, err := l.Wait(t.Context(), 0)
			if err != nil {
				t.Error(err)
			}
			waited <- last
		}()
		synctest.Wait()
		made := appendNamed(t, l, "a-1", "x")
		if last := <-waited; last != made.Position {
			t.Errorf("got position %d, want %d", last, made.Position)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Wait(short, made.Position); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
	})
}
