package instance

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/memory"
	"lieudit/projections/usage"
)

func TestExhaustiveReadModelsHandleEveryEventOfTheirCategories(t *testing.T) {
	t.Parallel()
	exhaustive := 0
	for _, m := range append(coreReadModels(), usage.Model) {
		for _, missing := range m.Unhandled() {
			if m.IsExhaustive || strings.HasPrefix(missing, "sync.") { // who handles a commit handles what it makes real
				t.Errorf("%s has no handler for %s, and the catalog does not say that it changes nothing", m.Name, missing)
			}
		}
		if m.IsExhaustive {
			exhaustive++
		}
	}
	if exhaustive != 2 {
		t.Errorf("%d exhaustive read models, want those of accounts and of the audit trail", exhaustive)
	}
}

// fakeAwaiter is a read model that has passed a position, and never gets further.
type fakeAwaiter eventstore.Position

func (f fakeAwaiter) AwaitPosition(ctx context.Context, at eventstore.Position, _ ...string) error {
	if at <= eventstore.Position(f) {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestTheEndOfAStreamIsWaitedForAndNoLongerThanThat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := memory.New(time.Now)
		var last eventstore.Position
		for _, stream := range []string{"locations-a", "locations-a", "locations-b"} {
			done, err := log.Append(t.Context(), stream, eventstore.Any, []eventstore.ProposedEvent{{ID: uuid.New(), Type: "x", Data: []byte("{}"), Metadata: []byte("{}")}})
			if err != nil {
				t.Fatal(err)
			}
			if stream == "locations-a" {
				last = done.Position
			}
		}
		for _, c := range []struct {
			stream string
			passed eventstore.Position
			want   error
			took   time.Duration
		}{
			{"locations-a", last, nil, 0},
			{"locations-a", last - 1, context.DeadlineExceeded, maxOwnWait},
			{"locations-none", 0, nil, 0},
		} {
			began := time.Now()
			at, err := awaitEnd(t.Context(), log, c.stream, fakeAwaiter(c.passed), "places")
			if !errors.Is(err, c.want) || time.Since(began) != c.took {
				t.Errorf("%s: %v after %v, want %v after %v", c.stream, err, time.Since(began), c.want, c.took)
			}
			if c.stream == "locations-a" && at != last {
				t.Errorf("waited for %d, want %d", at, last)
			}
		}
	})
}
