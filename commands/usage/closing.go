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

// ErrNotClosable: the period has not ended, or nothing was ever counted in it.
var ErrNotClosable = errors.New("the period cannot be closed")

// ClosePeriod ends a period of a contract for good, with its total and the digest of its lines. One that is closed
// stays as it is. Whoever calls gives late requests their time first.
func (m *Meter) ClosePeriod(ctx context.Context, contract string, period plan.Period) error {
	if m.clock().Before(period.End()) {
		return fmt.Errorf("%w: it ends on %s", ErrNotClosable, period.Next)
	}
	stream := ledger.StreamName(contract, period.First)
	for {
		f, last, err := m.FoldStream(ctx, stream)
		switch {
		case err != nil:
			return err
		case f.IsClosed():
			return nil
		case !f.IsOpen():
			return fmt.Errorf("%w: nobody has opened it", ErrNotClosable)
		}
		proposed, err := m.encodeEvents(ctx, stream, uuid.NewString(), f.Lines.ClosingEvent())
		if err != nil {
			return err
		}
		if _, err = m.appendUntilKnown(ctx, stream, last, proposed); !errors.Is(err, eventstore.ErrConflict) {
			return err
		}
	}
}

// FoldStream is a stream folded from its first event, and the revision of its last.
func (m *Meter) FoldStream(ctx context.Context, stream string) (*ledger.PeriodUsage, eventstore.Revision, error) {
	f, last := ledger.NewPeriodUsage(), eventstore.NoStream
	for r, err := range m.store.ReadStream(ctx, stream, 0, eventstore.Forward) {
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
