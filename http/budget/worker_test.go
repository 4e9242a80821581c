package budget_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/http/budget"
	"lieudit/queries/worker"
)

// workerTurns notes in which order accounts get the workers of a budget.
type workerTurns struct {
	*budget.Budget
	mu       sync.Mutex
	accounts []string
}

func (r *workerTurns) Exchange(ctx context.Context, account string, n int64, giveBack func()) (func(), error) {
	release, err := r.Budget.Exchange(ctx, account, n, giveBack)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.accounts = append(r.accounts, account)
	}
	return release, err
}

// work does some slices of work in a request of an account.
func (r *workerTurns) work(t *testing.T, account string, slices int) {
	ctx, task := worker.WithTask(t.Context(), worker.Pools{Workers: r, Searches: r}, account)
	defer task.Release()
	if err := worker.Acquire(ctx); err != nil {
		t.Error(err)
	}
	for n := range slices {
		time.Sleep(worker.Slice)
		if n == slices-1 {
			return
		}
		if err := worker.Yield(ctx, worker.Slice); err != nil {
			t.Error(err)
		}
	}
}

func TestAccountsTakeTurnsAtAWorkerThoughOneHasManyLongRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &workerTurns{Budget: budget.New(1, 1)}
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() { r.work(t, "attacker", 40) })
		}
		synctest.Wait()
		began := time.Now()
		var took time.Duration
		group.Go(func() {
			r.work(t, "honest", 3)
			took = time.Since(began)
		})
		group.Wait()
		if want := 7 * worker.Slice; took > want {
			t.Errorf("three slices took %v along with another account, want at most %v", took, want)
		}
		first := slices.Index(r.accounts, "honest")
		if got, want := fmt.Sprint(r.accounts[first:first+5]), "[honest attacker honest attacker honest]"; got != want {
			t.Errorf("turns were %v, want %v", got, want)
		}
		if got := r.Status(); got != (budget.Status{}) {
			t.Errorf("all was given back, but %+v", got)
		}
	})
}

// waitForWorker asks for a worker while another account has the only one.
func waitForWorker(t *testing.T, ctx context.Context) error {
	t.Helper()
	b := budget.New(1, 1)
	release, err := b.Acquire(t.Context(), "other", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, task := worker.WithTask(ctx, worker.Pools{Workers: b, Searches: b}, "a")
	defer task.Release()
	return worker.Acquire(ctx)
}

func TestAWaitForAWorkerEndsWithTheClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		if err := waitForWorker(t, ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that the client left", err)
		}
	})
}

func TestAWorkerThatIsNotFreeInTimeIsAnOverload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := waitForWorker(t, t.Context()); !errors.Is(err, budget.ErrOverloaded) || time.Since(began) != budget.MaxWait {
			t.Errorf("got %v after %v, want an overload after %v", err, time.Since(began), budget.MaxWait)
		}
	})
}
