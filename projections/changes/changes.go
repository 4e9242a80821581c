// Package changes notifies readers that keep sites in memory of changes: for each account it knows the position of the last
// event that changed the account's sites. It decodes no event, and keeps only one position per account.
//
// Run subscribes to the log where the read model's tables are (loadCheckpoint) and hands each signal to handleSignal, which
// notes positions and wakes waiters. A reader calls LastChange to find out whether its sites are still current, and
// AwaitPosition to see its own write.
//
// Run doubles its pauses itself: Retry of cenkalti/backoff returns to short pauses only after a success, and a subscription
// ends only by failing.
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

// Notifier knows which accounts' sites changed, and up to which position that holds. It is safe for concurrent use.
type Notifier struct {
	store          eventstore.Store
	loadCheckpoint func(context.Context) (eventstore.Checkpoint, error)
	log            *slog.Logger

	mu               sync.RWMutex
	hasStarted       bool
	checkpoint       eventstore.Checkpoint
	lastChanges      map[string]eventstore.Position        // by account
	restartedAt      eventstore.Position                   // where it started again after a log was restored; 0 if it never did
	isRestarting     bool                                  // the next start is such a restart
	waiters          map[chan struct{}]eventstore.Position // closed once the position is passed
	hasLoggedFailure bool                                  // the present failure is logged
}

// New returns a notifier of the sites in a log. It knows nothing before Run. loadCheckpoint returns where to begin: earlier
// changes are in the tables that sites are read from. It is called until it succeeds and the log holds its checkpoint.
func New(store eventstore.Store, loadCheckpoint func(context.Context) (eventstore.Checkpoint, error), log *slog.Logger) *Notifier {
	return &Notifier{
		store: store, loadCheckpoint: loadCheckpoint, log: log,
		lastChanges: map[string]eventstore.Position{}, waiters: map[chan struct{}]eventstore.Position{},
	}
}

var categories = eventstore.Filter{"locations", "account"}

// changesLocations reports whether an event may change an account's sites: events of locations streams, corrections, the
// account's erasure, and types that are not in the catalog.
func changesLocations(r eventstore.RecordedEvent) bool {
	t, known := event.Lookup(r.Type)
	return !known || t.Category() == "locations" || r.Type == event.AccountErased{}.EventType() || eventstore.IsCorrection(r.Type)
}

// LastChange is the position of the last event seen that changed an account's sites, 0 if there was none since the start. It
// may be too late, never too early: after a restored log it is at least the position of the restart, since the changes before
// it are unknown.
func (n *Notifier) LastChange(account string) eventstore.Position {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return max(n.lastChanges[account], n.restartedAt)
}

// AwaitPosition returns once every event up to a position was seen, or with ctx's error. Before Run has seen its first signal
// it waits for any position.
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

// addWaiter returns a channel that is closed when a position is passed, nil if it already is.
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

// Run follows the log until ctx ends or the log is closed. On a log that lacks events already seen (an older copy was
// restored) it starts again at the checkpoint of the tables, once that is on the log.
func (n *Notifier) Run(ctx context.Context) error {
	for backoff := minBackoff; ; backoff = min(2*backoff, maxBackoff) {
		seen := n.Position()
		err := n.followChanges(ctx)
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

// Position is the position up to which all events were seen.
func (n *Notifier) Position() eventstore.Position {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.checkpoint.Position
}

// followChanges handles the signals of one subscription until it ends.
func (n *Notifier) followChanges(ctx context.Context) error {
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

// recordRestart notes the position of a restart: the tables may hold anything except what was known before.
func (n *Notifier) recordRestart(from eventstore.Checkpoint) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.isRestarting && !n.hasStarted {
		n.restartedAt = from.Position
	}
}

// resumeCheckpoint is where to subscribe: after the last event seen, or at the checkpoint of the tables.
func (n *Notifier) resumeCheckpoint(ctx context.Context) (eventstore.Checkpoint, error) {
	n.mu.RLock()
	hasStarted, checkpoint := n.hasStarted, n.checkpoint
	n.mu.RUnlock()
	if hasStarted {
		return checkpoint, nil
	}
	return n.loadCheckpoint(ctx)
}

// reset forgets everything seen on a log that is gone.
func (n *Notifier) reset() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hasStarted, n.isRestarting, n.checkpoint = false, true, eventstore.Checkpoint{}
	clear(n.lastChanges)
}

// handleSignal notes the change that a signal reports, and wakes those who wait for its position.
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

// logFailure logs one line per incident.
func (n *Notifier) logFailure(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.hasLoggedFailure {
		n.log.Warn("places cannot be followed", "position", n.checkpoint.Position, "reason", err)
		n.hasLoggedFailure = true
	}
}
