package usage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// followAccountsAcrossRestores is follow that goes on when an older copy of the log was restored. The books were folded from what may be gone,
// so they are opened again; what happened to accounts by then is in what they are opened with, and in the key ring. A log
// with another identity tells nothing about them: the right one is waited for.
func (m *Meter) followAccountsAcrossRestores(ctx context.Context, core eventstore.Store, after eventstore.Checkpoint) error {
	for hasWarned := false; ; {
		err := m.followAccounts(ctx, core, &after)
		var diverged *eventstore.DivergedError
		if !errors.As(err, &diverged) {
			return err
		}
		if diverged.IsOtherLog {
			if !hasWarned {
				m.log.Warn("accounts are not followed: this is another log", "reason", err)
			}
			if hasWarned = true; !sleep(ctx, time.Second) {
				return nil
			}
			continue
		}
		m.log.Warn("accounts are followed from the end of a log that was restored", "reason", err)
		if after, err = readEndCheckpoint(ctx, core); err != nil {
			return ignoreIfCancelled(ctx, err)
		}
		m.retireAllPeriods()
	}
}

// retireAllPeriods has all books opened again.
func (m *Meter) retireAllPeriods() {
	m.contracts.Range(func(_, c any) bool {
		if p := c.(*contract).current.Load(); p != nil {
			p.queue.retire()
		}
		return true
	})
}

// noEventID is the id of none.
var noEventID uuid.UUID

// emptyCategory is a category without streams.
const emptyCategory = "nobody"

// readEndCheckpoint is a mark at the end of a log, once that can be read.
func readEndCheckpoint(ctx context.Context, log eventstore.Store) (end eventstore.Checkpoint, err error) {
	for s, err := range log.Subscribe(ctx, eventstore.Checkpoint{}, eventstore.Filter{emptyCategory}) {
		if err != nil || s.Kind == eventstore.CaughtUp {
			return s.Checkpoint, err
		}
	}
	return end, errors.New("the subscription ended without saying why")
}

// readNewEvents yields the events after the one that was folded last, which has to be where it was: else the stream is another
// one, of a log that was restored, and the book is gone.
func (p *activePeriod) readNewEvents(ctx context.Context, yield func(eventstore.RecordedEvent, error) bool) {
	from, isVerified := p.revision+1, true
	if p.lastEventID != noEventID {
		from, isVerified = p.revision, false
	}
	for r, err := range p.meter.store.ReadStream(ctx, p.stream, from, eventstore.Forward) {
		switch {
		case err == nil && !isVerified && (r.Revision != p.revision || r.ID != p.lastEventID):
			yield(r, fmt.Errorf("%w: another event is at %s@%d", errRetired, p.stream, p.revision))
			return
		case err == nil && !isVerified:
			isVerified = true
			continue
		}
		if !yield(r, err) || err != nil {
			return
		}
	}
	if !isVerified {
		yield(eventstore.RecordedEvent{}, fmt.Errorf("%w: %s ends before %d", errRetired, p.stream, p.revision))
	}
}
