// Package changes tells which accounts' places changed, and up to where: what holds sites in memory asks it whether they are
// still true. It reads no event, keeps one position an account, and begins where the tables are when it starts.
package changes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/event"
)

// Notifier is safe for concurrent use.
type Notifier struct {
	// LoadCheckpoint is where to begin: what happened before is in whatever is asked for sites. It is asked until it answers and the
	// log knows the mark. The beginning of the log unless set before Run.
	LoadCheckpoint func(context.Context) (eventstore.Checkpoint, error)

	store eventstore.Store
	log   *slog.Logger

	mu               sync.RWMutex
	hasStarted       bool
	checkpoint       eventstore.Checkpoint
	lastChanges      map[string]eventstore.Position // by account
	restartedAt      eventstore.Position            // where it began again, after a log that was restored
	isRestarting     bool                           // it is to begin again
	waiters          map[chan struct{}]eventstore.Position
	hasLoggedFailure bool // that it cannot follow
}

// New is the pulse of the places in a log: Run makes it beat.
func New(store eventstore.Store, log *slog.Logger) *Notifier {
	return &Notifier{
		LoadCheckpoint: func(context.Context) (eventstore.Checkpoint, error) { return eventstore.Checkpoint{}, nil },
		store:          store, log: log,
		lastChanges: map[string]eventstore.Position{}, waiters: map[chan struct{}]eventstore.Position{},
	}
}

var categories = eventstore.Filter{"locations", "account"}

// changesLocations says whether an event changes places: one of theirs, or the erasure of their account.
func changesLocations(r eventstore.RecordedEvent) bool {
	t, known := event.Lookup(r.Type)
	return !known || t.Category() == "locations" || r.Type == event.AccountErased{}.EventType() || eventstore.IsCorrection(r.Type)
}

// LastChange is the position of the last event seen that changed an account's places, 0 when there was none since the start. It
// may be later: nobody knows what changed before the pulse began again on a log that was restored.
func (n *Notifier) LastChange(account string) eventstore.Position {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return max(n.lastChanges[account], n.restartedAt)
}

// AwaitPosition returns once every event up to a position was seen, or with the context's error.
func (n *Notifier) AwaitPosition(ctx context.Context, at eventstore.Position) error {
	passed := n.addWaiter(at)
	if passed == nil {
		return nil
	}
	select {
	case <-passed:
		return nil
	case <-ctx.Done():
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.waiters, passed)
	return fmt.Errorf("pulse at position %d: %w", n.checkpoint.Position, ctx.Err())
}

// addWaiter is closed when a position is passed; nil when it was.
func (n *Notifier) addWaiter(at eventstore.Position) chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hasStarted && n.checkpoint.Position >= at {
		return nil
	}
	passed := make(chan struct{})
	n.waiters[passed] = at
	return passed
}

// Run follows the log until ctx ends or the log is closed. On a log that does not hold what it has seen (an older copy was
// restored) it begins again where the tables are, once they are on that log.
func (n *Notifier) Run(ctx context.Context) error {
	for backoff := minBackoff; ; backoff = min(2*backoff, maxBackoff) {
		seen := n.Position()
		err := n.subscribe(ctx)
		if ctx.Err() != nil || errors.Is(err, eventstore.ErrClosed) {
			return err
		}
		if n.Position() > seen {
			backoff = minBackoff
		}
		n.logFailure(err)
		var diverged *eventstore.DivergedError
		if errors.As(err, &diverged) {
			n.reset()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(backoff):
		}
	}
}

const (
	minBackoff = 25 * time.Millisecond
	maxBackoff = 2 * time.Second
)

// Position is how far it has seen the log.
func (n *Notifier) Position() eventstore.Position {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.checkpoint.Position
}

func (n *Notifier) subscribe(ctx context.Context) error {
	from, err := n.resumeCheckpoint(ctx)
	if err != nil {
		return err
	}
	n.recordRestart(from)
	for signal, err := range n.store.Subscribe(ctx, from, categories) {
		if err != nil {
			return err
		}
		n.handleSignal(signal)
	}
	return errors.New("the subscription ended without saying why")
}

// recordRestart notes where it begins again: what is in the tables there may be anything but what was read before.
func (n *Notifier) recordRestart(from eventstore.Checkpoint) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.isRestarting && !n.hasStarted {
		n.restartedAt = from.Position
	}
}

// resumeCheckpoint is where to go on: what was seen once is not left out later.
func (n *Notifier) resumeCheckpoint(ctx context.Context) (eventstore.Checkpoint, error) {
	n.mu.RLock()
	hasStarted, checkpoint := n.hasStarted, n.checkpoint
	n.mu.RUnlock()
	if hasStarted {
		return checkpoint, nil
	}
	return n.LoadCheckpoint(ctx)
}

// reset leaves nothing of what was seen on a log that is gone.
func (n *Notifier) reset() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hasStarted, n.isRestarting, n.checkpoint = false, true, eventstore.Checkpoint{}
	clear(n.lastChanges)
}

func (n *Notifier) handleSignal(s eventstore.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.Kind == eventstore.EventAppeared && changesLocations(s.Event) {
		n.lastChanges[eventstore.EntityID(s.Event.Stream)] = s.Event.Position
	}
	n.hasStarted, n.checkpoint = true, s.Checkpoint
	for passed, at := range n.waiters {
		if at <= s.Checkpoint.Position {
			close(passed)
			delete(n.waiters, passed)
		}
	}
	if n.hasLoggedFailure {
		n.log.Info("places are followed again", "position", s.Checkpoint.Position)
		n.hasLoggedFailure = false
	}
}

// logFailure is one line an incident.
func (n *Notifier) logFailure(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.hasLoggedFailure {
		n.log.Warn("places cannot be followed", "position", n.checkpoint.Position, "reason", err)
		n.hasLoggedFailure = true
	}
}
