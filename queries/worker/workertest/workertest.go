// Package workertest tests that costly work takes turns at a worker, and ends without one.
package workertest

import (
	"context"
	"errors"
	"testing"

	"lieudit/queries/worker"
)

// turns is a pool that refuses a worker after some turns.
type turns struct {
	taken, most int
	onTurn      func() // may be nil
}

var errNoTurn = errors.New("no more turns")

// Exchange implements worker.Pool.
func (p *turns) Exchange(_ context.Context, _ string, _ int64, giveBack func()) (func(), error) {
	giveBack()
	if p.taken == p.most {
		return nil, errNoTurn
	}
	p.taken++
	if p.onTurn != nil {
		p.onTurn()
	}
	return func() {}, nil
}

// places is a pool that admits every search.
type places struct{}

// Exchange implements worker.Pool.
func (places) Exchange(_ context.Context, _ string, _ int64, giveBack func()) (func(), error) {
	giveBack()
	return func() {}, nil
}

// run does work in a request of a pool.
func (p *turns) run(ctx context.Context, work func(context.Context) error) error {
	ctx, task := worker.WithTask(ctx, worker.Pools{Workers: p, Searches: places{}}, "a")
	defer task.Release()
	return work(ctx)
}

// CheckTurns runs work several times; it must do the same each time. The work must succeed after at least least turns. It must fail with
// the pool's error if the first or the last of its turns is refused, and with that of its context if the client leaves during the first.
func CheckTurns(t testing.TB, least int, work func(context.Context) error) {
	t.Helper()
	const unlimited = -1
	whole := &turns{most: unlimited}
	if err := whole.run(t.Context(), work); err != nil || whole.taken < least {
		t.Fatalf("got %v after %d turns, want an answer after at least %d", err, whole.taken, least)
	}
	t.Logf("%d turns", whole.taken)
	for _, most := range []int{0, whole.taken - 1} {
		if err := (&turns{most: most}).run(t.Context(), work); !errors.Is(err, errNoTurn) {
			t.Errorf("got %v with %d of %d turns, want that it ends", err, most, whole.taken)
		}
	}
	if whole.taken > 1 {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		if err := (&turns{most: unlimited, onTurn: leave}).run(ctx, work); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v after the client left, want that it ends", err)
		}
	}
}

// NeedsWorker reports whether work needs a worker.
func NeedsWorker(t testing.TB, work func(context.Context) error) bool {
	t.Helper()
	err := (&turns{}).run(t.Context(), work)
	return errors.Is(err, errNoTurn)
}
