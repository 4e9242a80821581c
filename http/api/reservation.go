package api

import (
	"context"
	"errors"
	"net/http"

	"lieudit/commands/usage"
	"lieudit/eventstore/waitlimit"
	"lieudit/http/auth"
	"lieudit/http/problem"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
)

// Meter counts requests on the log: a *usage.Meter, whose methods are documented there, or Unmetered. It must be safe for
// concurrent use.
type Meter interface {
	CheckQuota(ctx context.Context, wait *waitlimit.Wait, g grant.Grant, endpoint string) error
	Charge(ctx context.Context, wait *waitlimit.Wait, g grant.Grant, endpoint string, n int64) (usage.Charge, error)
	Settle(ctx context.Context, c usage.Charge, refunded int64) error
}

// CountingPolicy decides which requests with a valid key count. The zero CountingPolicy is in the customer's favour: those that
// were admitted to their work count, but for answers 413 and 5xx. The requests of isCounted never count. Section 8 of the specification exempts only GET /version
// and 400: that is CountAll. Requests without a valid key, and those refused by the quota or by the scope of a publishable
// key, never count.
type CountingPolicy struct {
	Refusals bool // 403 of the plan, 404 of a route, 405
	Failures bool // 413, and 5xx but for 503
}

// CountAll counts all that the specification does not exempt and that was served or refused with certainty: see isCounted.
var CountAll = CountingPolicy{Refusals: true, Failures: true}

// isCounted reports whether a request that was admitted to its work counts, by the status of its answer. One whose key turns
// out to be no longer valid, or cannot be checked, never does. Nor does a file that turns out to be malformed, or to have more
// rows than are left: it is read after the quota was checked.
func (c CountingPolicy) isCounted(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusServiceUnavailable, http.StatusBadRequest, http.StatusTooManyRequests:
		return false
	case http.StatusForbidden: // of a plan that lacks what a parameter asks for
		return c.Refusals
	}
	return c.Failures || status < http.StatusInternalServerError && status != http.StatusRequestEntityTooLarge
}

// refundOf returns how many of n requests that were counted do not count, by the status of the answer. A refusal costs no more
// than one request, whatever was reserved for the work.
func (c CountingPolicy) refundOf(n int64, status int) int64 {
	switch {
	case !c.isCounted(status):
		return n
	case status >= http.StatusBadRequest:
		return n - 1
	}
	return 0
}

// reservation is what one request is counted as, from the check of its key to its answer. serveAuthenticated makes it, and ends it:
//
//	a read        admit checks the quota      the work    settle counts one
//	a write       admit reserves one          the work    settle refunds it if it does not count
//	by its size   admit checks the quota      Reserve     settle refunds what does not count
//	a file        admit checks the quota      Reserve     Refund takes back the rows that were not answered
//
// What is counted is durable before the answer is sent. Counting may wait for the log, so the key is checked again after it:
// no answer is given, and nothing counts, for a key that has ended meanwhile, unless a write was carried out. It implements kit.Reservation. It is not safe for
// concurrent use.
type reservation struct {
	*auth.Authentication
	h          *handler
	endpoint   string // a method and a path of routes.go, such as "GET /me"
	isWrite    bool
	isFile     bool
	charge     usage.Charge
	refundable int64 // requests of the charge that may still be refunded
	counted    int64 // requests of the charge without those that were refunded
	isSettled  bool
}

// admit admits the request to its work, or refuses it.
func (r *reservation) admit(ctx context.Context) error {
	if r.isWrite {
		return r.Reserve(ctx, 1)
	}
	return r.check(ctx)
}

// check refuses a request whose account is at its cap, or whose key is no longer valid. It counts nothing.
func (r *reservation) check(ctx context.Context) error {
	err := r.h.meter.CheckQuota(ctx, r.Wait, r.Grant, r.endpoint)
	if refused := r.h.authenticator.Revalidate(ctx, r.Authentication); refused != nil {
		return refused
	}
	return r.toRefusal(err)
}

