package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/eventstore"
)

// AppendUntilKnown appends a batch, and sends the very same one again for as long as its fate is unknown: once it is, an
// answer that a later sending added nothing says nothing of the first. eventstore.ErrUnknown means that the context
// ended, or the log was closed, before the outcome was known.
func AppendUntilKnown(ctx context.Context, store eventstore.Store, stream string, expected eventstore.Revision, batch []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	isUnknown := false
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		done, err := store.Append(ctx, stream, expected, batch)
		isUnknown = isUnknown || errors.Is(err, eventstore.ErrUnknown)
		if isUnknown && errors.Is(err, eventstore.ErrClosed) {
			return done, fmt.Errorf("%w: %w", eventstore.ErrUnknown, err)
		}
		if !isUnknown || !errors.Is(err, eventstore.ErrUnknown) && !errors.Is(err, eventstore.ErrUnavailable) {
			return done, err
		}
		select {
		case <-ctx.Done():
			return done, fmt.Errorf("%w: %w", eventstore.ErrUnknown, ctx.Err())
		case <-time.After(pause):
		}
	}
}
