// Package worker limits how many processors costly queries use at once, so that cheap ones find a free one. A worker is the right to
// use a processor. Each request has a Task in its context, to which its query adds the work it does. The first half millisecond is free;
// for more work the request needs a worker from a pool that all accounts share, and after each Slice it queues for a worker again.
//
//	http/api ── WithTask ──> context ── Yield, Count in the loops of queries ──> Task ── Pool.Exchange ──> a worker
//	                            └────── Release before a wait for anything else ───┘
//
// A search that holds memory until it ends begins with BeginSearch. The number of those under way is limited: if every request could begin one
// and then wait for a worker, their memory would grow with the number of connections.
//
// A request must release its worker before it waits for a log, a database or a server: one that does not answer would hold up
// all accounts. Work is estimated and not timed, so that cheap queries stay cheap on a busy machine.
package worker

import (
	"context"
	"sync"
	"time"
)

const (
	// Free is how much work a request may do without a worker: several times that of a common query.
	Free = 500 * time.Microsecond
	// Slice is how much work a request may do with a worker before it queues again.
	Slice = 5 * time.Millisecond
)

// Pool hands out workers; budget.Budget is one. Exchange joins the queue of an account, calls giveBack, which returns the worker that
// the request has, and waits for its turn. release gives the new workers back.
type Pool interface {
	Exchange(ctx context.Context, account string, workers int64, giveBack func()) (release func(), err error)
}

// Pools limit the work of all requests: Workers limits how much runs at once, Searches how many searches are under way.
type Pools struct{ Workers, Searches Pool }

// Task is the work of one request, or of a part of it that runs concurrently with others. It has at most one worker at a time. It is
// safe for concurrent use.
type Task struct {
	pools   Pools
	account string
	parent  *Task // the task that this one was forked from; nil for a whole request

	mu      sync.Mutex
	work    time.Duration // since the task got its worker, or without one
	release func()        // gives the worker back; nil if the task has no worker

	searches  int    // nested searches under way
	endSearch func() // ends the outermost search
}

type taskKey struct{}

// WithTask returns a context with a new Task for a request. The caller must call Release of the Task at the end of the work.
func WithTask(ctx context.Context, pools Pools, account string) (context.Context, *Task) {
	t := &Task{pools: pools, account: account}
	return context.WithValue(ctx, taskKey{}, t), t
}

// Fork returns a context with a Task for one of several parts of a request that run concurrently: each then has a worker of its own, and
// gives the worker back when the part ends. Free work that the request has done counts for each of its parts. The caller must call Release
// of the Task at the end of the part.
func Fork(ctx context.Context) (context.Context, *Task) {
	parent := taskOf(ctx)
	if parent == nil {
		return ctx, &Task{}
	}
	parent.mu.Lock()
	defer parent.mu.Unlock()
	t := &Task{pools: parent.pools, account: parent.account, parent: parent, work: min(parent.work, Free)}
	return context.WithValue(ctx, taskKey{}, t), t
}

// taskOf returns the Task of a context, or nil if it has none; in that case all work is free.
func taskOf(ctx context.Context) *Task {
	t, _ := ctx.Value(taskKey{}).(*Task)
	return t
}

// Count adds work that was done, without waiting.
func Count(ctx context.Context, done time.Duration) {
	if t := taskOf(ctx); t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.work += done
	}
}

// Yield adds work that was done. It waits for a worker if the free work or the slice is used up. Its error is that of ctx or of the
// pool. Loops call it about every half millisecond.
func Yield(ctx context.Context, done time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if t := taskOf(ctx); t != nil {
		return t.yield(ctx, done)
	}
	return nil
}

// Acquire waits for a worker before costly work that does not call Yield.
func Acquire(ctx context.Context) error { return Yield(ctx, Free) }

// Release gives the worker back until the next Yield, if the request has one.
func Release(ctx context.Context) {
	if t := taskOf(ctx); t != nil {
		t.Release()
	}
}

func (t *Task) yield(ctx context.Context, done time.Duration) (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.work += done
	if t.work < Free || t.release != nil && t.work < Slice {
		return nil
	}
	if t.release, err = t.pools.Workers.Exchange(ctx, t.account, 1, t.giveBack); err == nil {
		t.work = 0
	}
	return err
}

// BeginSearch waits, without a worker, until a search may begin. The caller must call end once the search has released its memory. A search
// within another one begins at once. Its error is that of ctx or of the pool.
func BeginSearch(ctx context.Context) (end func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t := taskOf(ctx)
	if t == nil {
		return func() {}, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.searches == 0 {
		if t.endSearch, err = t.pools.Searches.Exchange(ctx, t.account, 1, t.giveBack); err != nil {
			return nil, err
		}
	}
	t.searches++
	return t.leaveSearch, nil
}

func (t *Task) leaveSearch() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.searches--; t.searches == 0 {
		t.endSearch()
		t.endSearch = nil
	}
}

// HasWorker reports whether the task has a worker now.
func (t *Task) HasWorker() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.release != nil
}

// Release gives the worker back until the next Yield, if the task has one.
func (t *Task) Release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.giveBack()
	if t.parent != nil {
		t.parent.noteFreeWork(t.work)
	}
}

// noteFreeWork raises the free work that counts as done to that of a part.
func (t *Task) noteFreeWork(done time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.work = max(t.work, min(done, Free))
}

// giveBack gives the worker back. The free work stays used up: more work needs a worker again. The lock is held.
func (t *Task) giveBack() {
	if t.release != nil {
		t.release()
		t.release, t.work = nil, max(t.work, Free)
	}
}
