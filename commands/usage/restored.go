package usage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// followOn is follow that goes on when an older copy of the log was restored. The books were folded from what may be gone,
// so they are opened again; what happened to accounts by then is in what they are opened with, and in the key ring. A log
// with another identity tells nothing about them: the right one is waited for.
func (l *Ledger) followOn(ctx context.Context, core eventstore.Store, after eventstore.Mark) error {
	for told := false; ; {
		err := l.follow(ctx, core, &after)
		var diverged *eventstore.DivergedError
		if !errors.As(err, &diverged) {
			return err
		}
		if diverged.Other {
			if !told {
				l.log.Warn("accounts are not followed: this is another log", "reason", err)
			}
			if told = true; !sleep(ctx, time.Second) {
				return nil
			}
			continue
		}
		l.log.Warn("accounts are followed from the end of a log that was restored", "reason", err)
		if after, err = endOf(ctx, core); err != nil {
			return ended(ctx, err)
		}
		l.closeBooks()
	}
}

// closeBooks has all books opened again.
func (l *Ledger) closeBooks() {
	l.contracts.Range(func(_, c any) bool {
		if b := c.(*contract).book.Load(); b != nil {
			b.queue.close()
		}
		return true
	})
}

// noEvent is the id of none.
var noEvent uuid.UUID

// nobody is a category without streams.
const nobody = "nobody"

// endOf is a mark at the end of a log, once that can be read.
func endOf(ctx context.Context, log eventstore.Store) (end eventstore.Mark, err error) {
	for s, err := range log.Subscribe(ctx, eventstore.Mark{}, eventstore.Filter{nobody}) {
		if err != nil || s.Kind == eventstore.CaughtUp {
			return s.Mark, err
		}
	}
	return end, errors.New("the subscription ended without saying why")
}

// readOn yields the events after the one that was folded last, which has to be where it was: else the stream is another
// one, of a log that was restored, and the book is gone.
func (b *book) readOn(ctx context.Context, yield func(eventstore.Recorded, error) bool) {
	from, isKnown := b.revision+1, true
	if b.last != noEvent {
		from, isKnown = b.revision, false
	}
	for r, err := range b.ledger.store.ReadStream(ctx, b.stream, from, eventstore.Forward) {
		switch {
		case err == nil && !isKnown && (r.Revision != b.revision || r.ID != b.last):
			yield(r, fmt.Errorf("%w: another event is at %s@%d", errGone, b.stream, b.revision))
			return
		case err == nil && !isKnown:
			isKnown = true
			continue
		}
		if !yield(r, err) || err != nil {
			return
		}
	}
	if !isKnown {
		yield(eventstore.Recorded{}, fmt.Errorf("%w: %s ends before %d", errGone, b.stream, b.revision))
	}
}
