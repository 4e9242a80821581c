// Package pulse tells which accounts' places changed, and up to where: what holds sites in memory asks it whether they are
// still true. It reads no event, keeps one position an account, and begins where the tables are when it starts.
package pulse

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

// Pulse is safe for concurrent use.
type Pulse struct {
	// From is where to begin: what happened before is in whatever is asked for sites. It is asked until it answers and the
	// log knows the mark. The beginning of the log unless set before Run.
	From func(context.Context) (eventstore.Mark, error)

	store eventstore.Store
	log   *slog.Logger

	mu      sync.RWMutex
	begun   bool
	mark    eventstore.Mark
	changed map[string]eventstore.Position // by account
	floor   eventstore.Position            // where it began again, after a log that was restored
	again   bool                           // it is to begin again
	waits   map[chan struct{}]eventstore.Position
	told    bool // that it cannot follow
}

// New is the pulse of the places in a log: Run makes it beat.
func New(store eventstore.Store, log *slog.Logger) *Pulse {
	return &Pulse{
		From:  func(context.Context) (eventstore.Mark, error) { return eventstore.Mark{}, nil },
		store: store, log: log,
		changed: map[string]eventstore.Position{}, waits: map[chan struct{}]eventstore.Position{},
	}
}

var wanted = eventstore.Filter{"locations", "account"}

// concerns says whether an event changes places: one of theirs, or the erasure of their account.
func concerns(r eventstore.Recorded) bool {
	t, known := event.Lookup(r.Type)
	return !known || t.Category() == "locations" || r.Type == event.AccountErased{}.EventType() || eventstore.IsCorrection(r.Type)
}

// Changed is the position of the last event seen that changed an account's places, 0 when there was none since the start. It
// may be later: nobody knows what changed before the pulse began again on a log that was restored.
func (p *Pulse) Changed(account string) eventstore.Position {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return max(p.changed[account], p.floor)
}

// Wait returns once every event up to a position was seen, or with the context's error.
func (p *Pulse) Wait(ctx context.Context, at eventstore.Position) error {
	passed := p.wait(at)
	if passed == nil {
		return nil
	}
	select {
	case <-passed:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waits, passed)
	return fmt.Errorf("pulse at position %d: %w", p.mark.Position, ctx.Err())
}

// wait is closed when a position is passed; nil when it was.
func (p *Pulse) wait(at eventstore.Position) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun && p.mark.Position >= at {
		return nil
	}
	passed := make(chan struct{})
	p.waits[passed] = at
	return passed
}

// Run follows the log until ctx ends or the log is closed. On a log that does not hold what it has seen (an older copy was
// restored) it begins again where the tables are, once they are on that log.
func (p *Pulse) Run(ctx context.Context) error {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		seen := p.Position()
		err := p.follow(ctx)
		if ctx.Err() != nil || errors.Is(err, eventstore.ErrClosed) {
			return err
		}
		if p.Position() > seen {
			pause = firstPause
		}
		p.tell(err)
		var diverged *eventstore.DivergedError
		if errors.As(err, &diverged) {
			p.forget()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

const (
	firstPause = 25 * time.Millisecond
	maxPause   = 2 * time.Second
)

// Position is how far it has seen the log.
func (p *Pulse) Position() eventstore.Position {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.mark.Position
}

func (p *Pulse) follow(ctx context.Context) error {
	from, err := p.from(ctx)
	if err != nil {
		return err
	}
	p.begin(from)
	for signal, err := range p.store.Subscribe(ctx, from, wanted) {
		if err != nil {
			return err
		}
		p.take(signal)
	}
	return errors.New("the subscription ended without saying why")
}

// begin notes where it begins again: what is in the tables there may be anything but what was read before.
func (p *Pulse) begin(from eventstore.Mark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.again && !p.begun {
		p.floor = from.Position
	}
}

// from is where to go on: what was seen once is not left out later.
func (p *Pulse) from(ctx context.Context) (eventstore.Mark, error) {
	p.mu.RLock()
	begun, mark := p.begun, p.mark
	p.mu.RUnlock()
	if begun {
		return mark, nil
	}
	return p.From(ctx)
}

// forget leaves nothing of what was seen on a log that is gone.
func (p *Pulse) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun, p.again, p.mark = false, true, eventstore.Mark{}
	clear(p.changed)
}

func (p *Pulse) take(s eventstore.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Kind == eventstore.Event && concerns(s.Event) {
		p.changed[eventstore.Subject(s.Event.Stream)] = s.Event.Position
	}
	p.begun, p.mark = true, s.Mark
	for passed, at := range p.waits {
		if at <= s.Mark.Position {
			close(passed)
			delete(p.waits, passed)
		}
	}
	if p.told {
		p.log.Info("places are followed again", "position", s.Mark.Position)
		p.told = false
	}
}

// tell is one line an incident.
func (p *Pulse) tell(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.told {
		p.log.Warn("places cannot be followed", "position", p.mark.Position, "reason", err)
		p.told = true
	}
}
