package eventstore_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/eventstore"
)

// scriptedStore answers appends with the errors of a script, in order, and repeats the last one.
type scriptedStore struct {
	eventstore.Store
	errs []error
	sent []time.Time
}

func (s *scriptedStore) Append(context.Context, string, eventstore.Revision, []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	err := s.errs[min(len(s.sent), len(s.errs)-1)]
	s.sent = append(s.sent, time.Now())
	return eventstore.AppendResult{}, err
}

func TestAppendUntilKnown(t *testing.T) {
	t.Parallel()
	unknown, unavailable := eventstore.ErrUnknown, eventstore.ErrUnavailable
	for _, c := range []struct {
		name     string
		errs     []error
		again    eventstore.Resend
		sendings int
		want     []error // the errors that the result matches; empty: success
	}{
		{"success is final", []error{nil}, eventstore.Resend{}, 1, nil},
		{"an unavailable log added nothing", []error{unavailable}, eventstore.Resend{}, 1, []error{unavailable}},
		{"an unavailable log is asked again if that is wanted", []error{unavailable, nil}, eventstore.Resend{WhenUnavailable: true}, 2, nil},
		{"an unknown outcome is found out", []error{unknown, unknown, nil}, eventstore.Resend{}, 3, nil},
		{"unavailable after unknown settles nothing", []error{unknown, unavailable, nil}, eventstore.Resend{}, 3, nil},
		{"a conflict after unknown is final", []error{unknown, eventstore.ErrConflict}, eventstore.Resend{}, 2, []error{eventstore.ErrConflict}},
		{"closed after unknown is unknown", []error{unknown, eventstore.ErrClosed}, eventstore.Resend{}, 2, []error{unknown, eventstore.ErrClosed}},
		{"closed at once is closed", []error{eventstore.ErrClosed}, eventstore.Resend{}, 1, []error{eventstore.ErrClosed}},
		{"the context ends an unknown outcome", []error{unknown}, eventstore.Resend{}, 13, []error{unknown, context.DeadlineExceeded}},
		{"the context ends an unavailable log", []error{unavailable}, eventstore.Resend{WhenUnavailable: true}, 13, []error{unavailable}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 5500*time.Millisecond)
				defer cancel()
				store := &scriptedStore{errs: c.errs}
				_, err := eventstore.AppendUntilKnown(ctx, store, "s", eventstore.Any, nil, c.again)
				if len(store.sent) != c.sendings {
					t.Errorf("sent %d times, want %d", len(store.sent), c.sendings)
				}
				if (err != nil) != (len(c.want) > 0) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				for _, want := range c.want {
					if !errors.Is(err, want) {
						t.Errorf("got %v, want %v", err, want)
					}
				}
			})
		})
	}
}

func TestAppendUntilKnownPausesAsItIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &scriptedStore{errs: []error{eventstore.ErrUnknown, eventstore.ErrUnknown, eventstore.ErrUnavailable, eventstore.ErrUnknown, nil}}
		var failures []error
		start := time.Now()
		_, err := eventstore.AppendUntilKnown(t.Context(), store, "s", eventstore.Any, nil, eventstore.Resend{
			FirstPause: time.Millisecond, MaxPause: 3 * time.Millisecond, OnFailure: func(err error) { failures = append(failures, err) },
		})
		if err != nil || !slices.Equal(failures, store.errs[:4]) {
			t.Errorf("got %v after %v, want success after %v", err, failures, store.errs[:4])
		}
		var got []time.Duration
		for _, at := range store.sent {
			got = append(got, at.Sub(start)/time.Millisecond)
		}
		if want := []time.Duration{0, 1, 3, 6, 9}; !slices.Equal(got, want) {
			t.Errorf("sent after %v ms, want %v", got, want)
		}
	})
}
