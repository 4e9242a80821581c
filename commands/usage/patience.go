package usage

import (
	"context"
	"errors"
	"sync"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/waiting"
)

// visit is the wait of one request for a log that does not answer at once: with a place in the room, until its time is
// over, its client goes away, or the log is lost.
type visit struct {
	ctx   context.Context
	timer *time.Timer
	leave func() // nil: there was no place, or no time
}

// visit begins to wait, after the moment that is free, for one who came at an instant.
func (l *Ledger) visit(ctx context.Context, account string, came time.Time) *visit {
	v := &visit{ctx: ctx}
	left := min(waiting.Longest-time.Since(came), waiting.Lost-l.silence())
	if leave, ok := l.room.Enter(account); ok && left > 0 {
		v.leave, v.timer = leave, time.NewTimer(left)
	} else if ok {
		leave()
	}
	return v
}

// end gives the place back.
func (v *visit) end() {
	if v.leave != nil {
		v.timer.Stop()
		v.leave()
	}
}

// wait waits for what a channel brings, and says whether that came in time.
func wait[T any](v *visit, done <-chan T) (came T, ok bool) {
	if v.leave == nil {
		return came, false
	}
	select {
	case came = <-done:
		return came, true
	case <-v.ctx.Done():
	case <-v.timer.C:
	}
	return came, false
}

// pause waits, and says whether there is time left.
func (v *visit) pause(d time.Duration) bool {
	if v.leave == nil {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	_, ok := wait(v, t.C)
	return ok
}

// silence is how long the log has not answered, counted from the first who waited in vain.
func (l *Ledger) silence() time.Duration {
	now := int64(time.Since(l.epoch))
	l.troubled.CompareAndSwap(0, now-int64(waiting.Brief))
	if since := l.troubled.Load(); since != 0 {
		return time.Duration(now - since)
	}
	return 0 // it answered this very moment
}

// isLost says whether the log has been silent for so long that nobody waits for it any more.
func (l *Ledger) isLost() bool {
	since := l.troubled.Load()
	return since != 0 && time.Since(l.epoch)-time.Duration(since) >= waiting.Lost
}

// heard notes that the log answered.
func (l *Ledger) heard() {
	if l.troubled.Load() != 0 {
		l.troubled.Store(0)
	}
}

// isPassing says whether what failed may work in a moment: the log was away, and nothing was added to it.
func isPassing(err error) bool {
	return errors.Is(err, eventstore.ErrUnavailable) && !errors.Is(err, eventstore.ErrUnknown)
}

// tasks is what requests share the waiting for. Each is done once at a time, whoever asks for it, and goes on when
// those who asked have left; x/sync/singleflight has no owner who waits for what it runs.
type tasks struct {
	mu      sync.Mutex
	running map[string]*task
}

type task struct {
	done chan struct{}
	err  error // valid once done is closed
}

// begin is the task of a name that runs, or a new one.
func (l *Ledger) begin(name string, do func(context.Context) error) *task {
	l.tasks.mu.Lock()
	defer l.tasks.mu.Unlock()
	if t := l.tasks.running[name]; t != nil {
		return t
	}
	t := &task{done: make(chan struct{})}
	l.tasks.running[name] = t
	l.flights.Go(func() {
		ctx, cancel := context.WithTimeout(l.life, readLimit)
		defer cancel()
		if t.err = do(ctx); t.err == nil {
			l.heard()
		}
		l.tasks.mu.Lock()
		delete(l.tasks.running, name)
		l.tasks.mu.Unlock()
		close(t.done)
	})
	return t
}

// share waits for a task, as long as a request of an account that came at an instant may, and begins it again where the log
// was away.
func (l *Ledger) share(ctx context.Context, account, name string, came time.Time, do func(context.Context) error) error {
	t := l.begin(name, do)
	brief := time.NewTimer(waiting.Brief)
	defer brief.Stop()
	select {
	case <-t.done:
		if !isPassing(t.err) || l.isLost() {
			return t.err
		}
	case <-brief.C:
	}
	v := l.visit(ctx, account, came)
	defer v.end()
	for {
		if _, ok := wait(v, t.done); !ok {
			return ErrUnavailable
		}
		if t.err == nil { // it may have been done before the visit began
			l.heard()
		}
		if !isPassing(t.err) || l.isLost() {
			return t.err
		}
		if !v.pause(retryAfter) {
			return ErrUnavailable
		}
		t = l.begin(name, do)
	}
}
