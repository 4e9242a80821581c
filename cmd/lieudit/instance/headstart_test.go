package instance

import (
	"context"
	"iter"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/eventstore"
	"lieudit/projections/keyring"
)

// slowLog is a log whose end a read reaches after a while, and never in time for a poll that begins too soon.
type slowLog struct {
	eventstore.Store
	readableAt time.Time
}

func (l *slowLog) ReadAll(ctx context.Context, _ eventstore.Checkpoint, _ eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		if time.Now().Before(l.readableAt) {
			<-ctx.Done()
			yield(eventstore.Signal{}, ctx.Err())
			return
		}
		yield(eventstore.Signal{Kind: eventstore.CaughtUp}, nil)
	}
}

func (l *slowLog) Subscribe(ctx context.Context, _ eventstore.Checkpoint, _ eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		<-ctx.Done()
		yield(eventstore.Signal{}, ctx.Err())
	}
}

func TestReadModelsWaitForTheKeyRingForALimitedTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		readable         time.Duration // after the start
		earliest, latest time.Duration // of the read models
	}{
		{"a log that is read at once", 0, 0, 0},
		{"a log that takes a while", 5 * time.Second, 5 * time.Second, 6 * time.Second},
		{"a log that does not answer", time.Hour, keyRingHeadStart, keyRingHeadStart},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				i := &Instance{keyRing: keyring.New(&slowLog{readableAt: began.Add(c.readable)}, time.Now, "", slog.New(slog.DiscardHandler))}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					i.keyRing.Run(ctx)
				}()
				i.awaitKeyRing(ctx)
				if waited := time.Since(began); waited < c.earliest || waited > c.latest {
					t.Errorf("the read models waited for %v, want %v to %v", waited, c.earliest, c.latest)
				}
				cancel()
				<-ended
			})
		})
	}
}
