// Package worker bounds how many processors costly queries use at once, so that cheap ones find a free one. A request has a
// Share in its context. A query counts its work there as it goes along: the first of it is free, for the rest the request needs
// a worker of a pool that all accounts share, and after each slice of work it waits for its turn again.
//
//	http/api ── WithShare ──> context ── Yield, Count in the loops of queries ──> Share ── Pool.Acquire ──> a worker
//	                             └────── Release before a wait for anything else ───┘
//
// A worker must not be kept while a request waits for a log, a database or a server: one that does not answer would hold up
// every account. Work is estimated and not timed, so that a busy machine makes no query costly.
package worker

import (
	"context"
	"sync"
	"time"
)

const (
	// Free is how much work a request may do without a worker: several times that of a common question.
	Free = 500 * time.Microsecond
	// Slice is how much work is done between two turns.
	Slice = 5 * time.Millisecond
)

// Pool hands out workers; budget.Budget is one. Exchange joins the queue of an account, gives back what the request has, and waits for
// its turn. release gives the new workers back.
type Pool interface {
	Exchange(ctx context.Context, account string, workers int64, giveBack func()) (release func(), err error)
}

// Share is the part of one request in a pool: at most one worker at a time. It is safe for concurrent use.
type Share struct {
	pool    Pool
	account string
	parent  *Share // of which this is a part; nil: none

	mu      sync.Mutex
	work    time.Duration // done without a worker, or since the last turn
	release func()        // gives the worker back; nil: the request has none
}

type shareKey struct{}

// WithShare gives a request a share. Release of the share must be called at the end of its work.
func WithShare(ctx context.Context, pool Pool, account string) (context.Context, *Share) {
	s := &Share{pool: pool, account: account}
	return context.WithValue(ctx, shareKey{}, s), s
}

// Fork gives a part of a request's work a share of its own, so that parts which run side by side each have a worker, and none is kept
// between them. What the request has done without a worker counts for its parts too. Release of the share must be called at the end of
// the part.
func Fork(ctx context.Context) (context.Context, *Share) {
	parent := shareOf(ctx)
	if parent == nil {
		return ctx, &Share{}
	}
	parent.mu.Lock()
	defer parent.mu.Unlock()
	s := &Share{pool: parent.pool, account: parent.account, parent: parent, work: min(parent.work, Free)}
	return context.WithValue(ctx, shareKey{}, s), s
}

// shareOf returns the share of a context; nil: it has none, and all work is free.
func shareOf(ctx context.Context) *Share {
	s, _ := ctx.Value(shareKey{}).(*Share)
	return s
}

// Count counts work that was done, and does not wait.
func Count(ctx context.Context, done time.Duration) {
	if s := shareOf(ctx); s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.work += done
	}
}

// Yield counts work that was done, and waits for a worker before more if that is no longer free, or if the slice is used up. Its
// error is that of ctx or of the pool. Loops call it about every half millisecond.
func Yield(ctx context.Context, done time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s := shareOf(ctx); s != nil {
		return s.yield(ctx, done)
	}
	return nil
}

// Acquire waits for a worker before work that is costly and cannot give way.
func Acquire(ctx context.Context) error { return Yield(ctx, Free) }

// Release gives the worker back until the next Yield, if the request has one.
func Release(ctx context.Context) {
	if s := shareOf(ctx); s != nil {
		s.Release()
	}
}

func (s *Share) yield(ctx context.Context, done time.Duration) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work += done
	if s.work < Free || s.release != nil && s.work < Slice {
		return nil
	}
	if s.release, err = s.pool.Exchange(ctx, s.account, 1, s.giveBack); err == nil {
		s.work = 0
	}
	return err
}

// HasWorker reports whether the request has a worker now.
func (s *Share) HasWorker() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.release != nil
}

// Release gives the worker back until the next Yield, if the request has one.
func (s *Share) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.giveBack()
	if s.parent != nil {
		s.parent.noteWork(s.work)
	}
}

// noteWork takes over how much a part has done without a worker.
func (s *Share) noteWork(done time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work = max(s.work, min(done, Free))
}

// giveBack gives the worker back. What the request has done stays counted, so that it cannot begin anew with free work. The lock is held.
func (s *Share) giveBack() {
	if s.release != nil {
		s.release()
		s.release, s.work = nil, max(s.work, Free)
	}
}
