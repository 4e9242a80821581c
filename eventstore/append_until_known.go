package eventstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Resend is when AppendUntilKnown sends a batch again, and after which pause. The zero Resend is ready for use.
type Resend struct {
	FirstPause time.Duration // before the second sending; each later pause is twice as long. 0: 5 ms
	MaxPause   time.Duration // 0: 1 s

	// WhenUnavailable makes it also send the batch again after an ErrUnavailable, which means that nothing was added.
	WhenUnavailable bool
	// OnFailure is called before each pause with the error of the last sending. It may be nil.
	OnFailure func(error)
}

// AppendUntilKnown appends a batch and resends the very same batch while the outcome is unknown. It is the contract of
// Store.Append as a loop: call it instead of Append.
//
// One ErrUnknown changes what later errors mean: an ErrUnavailable then reports only that the last attempt added nothing, so
// the loop continues. Success and every other error of the contract are final: a repeat returns the result of the first
// attempt, and is refused only if no attempt succeeded.
//
// It fails with ErrUnknown if the context ends, or the log is closed or has stopped, before the outcome is known. Otherwise
// it returns the error of Append unchanged. cenkalti/backoff would supply only the pauses: when the context ends, its Retry
// returns the context's error instead of ErrUnknown.
func AppendUntilKnown(ctx context.Context, store Store, stream string, expected Revision, batch []ProposedEvent, again Resend) (AppendResult, error) {
	isUnknown := false
	maxPause := cmp.Or(again.MaxPause, time.Second)
	for pause := cmp.Or(again.FirstPause, 5*time.Millisecond); ; pause = min(2*pause, maxPause) {
		done, err := store.Append(ctx, stream, expected, batch)
		isUnknown = isUnknown || errors.Is(err, ErrUnknown)
		if isUnknown && (errors.Is(err, ErrClosed) || errors.Is(err, ErrStopped)) {
			return done, fmt.Errorf("%w: %w", ErrUnknown, err)
		}
		isUnsent := errors.Is(err, ErrUnavailable) && (isUnknown || again.WhenUnavailable)
		if !isUnsent && !errors.Is(err, ErrUnknown) {
			return done, err
		}
		if again.OnFailure != nil {
			again.OnFailure(err)
		}
		select {
		case <-ctx.Done():
			if !isUnknown {
				return done, err
			}
			return done, fmt.Errorf("%w: %w", ErrUnknown, ctx.Err())
		case <-time.After(pause):
		}
	}
}
