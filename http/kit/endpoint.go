package kit

import (
	"context"
	"net/http"

	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/http/budget"
	"lieudit/schemas/refusal"
)

// Call is a request that has passed all checks of its surface. P is the type of the principal: the bearer of a key in the API,
// the bearer of a token in the customer area.
type Call[P any] struct {
	Principal P
	Vars      map[string]string // the variables of the path, unescaped
	Answer    *budget.Answer    // of memory for the answer
	Quota     Reservation       // of requests; nil if the surface does not count requests
}

// Reservation is the number of requests that a call counts as: one, unless its operation reserves more.
type Reservation interface {
	// Reserve counts n requests before the work, all of them or none. An operation calls it at most once. Its error is the
	// refusal to answer with.
	Reserve(ctx context.Context, n int64) error
	// Refund ends the reservation and takes back n of the requests that Reserve counted, even if the client is gone. A stream
	// calls it when it ends; the surface settles all other responses.
	Refund(ctx context.Context, n int64)
	// Usage returns how much of the quota is used. It includes this call once that has been counted, which is the case when a
	// LateBody is built.
	Usage() usage.QuotaUsage
}

// Operation does what a decoded request asks for. It has no http.ResponseWriter: the surface sends the Response that it returns,
// or answers its error.
type Operation[P any] func(context.Context, Call[P]) (Response, error)

// Endpoint decodes a request into the operation that it asks for. Decoding reads the body, and does no other work. The error is
// the answer to a request that cannot be decoded; the surface decides when to send it, for example only after it has checked the
// quota.
type Endpoint[P any] func(*http.Request) (Operation[P], error)

// NewEndpoint joins decode and do into an endpoint. do is called with the value that decode returned, and only if decode
// succeeded. Violations that do returns without an input get it from the request.
func NewEndpoint[P, T any](decode func(*http.Request) (T, error), do func(context.Context, Call[P], T) (Response, error)) Endpoint[P] {
	return func(r *http.Request) (Operation[P], error) {
		in, err := decode(r)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, c Call[P]) (Response, error) {
			response, err := do(ctx, c, in)
			return response, fillRequestInputs(err, r, c.Vars)
		}, nil
	}
}

// QueryEndpoint is an endpoint whose request is in the query, decoded into a Q. A body is not read.
func QueryEndpoint[P, Q any](do func(context.Context, Call[P], Q) (Response, error)) Endpoint[P] {
	return NewEndpoint(NewDecoder[Q]().DecodeQuery, do)
}

// BodyEndpoint is an endpoint whose request is in the body, decoded into a B. Parameters in the query are refused.
func BodyEndpoint[P, B any](do func(context.Context, Call[P], B) (Response, error)) Endpoint[P] {
	return NewEndpoint(NewDecoder[B]().DecodeBody, do)
}

// emptiable is a request whose parameters may each be left out, but not all of them. Tags cannot express that: they mark single
// parameters as required.
type emptiable interface{ IsEmpty() bool }

// NonEmptyQueryEndpoint is a QueryEndpoint that refuses a request with none of its parameters.
func NonEmptyQueryEndpoint[P any, Q emptiable](do func(context.Context, Call[P], Q) (Response, error)) Endpoint[P] {
	return NewEndpoint(refuseEmpty(NewDecoder[Q]().DecodeQuery), do)
}

// OpenQueryEndpoint is a NonEmptyQueryEndpoint that ignores parameters which Q does not declare.
func OpenQueryEndpoint[P any, Q emptiable](do func(context.Context, Call[P], Q) (Response, error)) Endpoint[P] {
	return NewEndpoint(refuseEmpty(NewDecoder[Q]().DecodeOpenQuery), do)
}

// NonEmptyBodyEndpoint is a BodyEndpoint that refuses a request with none of its members.
func NonEmptyBodyEndpoint[P any, B emptiable](do func(context.Context, Call[P], B) (Response, error)) Endpoint[P] {
	return NewEndpoint(refuseEmpty(NewDecoder[B]().DecodeBody), do)
}

// refuseEmpty wraps decode: a request that is decoded but empty is refusal.RequestMalformed.
func refuseEmpty[T emptiable](decode func(*http.Request) (T, error)) func(*http.Request) (T, error) {
	return func(r *http.Request) (T, error) {
		v, err := decode(r)
		if err == nil && v.IsEmpty() {
			return v, refusal.RequestMalformed
		}
		return v, err
	}
}

// Await waits until the read models show what a command appended, so that the client's next request sees it. at is the position
// of the last event that the command appended, or 0 if it appended none. A command that refuses may have appended an event too,
// which records the refusal. Await returns err, the error of the command, unchanged, so that a call of a command can be passed
// through. If wait gives up before the read models show the events, that is not an error: the command is done.
func Await(ctx context.Context, wait func(context.Context, eventstore.Position), at eventstore.Position, err error) error {
	if at > 0 {
		wait(ctx, at)
	}
	return err
}
