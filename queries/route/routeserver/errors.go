package routeserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"lieudit/queries/route"
)

// BadAnswerError is an invalid answer of a server. It is a route.ErrUnavailable.
type BadAnswerError struct{ Reason string }

func (e *BadAnswerError) Error() string { return "the routing server answered " + e.Reason }

// Unwrap returns route.ErrUnavailable.
func (e *BadAnswerError) Unwrap() error { return route.ErrUnavailable }

// Decode decodes the JSON of an answer. It fails with a *BadAnswerError.
func Decode(body []byte, into any) error {
	switch err := json.Unmarshal(body, into); {
	case err == nil:
		return nil
	case json.Valid(body):
		return &BadAnswerError{"JSON of another form"}
	}
	return &BadAnswerError{"no JSON"}
}

// lostError means that no answer came. It is a route.ErrUnavailable. It does not wrap its cause, which could be mistaken for the
// deadline of a request.
type lostError struct {
	waited time.Duration // the whole time limit; 0 for another cause
	cause  error
}

// newLostError is the error of a request whose context had a time limit.
func newLostError(ctx context.Context, limit time.Duration, cause error) *lostError {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &lostError{waited: limit, cause: cause}
	}
	return &lostError{cause: cause}
}

func (e *lostError) Error() string {
	if e.waited > 0 {
		return noAnswerWithin(e.waited)
	}
	return "the routing server does not answer: " + e.cause.Error()
}

func (e *lostError) Unwrap() error { return route.ErrUnavailable }

// pausedError means that a server is not called for a while because of its last failure, which it wraps.
type pausedError struct{ last error }

func (e *pausedError) Error() string {
	last := e.last.Error()
	if lost, ok := errors.AsType[*lostError](e.last); ok && lost.waited == 0 {
		last = lost.cause.Error()
	}
	return "the routing server failed before and is left alone for a moment; last: " + last
}

func (e *pausedError) Unwrap() error { return e.last }

// endedError means that the deadline of a question passed before the server's time limit. It is a context.DeadlineExceeded.
type endedError struct{ waited time.Duration }

func (e *endedError) Error() string { return noAnswerWithin(e.waited) }
func (e *endedError) Unwrap() error { return context.DeadlineExceeded }

// noAnswerWithin describes how long the caller waited for an answer, in whole seconds from one second on.
func noAnswerWithin(d time.Duration) string {
	if d = max(0, d).Round(time.Millisecond); d < time.Second {
		return fmt.Sprintf("no answer within %d ms", d.Milliseconds())
	}
	return fmt.Sprintf("no answer within %.0f s", d.Seconds())
}

// IsFailure reports whether an error is a failure of a server: it does not answer, or not as it should. A justified refusal is not
// a failure.
func IsFailure(err error) bool {
	_, isBad := errors.AsType[*BadAnswerError](err)
	_, isLost := errors.AsType[*lostError](err)
	return isBad || isLost
}

// IsUnconnected reports whether an error means that no connection to a server could be made; after such an error any answer shows
// that the server is back.
func IsUnconnected(err error) bool {
	lost, ok := errors.AsType[*lostError](err)
	if !ok {
		return false
	}
	op, ok := errors.AsType[*net.OpError](lost.cause)
	return ok && op.Op == "dial"
}

// withoutURL is an error of net/http without the URL, which holds positions of customers.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
