package server

import (
	"context"
	"net/http"
	"time"

	"lieudit/http/input"
	"lieudit/http/problem"
	"lieudit/schemas/grant"
)

// endpoint reads a request and says what is to be done about it. Its error is that the request cannot be read, or that its
// body was not; all else that is wrong with a request is told by the work, which comes after the quota.
type endpoint func(*http.Request) (work, error)

// work does what a request asks for and returns the body of the answer.
type work func(context.Context, call) (any, error)

// call is a request that passed every check.
type call struct {
	grant grant.Grant
	now   time.Time
	vars  map[string]string // of the path

	caller *caller
}

// noRouter answers for the routes: no routing engine is loaded.
func noRouter(*http.Request) (work, error) {
	return func(context.Context, call) (any, error) { return nil, problem.RoutingUnavailable() }, nil
}

// asks is an endpoint that reads its request from the query.
func asks[Q any](do func(context.Context, call, Q) (any, error)) endpoint {
	return reads(input.For[Q]().Query, do)
}

// takes is an endpoint that reads its request from the body.
func takes[B any](do func(context.Context, call, B) (any, error)) endpoint {
	return reads(input.For[B]().Body, do)
}

// reader is how a request is read.
type reader[T any] func(*http.Request) (T, error)

func asked[T any]() reader[T] { return input.For[T]().Query }
func told[T any]() reader[T]  { return input.For[T]().Body }

// needs is an endpoint whose parameters may each be left out, but not all of them.
func needs[T interface{ Nothing() bool }](read func() reader[T], do func(context.Context, call, T) (any, error)) endpoint {
	in := read()
	return reads(func(r *http.Request) (T, error) {
		v, err := in(r)
		if err == nil && v.Nothing() {
			return v, problem.BadRequest()
		}
		return v, err
	}, do)
}

func reads[T any](read func(*http.Request) (T, error), do func(context.Context, call, T) (any, error)) endpoint {
	return func(r *http.Request) (work, error) {
		in, err := read(r)
		if precedesQuota(statusOf(err)) {
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

// precedesQuota says whether the failure to read a request with a status is told at once, and never counts: it is no
// request, or its large body was not read (the key ended, the quota is spent, there is no room).
func precedesQuota(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusUnauthorized || status == http.StatusTooManyRequests ||
		status >= http.StatusInternalServerError
}
