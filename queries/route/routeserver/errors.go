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

// BadAnswerError says that a server answered what it should not. It is a route.ErrUnavailable.
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

// lostError says that no answer came. It is a route.ErrUnavailable. It does not wrap its cause, which may look like the end of a
// request's time.
type lostError struct {
	waited time.Duration // the whole time limit; 0 where something else is the cause
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

// pausedError says that a server is left alone because of its last failure, which it wraps.
type pausedError struct{ last error }

func (e *pausedError) Error() string {
	last := e.last.Error()
	if lost, ok := errors.AsType[*lostError](e.last); ok && lost.waited == 0 {
		last = lost.cause.Error()
	}
	return "the routing server failed before and is left alone for a moment; last: " + last
}

func (e *pausedError) Unwrap() error { return e.last }

// endedError says that the time of a question ended before the server's own. It is a context.DeadlineExceeded.
type endedError struct{ waited time.Duration }

func (e *endedError) Error() string { return noAnswerWithin(e.waited) }
func (e *endedError) Unwrap() error { return context.DeadlineExceeded }

// noAnswerWithin says how long an answer was waited for, from a second on in whole ones.
func noAnswerWithin(d time.Duration) string {
	if d = max(0, d).Round(time.Millisecond); d < time.Second {
		return fmt.Sprintf("no answer within %d ms", d.Milliseconds())
	}
	return fmt.Sprintf("no answer within %.0f s", d.Seconds())
}

// IsFailure reports whether an error is a failure of a server: it does not answer, or not as it should. What a server refuses for good
// reason is none.
func IsFailure(err error) bool {
	_, isBad := errors.AsType[*BadAnswerError](err)
	_, isLost := errors.AsType[*lostError](err)
	return isBad || isLost
}

// IsUnconnected reports whether an error is that no connection to a server could be made: one that answers anything is back.
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