// Reserve implements kit.Reservation. It is called once at most. If the key turns out to be no longer valid, what was counted is refunded.
func (r *reservation) Reserve(ctx context.Context, n int64) error {
	err := r.count(ctx, n)
	if refused := r.h.authenticator.Revalidate(ctx, r.Authentication); refused != nil {
		r.Refund(ctx, n)
		return refused
	}
	return err
}

// count counts n requests. Its error is a refusal.
func (r *reservation) count(ctx context.Context, n int64) error {
	c, err := r.h.meter.Charge(ctx, r.Wait, r.Grant, r.endpoint, n)
	if err != nil {
		return r.toRefusal(err)
	}
	r.charge, r.refundable, r.counted = c, n, n
	return nil
}

// countRefused counts a request that is refused for cause before its work, if such requests count, and returns cause. At the cap
// it counts nothing. If it cannot be counted it returns the error of counting.
func (r *reservation) countRefused(ctx context.Context, cause error) error {
	if !r.h.Counting.Refusals {
		return cause
	}
	err := r.count(ctx, 1)
	if err != nil && problem.StatusOf(err) != http.StatusTooManyRequests {
		return err
	}
	r.refund(ctx, 0)
	return cause
}

// settle ends the reservation with the status of the answer that is about to be sent. Its error is answered in place of that answer.
// A write is done by now, so its answer is sent whatever became of the key. The rows of a file that is answered stay reserved
// until its stream ends. A second call does nothing.
func (r *reservation) settle(ctx context.Context, status int) (err error) {
	if r.isSettled || r.isFile && status == http.StatusOK {
		return nil
	}
	if r.refundable == 0 && r.h.Counting.isCounted(status) {
		err = r.count(ctx, 1)
	}
	if !r.isWrite {
		if refused := r.h.authenticator.Revalidate(ctx, r.Authentication); refused != nil {
			r.Refund(ctx, r.refundable)
			return refused
		}
	}
	r.refund(context.WithoutCancel(ctx), r.h.Counting.refundOf(r.refundable, status))
	return err
}

// Refund implements kit.Reservation. It waits no longer than the request may. A second call does nothing.
func (r *reservation) Refund(ctx context.Context, n int64) {
	ctx, cancel := r.Wait.Detach(ctx)
	defer cancel()
	r.refund(ctx, n)
}

// refund ends the reservation and takes back n requests.
func (r *reservation) refund(ctx context.Context, n int64) {
	r.isSettled = true
	if r.refundable == 0 {
		return
	}
	r.refundable = 0
	r.counted -= n
	if err := r.h.meter.Settle(ctx, r.charge, n); err != nil {
		r.h.Log.Warn("a refund is not durable yet", "account", r.Account, "endpoint", r.endpoint, "reason", err)
	}
}

// Usage implements kit.Reservation.
func (r *reservation) Usage() usage.QuotaUsage { return r.charge.QuotaUsage }

// toRefusal turns an error of the meter into the refusal to answer with. An error that is neither about the quota nor about
// the key means that the count could not be recorded, so the request cannot be served for now.
func (r *reservation) toRefusal(err error) error {
	spent, isSpent := errors.AsType[*usage.QuotaExceededError](err)
	switch {
	case err == nil:
		return nil
	case isSpent && r.Plan == plan.Discovery:
		return refusal.DiscoveryQuotaSpent.With(refusal.Details{Limit: spent.Limit})
	case isSpent:
		return refusal.QuotaSpent.With(refusal.Details{Plan: r.Plan})
	case errors.Is(err, usage.ErrRevoked):
		return refusal.KeyInvalid
	}
	return refusal.AuthUnavailable
}

// Unmetered is a Meter that admits every request and counts none.
type Unmetered struct{}

// CheckQuota implements Meter.
func (Unmetered) CheckQuota(context.Context, *waitlimit.Wait, grant.Grant, string) error { return nil }

// Charge implements Meter. It shows the quota of the grant, and none of it used.
func (Unmetered) Charge(_ context.Context, _ *waitlimit.Wait, g grant.Grant, _ string, _ int64) (usage.Charge, error) {
	return usage.Charge{QuotaUsage: usage.QuotaUsage{Limit: g.Quota}}, nil
}

// Settle implements Meter.
func (Unmetered) Settle(context.Context, usage.Charge, int64) error { return nil }
