package usage

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
)

// ErrOpen: the period has not ended, or nothing was ever counted in it.
var ErrOpen = errors.New("the period cannot be closed")

// Close ends a period of a contract for good, with its total and the digest of its lines. One that is closed
// stays as it is. Whoever calls gives late requests their time first.
func (l *Ledger) Close(ctx context.Context, contract string, period plan.Period) error {
	if l.clock().Before(period.End()) {
		return fmt.Errorf("%w: it ends on %s", ErrOpen, period.Next)
	}
	stream := ledger.Stream(contract, period.First)
	for {
		f, last, err := l.Fold(ctx, stream)
		switch {
		case err != nil:
			return err
		case f.Closed():
			return nil
		case !f.Opened():
			return fmt.Errorf("%w: nobody has opened it", ErrOpen)
		}
		proposed, err := l.encode(ctx, stream, uuid.NewString(), f.Lines.Closing())
		if err != nil {
			return err
		}
		if _, err = l.append(ctx, stream, last, proposed); !errors.Is(err, eventstore.ErrConflict) {
			return err
		}
	}
}

// Fold is a stream folded from its first event, and the revision of its last.
func (l *Ledger) Fold(ctx context.Context, stream string) (*ledger.Folding, eventstore.Revision, error) {
	f, last := ledger.NewFolding(), eventstore.NoStream
	for r, err := range l.store.ReadStream(ctx, stream, 0, eventstore.Forward) {
		if err != nil {
			return nil, 0, fmt.Errorf("read %s: %w", stream, err)
		}
		e, err := event.Decode(r.Type, r.Data)
		if err != nil {
			return nil, 0, fmt.Errorf("%s@%d: %w", stream, r.Revision, err)
		}
		f.Apply(e, r.Time)
		last = r.Revision
	}
	return f, last, nil
}
