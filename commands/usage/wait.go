package usage

import (
	"context"
	"errors"
	"sync"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/clock"
	"lieudit/eventstore/waitlimit"
)

// logSilence returns how long the log has not answered, and begins to count a silence if there is none. A silence that begins
// is counted from waitlimit.UncountedWait ago: a request waits that long before its waitlimit.Wait starts. A batch calls it at its
// first failure, so the silence may then be counted as longer than it is by as much.
func (m *Meter) logSilence() time.Duration {
	now := int64(time.Since(m.epoch))
	m.silentSince.CompareAndSwap(0, now-int64(waitlimit.UncountedWait))
	if since := m.silentSince.Load(); since != 0 {
		return time.Duration(now - since)
	}
	return 0 // the log answered at this very moment
}

// isLogLost reports whether the log has been silent for waitlimit.MaxSilence. Requests are refused at once then.
func (m *Meter) isLogLost() bool {
	since := m.silentSince.Load()
	return since != 0 && time.Since(m.epoch)-time.Duration(since) >= waitlimit.MaxSilence
}

// clearSilence records that the log has answered.
func (m *Meter) clearSilence() {
	if m.silentSince.Load() != 0 {
		m.silentSince.Store(0)
	}
}

// isTransient reports whether the log was unavailable and certainly added nothing, so that a new try may work.
func isTransient(err error) bool {
	return errors.Is(err, eventstore.ErrUnavailable) && !errors.Is(err, eventstore.ErrUnknown)
}

// sharedTasks are tasks that many requests wait for together. Only one task of a name runs at a time. It continues even if all
// requests that wait for it have left. x/sync/singleflight has no owner that waits for the goroutines that it starts.
type sharedTasks struct {
	mu      sync.Mutex
	running map[string]*sharedTask
}

// sharedTask is one run of a task. Whoever waits for it receives from done and then reads err.
type sharedTask struct {
	done chan struct{}
	err  error // valid once done is closed
}

// startShared returns the running task of a name, or starts it. Tasks end with the meter, and after readTimeout. After the meter's end no
// task starts: the one that is returned has ended with ErrUnavailable.
func (m *Meter) startShared(name string, do func(context.Context) error) *sharedTask {
	m.tasks.mu.Lock()
	defer m.tasks.mu.Unlock()
	if t := m.tasks.running[name]; t != nil {
		return t
	}
	t := &sharedTask{done: make(chan struct{})}
	isStarted := m.goroutines.start(func() {
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
	if isStarted {
		m.tasks.running[name] = t
	} else {
		t.err = ErrUnavailable
		close(t.done)
	}
	return t
}

// awaitShared waits for a task for as long as a request may, and starts it again while the log is unavailable. The error is the
// task's, or ErrUnavailable if the request's time is over first.
func (m *Meter) awaitShared(ctx context.Context, wait *waitlimit.Wait, name string, do func(context.Context) error) error {
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
	waiting, stop := wait.Start(ctx, m.logSilence())
	defer stop()
	for {
		select {
		case <-t.done:
		case <-waiting.Done():
			return ErrUnavailable
		}
		if t.err == nil { // logSilence began a silence; the task may have ended just before
			m.clearSilence()
		}
		if !isTransient(t.err) || m.isLogLost() {
			return t.err
		}
		if !clock.Sleep(waiting, retryInterval) {
			return ErrUnavailable
		}
		t = m.startShared(name, do)
	}
}
