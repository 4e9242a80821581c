package api

import (
	"context"
	"runtime"

	"lieudit/http/budget"
	"lieudit/http/kit"
	"lieudit/queries/worker"
)

// NewWorkers returns the budget of workers for costly queries and files: how many run at once, and half as many for one account. If there
// are several processors, one stays free for all other requests.
func NewWorkers() *budget.Budget {
	workers := int64(max(1, runtime.GOMAXPROCS(0)-1))
	return budget.New(workers, (workers+1)/2)
}

// searchesPerWorker is how many searches that hold memory may be under way for each worker. One of a country holds some megabytes.
const searchesPerWorker = 32

// NewSearches returns the budget of searches that hold memory until they end: how many may be under way, and half as many for one account.
func NewSearches() *budget.Budget {
	searches := int64(searchesPerWorker * max(1, runtime.GOMAXPROCS(0)-1))
	return budget.New(searches, searches/2)
}

// newTask is worker.WithTask on the pools that all accounts share.
func (e *Env) newTask(ctx context.Context, account string) (context.Context, *worker.Task) {
	return worker.WithTask(ctx, worker.Pools{Workers: e.Workers, Searches: e.Searches}, account)
}

// runShared does the work of a request that only reads. If the work is costly, it gets a worker of those that all accounts share, and
// keeps it until the answer is encoded.
func (h *handler) runShared(ctx context.Context, account string, do func(context.Context) (kit.Response, error)) (kit.Response, error) {
	ctx, task := h.newTask(ctx, account)
	defer task.Release()
	response, err := do(ctx)
	if err == nil && task.HasWorker() {
		err = response.Encode()
	}
	return response, err
}
