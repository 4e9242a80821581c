package api

import (
	"context"
	"net/http"
	"time"

	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/schemas/access"
)

// endpoint reads a request and says what is to be done about it. Its error is that the request cannot be read, or that its
// body was not; all else that is wrong with a request is told by the work, which comes after the quota.
type endpoint func(*http.Request) (operation, error)

// operation does what a request asks for and returns the body of the answer.
type operation func(context.Context, call) (any, error)

// call is a request that passed every check.
type call struct {
	grant access.Grant
	now   time.Time
	vars  map[string]string // of the path

	budget *waitBudget
}

// routingUnavailable answers for the routes: no routing engine is loaded.
func routingUnavailable(*http.Request) (operation, error) {
	return func(context.Context, call) (any, error) { return nil, problem.RoutingUnavailable() }, nil
}

// queryEndpoint is an endpoint that reads its request from the query.
func queryEndpoint[Q any](do func(context.Context, call, Q) (any, error)) endpoint {
	return newEndpoint(kit.NewDecoder[Q]().DecodeQuery, do)
}

// bodyEndpoint is an endpoint that reads its request from the body.
func bodyEndpoint[B any](do func(context.Context, call, B) (any, error)) endpoint {
	return newEndpoint(kit.NewDecoder[B]().DecodeBody, do)
}

// requestReader is how a request is read.
type requestReader[T any] func(*http.Request) (T, error)

func queryReader[T any]() requestReader[T] { return kit.NewDecoder[T]().DecodeQuery }
func bodyReader[T any]() requestReader[T]  { return kit.NewDecoder[T]().DecodeBody }

// nonEmptyEndpoint is an endpoint whose parameters may each be left out, but not all of them.
func nonEmptyEndpoint[T interface{ IsEmpty() bool }](newReader func() requestReader[T], do func(context.Context, call, T) (any, error)) endpoint {
	read := newReader()
	return newEndpoint(func(r *http.Request) (T, error) {
		v, err := read(r)
		if err == nil && v.IsEmpty() {
			return v, problem.BadRequest()
		}
		return v, err
	}, do)
}

func newEndpoint[T any](read func(*http.Request) (T, error), do func(context.Context, call, T) (any, error)) endpoint {
	return func(r *http.Request) (operation, error) {
		in, err := read(r)
		if isAnsweredBeforeQuota(statusOf(err)) {
			return nil, err
		}
		return func(ctx context.Context, c call) (any, error) {
			if err != nil {
				return nil, err
			}
			return do(ctx, c, in)
		}, nil
	}
}

// isAnsweredBeforeQuota says whether the failure to read a request with a status is told at once, and never counts: it is no
// request, or its large body was not read (the key ended, the quota is spent, there is no room).
func isAnsweredBeforeQuota(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusUnauthorized || status == http.StatusTooManyRequests ||
		status >= http.StatusInternalServerError
}
