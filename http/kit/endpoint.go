package kit

import (
	"context"
	"net/http"

	"lieudit/eventstore"
	"lieudit/schemas/refusal"
)

// Call is a request that passed every check before its work. P is who makes it: each surface has a type for that.
type Call[P any] struct {
	Principal P
	Vars      map[string]string // the variables of the path, unescaped
}

// Operation does what a request asks for. It runs after the request was decoded, and writes nothing itself.
type Operation[P any] func(context.Context, Call[P]) (Response, error)

// Endpoint decodes a request into the operation that it asks for. An error is the answer to a request that cannot be
// decoded; the surface decides when to send it.
type Endpoint[P any] func(*http.Request) (Operation[P], error)

// NewEndpoint joins how a request is decoded with what is done about it.
func NewEndpoint[P, T any](decode func(*http.Request) (T, error), do func(context.Context, Call[P], T) (Response, error)) Endpoint[P] {
	return func(r *http.Request) (Operation[P], error) {
		in, err := decode(r)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, c Call[P]) (Response, error) { return do(ctx, c, in) }, nil
	}
}

// QueryEndpoint is an endpoint whose request is in the query.
func QueryEndpoint[P, Q any](do func(context.Context, Call[P], Q) (Response, error)) Endpoint[P] {
	return NewEndpoint(NewDecoder[Q]().DecodeQuery, do)
}

// BodyEndpoint is an endpoint whose request is in the body.
func BodyEndpoint[P, B any](do func(context.Context, Call[P], B) (Response, error)) Endpoint[P] {
	return NewEndpoint(NewDecoder[B]().DecodeBody, do)
}

// emptier is a request whose parameters may each be left out, but not all of them.
type emptier interface{ IsEmpty() bool }

// NonEmptyQueryEndpoint is a QueryEndpoint that refuses a request with none of its parameters.
func NonEmptyQueryEndpoint[P any, Q emptier](do func(context.Context, Call[P], Q) (Response, error)) Endpoint[P] {
	return NewEndpoint(refuseEmpty(NewDecoder[Q]().DecodeQuery), do)
}

// NonEmptyBodyEndpoint is a BodyEndpoint that refuses a request with none of its members.
func NonEmptyBodyEndpoint[P any, B emptier](do func(context.Context, Call[P], B) (Response, error)) Endpoint[P] {
	return NewEndpoint(refuseEmpty(NewDecoder[B]().DecodeBody), do)
}

func refuseEmpty[T emptier](decode func(*http.Request) (T, error)) func(*http.Request) (T, error) {
	return func(r *http.Request) (T, error) {
		v, err := decode(r)
		if err == nil && v.IsEmpty() {
			return v, refusal.RequestMalformed
		}
		return v, err
	}
}

// Await waits until the read models show what a command, or its recorded refusal, appended up to a position; 0: it appended
// nothing. It returns err, the result of the command.
func Await(ctx context.Context, wait func(context.Context, eventstore.Position), at eventstore.Position, err error) error {
	if at > 0 {
		wait(ctx, at)
	}
	return err
}
