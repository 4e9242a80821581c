package usage

import (
	"context"
	"errors"
	"sync"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/waitlimit"
)

// logWait is the wait of one request for a log that does not answer at once: with a place in the room, until its time is
// over, its client goes away, or the log is lost.
type logWait struct {
	ctx     context.Context
	timer   *time.Timer
	release func() // nil: there was no place, or no time
}

// startWait begins to wait, after the moment that is free, for one who came at an instant.
func (m *Meter) startWait(ctx context.Context, account string, arrivedAt time.Time) *logWait {
	v := &logWait{ctx: ctx}
	remaining := min(waitlimit.MaxWait-time.Since(arrivedAt), waitlimit.MaxSilence-m.logSilence())
	if release, ok := m.waitLimiter.Acquire(account); ok && remaining > 0 {
		v.release, v.timer = release, time.NewTimer(remaining)
	} else if ok {
		release()
	}
	return v
}

// stop gives the place back.
func (v *logWait) stop() {
	if v.release != nil {
		v.timer.Stop()
		v.release()
	}
}

// awaitValue waits for what a channel brings, and says whether that came in time.
func awaitValue[T any](v *logWait, done <-chan T) (value T, ok bool) {
	if v.release == nil {
		return value, false
	}
	select {
	case value = <-done:
		return value, true
	case <-v.ctx.Done():
	case <-v.timer.C:
	}
	return value, false
}

// sleep waits, and says whether there is time left.
func (v *logWait) sleep(d time.Duration) bool {
	if v.release == nil {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	_, ok := awaitValue(v, t.C)
	return ok
}

// logSilence is how long the log has not answered, counted from the first who waited in vain.
func (m *Meter) logSilence() time.Duration {
	now := int64(time.Since(m.epoch))
	m.silentSince.CompareAndSwap(0, now-int64(waitlimit.UncountedWait))
	if since := m.silentSince.Load(); since != 0 {
		return time.Duration(now - since)
	}
	return 0 // it answered this very moment
}

// isLogLost says whether the log has been silent for so long that nobody waits for it any more.
func (m *Meter) isLogLost() bool {
	since := m.silentSince.Load()
	return since != 0 && time.Since(m.epoch)-time.Duration(since) >= waitlimit.MaxSilence
}

// clearSilence notes that the log answered.
func (m *Meter) clearSilence() {
	if m.silentSince.Load() != 0 {
		m.silentSince.Store(0)
	}
}

// isTransient says whether what failed may work in a moment: the log was away, and nothing was added to it.
func isTransient(err error) bool {
	return errors.Is(err, eventstore.ErrUnavailable) && !errors.Is(err, eventstore.ErrUnknown)
}

// sharedTasks is what requests share the waiting for. Each is done once at a time, whoever asks for it, and goes on when
// those who asked have left; x/sync/singleflight has no owner who waits for what it runs.
type sharedTasks struct {
	mu      sync.Mutex
	running map[string]*sharedTask
}

type sharedTask struct {
	done chan struct{}
	err  error // valid once done is closed
}

// startShared is the task of a name that runs, or a new one.
func (m *Meter) startShared(name string, do func(context.Context) error) *sharedTask {
	m.tasks.mu.Lock()
	defer m.tasks.mu.Unlock()
	if t := m.tasks.running[name]; t != nil {
		return t
	}
	t := &sharedTask{done: make(chan struct{})}
	m.tasks.running[name] = t
	m.goroutines.Go(func() {
		ctx, cancel := context.WithTimeout(m.runCtx, readTimeout)
		defer cancel()
		if t.err = do(ctx); t.err == nil {
			m.clearSilence()
		}
		m.tasks.mu.Lock()
		delete(m.tasks.running, name)
		m.tasks.mu.Unlock()
		close(t.done)
	})
	return t
}

// awaitShared waits for a task, as long as a request of an account that came at an instant may, and begins it again where the log
// was away.
func (m *Meter) awaitShared(ctx context.Context, account, name string, arrivedAt time.Time, do func(context.Context) error) error {
	t := m.startShared(name, do)
	briefTimer := time.NewTimer(waitlimit.UncountedWait)
	defer briefTimer.Stop()
	select {
	case <-t.done:
		if !isTransient(t.err) || m.isLogLost() {
			return t.err
		}
	case <-briefTimer.C:
	}
	v := m.startWait(ctx, account, arrivedAt)
	defer v.stop()
	for {
		if _, ok := awaitValue(v, t.done); !ok {
			return ErrUnavailable
		}
		if t.err == nil { // it may have been done before the visit began
			m.clearSilence()
		}
		if !isTransient(t.err) || m.isLogLost() {
			return t.err
		}
		if !v.sleep(retryInterval) {
			return ErrUnavailable
		}
		t = m.startShared(name, do)
	}
}
