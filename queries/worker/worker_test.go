package worker_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/queries/worker"
)

// fakePool has a worker for everybody, and counts them.
type fakePool struct {
	inUse, turns atomic.Int64
	err          error // of every turn
}

func (p *fakePool) Exchange(_ context.Context, _ string, n int64, giveBack func()) (func(), error) {
	giveBack()
	if p.err != nil {
		return nil, p.err
	}
	p.turns.Add(1)
	p.inUse.Add(n)
	return func() { p.inUse.Add(-n) }, nil
}

// pools has one pool for workers, and another for searches.
func pools(workers worker.Pool) worker.Pools {
	return worker.Pools{Workers: workers, Searches: &fakePool{}}
}

func TestTheFirstWorkOfARequestNeedsNoWorker(t *testing.T) {
	t.Parallel()
	ctx, task := worker.WithTask(t.Context(), pools(&fakePool{}), "a")
	const pieces = 10
	for n := 1; n <= 2*pieces; n++ {
		if err := worker.Yield(ctx, worker.Free/pieces); err != nil {
			t.Fatal(err)
		}
		if got, want := task.HasWorker(), n >= pieces; got != want {
			t.Fatalf("after %d of %d free pieces it has a worker: %v, want %v", n, pieces, got, want)
		}
	}
}

func TestWorkNeedsAWorkerOnlyIfMoreFollows(t *testing.T) {
	t.Parallel()
	ctx, task := worker.WithTask(t.Context(), pools(&fakePool{}), "a")
	worker.Count(ctx, 10*worker.Free)
	if task.HasWorker() {
		t.Error("it has a worker although no work follows")
	}
	if err := worker.Yield(ctx, 0); err != nil || !task.HasWorker() {
		t.Errorf("it has no worker although work follows (%v)", err)
	}
}

func TestEachSliceOfWorkIsATurn(t *testing.T) {
	t.Parallel()
	pool := &fakePool{}
	ctx, task := worker.WithTask(t.Context(), pools(pool), "a")
	defer task.Release()
	if err := worker.Acquire(ctx); err != nil {
		t.Fatal(err)
	}
	for range 40 {
		if err := worker.Yield(ctx, worker.Slice/10); err != nil {
			t.Fatal(err)
		}
	}
	if got := pool.turns.Load(); got != 1+4 {
		t.Errorf("%d turns for 4 slices after the first, want 5", got)
	}
}

func TestAWorkerIsGivenBackBeforeAWaitAndWorkIsFreeOnlyOnce(t *testing.T) {
	t.Parallel()
	pool := &fakePool{}
	ctx, task := worker.WithTask(t.Context(), pools(pool), "a")
	if err := worker.Acquire(ctx); err != nil {
		t.Fatal(err)
	}
	worker.Release(ctx)
	if n := pool.inUse.Load(); n != 0 {
		t.Errorf("%d workers in use after Release, want 0", n)
	}
	if err := worker.Yield(ctx, 0); err != nil || !task.HasWorker() {
		t.Errorf("it continues without a worker (%v)", err)
	}
	task.Release()
	if n := pool.inUse.Load(); n != 0 {
		t.Errorf("%d workers in use at the end, want 0", n)
	}
}

func TestWithoutAWorkerThereIsNoMoreWork(t *testing.T) {
	t.Parallel()
	pool := &fakePool{err: errors.New("no worker is free")}
	ctx, task := worker.WithTask(t.Context(), pools(pool), "a")
	for range 2 {
		if err := worker.Acquire(ctx); !errors.Is(err, pool.err) || task.HasWorker() {
			t.Errorf("got %v, want the error of the pool", err)
		}
	}
}

func TestARequestOfSeveralGoroutinesHasOneWorker(t *testing.T) {
	t.Parallel()
	pool := &fakePool{}
	ctx, task := worker.WithTask(t.Context(), pools(pool), "a")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 1000 {
				if err := worker.Yield(ctx, worker.Slice); err != nil {
					t.Error(err)
				}
				if n := pool.inUse.Load(); n > 1 {
					t.Errorf("%d workers in use, want 1", n)
				}
			}
		})
	}
	group.Wait()
	task.Release()
	if n := pool.inUse.Load(); n != 0 {
		t.Errorf("%d workers in use at the end, want 0", n)
	}
}

func TestWorkEndsWithTheClient(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]context.Context{
		"with a task": func() context.Context { ctx, _ := worker.WithTask(t.Context(), pools(&fakePool{}), "a"); return ctx }(),
		"without one": t.Context(),
	} {
		ctx, leave := context.WithCancel(client)
		worker.Count(ctx, time.Hour)
		worker.Release(ctx)
		if err := worker.Yield(ctx, time.Hour); err != nil {
			t.Errorf("%s: got %v, want nil", name, err)
		}
		leave()
		if err := worker.Yield(ctx, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want that the client left", name, err)
		}
	}
}

func TestPartsOfARequestShareTheFreeWorkAndEachHasAWorkerThen(t *testing.T) {
	t.Parallel()
	pool := &fakePool{}
	ctx, task := worker.WithTask(t.Context(), pools(pool), "a")
	defer task.Release()
	first, one := worker.Fork(ctx)
	if err := worker.Yield(first, worker.Free/2); err != nil || one.HasWorker() {
		t.Errorf("the first part has a worker: %v (%v), want none", one.HasWorker(), err)
	}
	one.Release()
	second, two := worker.Fork(ctx)
	if err := worker.Yield(second, worker.Free/2); err != nil || !two.HasWorker() {
		t.Errorf("a part after as much work has a worker: %v (%v), want one", two.HasWorker(), err)
	}
	two.Release()
	third, three := worker.Fork(ctx)
	fourth, four := worker.Fork(ctx)
	for _, ctx := range []context.Context{third, fourth} {
		if err := worker.Yield(ctx, 0); err != nil {
			t.Fatal(err)
		}
	}
	if got := pool.inUse.Load(); got != 2 {
		t.Errorf("two parts side by side have %d workers, want 2", got)
	}
	three.Release()
	four.Release()
	if got := pool.inUse.Load(); got != 0 || task.HasWorker() {
		t.Errorf("%d workers are kept between parts", got)
	}
}

func TestASearchBeginsInTurnWithoutAWorkerAndOnesWithinItAtOnce(t *testing.T) {
	t.Parallel()
	workers, searches := &fakePool{}, &fakePool{}
	ctx, task := worker.WithTask(t.Context(), worker.Pools{Workers: workers, Searches: searches}, "a")
	defer task.Release()
	if err := worker.Acquire(ctx); err != nil || !task.HasWorker() {
		t.Fatalf("no worker (%v)", err)
	}
	var ends []func()
	for range 3 {
		end, err := worker.BeginSearch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	if task.HasWorker() {
		t.Error("it waits for its search with a worker")
	}
	if n := searches.turns.Load(); n != 1 {
		t.Errorf("three searches, one within the other, took %d places", n)
	}
	for i, end := range ends {
		if n := searches.inUse.Load(); n != 1 {
			t.Errorf("after %d of 3 ends %d places are taken", i, n)
		}
		end()
	}
	if n := searches.inUse.Load(); n != 0 {
		t.Errorf("%d places are taken in the end", n)
	}
	searches.err = errors.New("overloaded")
	if _, err := worker.BeginSearch(ctx); !errors.Is(err, searches.err) {
		t.Errorf("got %v, want the error of the pool", err)
	}
}
