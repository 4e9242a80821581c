package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"lieudit/commands/usage"
	"lieudit/http/auth"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
)

// RequestMeter counts requests against the quotas of accounts, and waits for a log as long as their Wait allows. An endpoint is a method and a path of routes.go, such as
// "GET /me". Its errors are refusals: of the quota, of a key that is no longer valid, or refusal.AuthUnavailable where the count
// cannot be recorded. It must be safe for concurrent use.
type RequestMeter interface {
	// Admit admits a request to its work, or refuses it. It counts n requests before the work, all of them or none where the
	// quota does not suffice; with 0 the request is counted after it, as one. The SettleFunc must be called once, after the work
	// and before the answer is sent; with 0 it need not be.
	Admit(ctx context.Context, a *auth.Authentication, endpoint string, before int64) (SettleFunc, error)

	// ReserveRows counts the rows of a file before they are answered, each as a request: all of them, or none where the quota does
	// not suffice. The SettleRowsFunc must be called once.
	ReserveRows(ctx context.Context, a *auth.Authentication, endpoint string, rows int64) (SettleRowsFunc, error)

	// CheckQuota refuses an account that is known to be at its cap. It counts nothing.
	CheckQuota(ctx context.Context, a *auth.Authentication, endpoint string) error

	// CountRefused counts a request that is refused before its work and not for its quota.
	CountRefused(ctx context.Context, a *auth.Authentication, endpoint string) error
}

// SettleFunc ends the metering of a request with the status of the answer that is about to be sent, and returns what is used
// of the quota by then. Its error is answered in place of the answer. What was counted before the work stays counted where it was
// answered; a refusal leaves one request of it, or none.
type SettleFunc func(ctx context.Context, status int) (usage.QuotaUsage, error)

// SettleRowsFunc ends the metering of a file. Of the rows that were counted those that were not answered are refunded.
type SettleRowsFunc func(ctx context.Context, unanswered int64)

// bodyWithUsage makes the body of an answer that shows what is used of the quota, this request included.
type bodyWithUsage func(usage.QuotaUsage) any

// IsUnfinished implements kit.Unfinished.
func (bodyWithUsage) IsUnfinished() {}

// CountingPolicy decides which requests with a valid key count. The zero CountingPolicy is in the customer's favour: those that
// were admitted to their work count, but for answers 413 and 5xx. Section 8 of the specification exempts only GET /version
// and 400: that is CountAll. Requests without a valid key, and those refused by the quota or by the scope of a publishable
// key, never count.
type CountingPolicy struct {
	Refusals bool // 403 of the plan, 404 of a route, 405
	Failures bool // 413 and 5xx
}

// CountAll counts all that the specification does not exempt.
var CountAll = CountingPolicy{Refusals: true, Failures: true}

// isCounted reports whether a request that was admitted to its work counts, by the status of its answer. One whose key turns
// out to be no longer valid, or cannot be checked, never does, nor does a file, which is read after the quota was checked, that turns out to be
// malformed or to have more rows than are left.
func (c CountingPolicy) isCounted(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusServiceUnavailable, http.StatusBadRequest, http.StatusTooManyRequests:
		return false
	case http.StatusForbidden: // of a plan that lacks what a parameter asks for
		return c.Refusals
	}
	return c.Failures || status < http.StatusInternalServerError && status != http.StatusRequestEntityTooLarge
}

// policyMeter is a RequestMeter that counts with a usage.Meter the requests that count by a policy.
type policyMeter struct {
	*usage.Meter
	policy CountingPolicy
	log    *slog.Logger
}

// NewRequestMeter counts with a meter the requests that count by a policy. log gets refunds that are not durable in time.
func NewRequestMeter(m *usage.Meter, c CountingPolicy, log *slog.Logger) RequestMeter {
	return policyMeter{m, c, log}
}

// Admit implements RequestMeter. With nothing to count before the work it only checks the quota: the SettleFunc counts the request, if
// its answer counts.
func (m policyMeter) Admit(ctx context.Context, a *auth.Authentication, endpoint string, before int64) (SettleFunc, error) {
	if before > 0 {
		return m.admitCounted(ctx, a, endpoint, before)
	}
	if err := m.Meter.CheckQuota(ctx, a.Wait, a.Grant, endpoint); err != nil {
		return nil, m.toRefusal(a, err)
	}
	return func(ctx context.Context, status int) (usage.QuotaUsage, error) {
		if !m.policy.isCounted(status) {
			return usage.QuotaUsage{}, nil
		}
		spent, err := m.CountRequest(ctx, a.Wait, a.Grant, endpoint)
		return spent, m.toRefusal(a, err)
	}, nil
}

// CheckQuota implements RequestMeter.
func (m policyMeter) CheckQuota(ctx context.Context, a *auth.Authentication, endpoint string) error {
	return m.toRefusal(a, m.Meter.CheckQuota(ctx, a.Wait, a.Grant, endpoint))
}

// admitCounted counts before the work, and refunds before the answer what does not count after all.
func (m policyMeter) admitCounted(ctx context.Context, a *auth.Authentication, endpoint string, requests int64) (SettleFunc, error) {
	receipt, err := m.ReserveRequests(ctx, a.Wait, a.Grant, endpoint, requests)
	if err != nil {
		return nil, m.toRefusal(a, err)
	}
	return func(ctx context.Context, status int) (usage.QuotaUsage, error) {
		ctx, cancel := detachFromClient(ctx)
		defer cancel()
		if err := receipt.RefundRequests(ctx, m.policy.uncounted(status, requests)); err != nil {
			m.log.Warn("a refund is not durable yet", "account", a.Account, "endpoint", endpoint, "reason", err)
		}
		return usage.QuotaUsage{}, nil
	}, nil
}

// uncounted is how many of the requests that were counted before the work do not count, by the status of the answer. One of several
// that is refused cost nothing, so it counts as one.
func (c CountingPolicy) uncounted(status int, requests int64) int64 {
	switch {
	case !c.isCounted(status):
		return requests
	case status >= http.StatusBadRequest:
		return requests - 1
	}
	return 0
}

// ReserveRows implements RequestMeter.
func (m policyMeter) ReserveRows(ctx context.Context, a *auth.Authentication, endpoint string, rows int64) (SettleRowsFunc, error) {
	receipt, err := m.ReserveRequests(ctx, a.Wait, a.Grant, endpoint, rows)
	if err != nil {
		return nil, m.toRefusal(a, err)
	}
	return func(ctx context.Context, unanswered int64) {
		if err := receipt.RefundRequests(ctx, unanswered); err != nil {
			m.log.Warn("a refund is not durable yet", "account", a.Account, "endpoint", endpoint, "reason", err)
		}
	}, nil
}

// detachFromClient is a context with a request's deadline, which does not end when the client goes away.
func detachFromClient(ctx context.Context) (context.Context, context.CancelFunc) {
	detached := context.WithoutCancel(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(detached, deadline)
	}
	return detached, func() {}
}

// CountRefused implements RequestMeter. At the cap it counts nothing and returns nil: the request keeps the refusal that it has.
func (m policyMeter) CountRefused(ctx context.Context, a *auth.Authentication, endpoint string) error {
	if !m.policy.Refusals {
		return nil
	}
	_, err := m.CountRequest(ctx, a.Wait, a.Grant, endpoint)
	if spent := new(usage.QuotaExceededError); errors.As(err, &spent) {
		return nil
	}
	return m.toRefusal(a, err)
}

// toRefusal turns an error of the usage.Meter into the refusal to answer with. An error that is neither about the quota nor about
// the key means that the count could not be recorded, so the request cannot be served for now.
func (m policyMeter) toRefusal(a *auth.Authentication, err error) error {
	spent := new(usage.QuotaExceededError)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &spent):
		return quotaSpent(a.Plan, spent.Limit)
	case errors.Is(err, usage.ErrRevoked):
		return refusal.KeyInvalid
	default:
		return refusal.AuthUnavailable
	}
}

// quotaSpent is the refusal of a request over the quota. On DISCOVERY its text shows the limit, on every other plan the plan.
func quotaSpent(p plan.Name, limit int64) error {
	if p == plan.Discovery {
		return refusal.DiscoveryQuotaSpent.With(refusal.Details{Limit: limit})
	}
	return refusal.QuotaSpent.With(refusal.Details{Plan: p})
}

// Unmetered is a RequestMeter that admits every request and counts none.
type Unmetered struct{}

// Admit implements RequestMeter. It shows the quota of the grant, and none of it used.
func (Unmetered) Admit(_ context.Context, a *auth.Authentication, _ string, _ int64) (SettleFunc, error) {
	return func(context.Context, int) (usage.QuotaUsage, error) { return usage.QuotaUsage{Limit: a.Quota}, nil }, nil
}

// ReserveRows implements RequestMeter.
func (Unmetered) ReserveRows(context.Context, *auth.Authentication, string, int64) (SettleRowsFunc, error) {
	return func(context.Context, int64) {}, nil
}

// CheckQuota implements RequestMeter.
func (Unmetered) CheckQuota(context.Context, *auth.Authentication, string) error { return nil }

// CountRefused implements RequestMeter.
func (Unmetered) CountRefused(context.Context, *auth.Authentication, string) error { return nil }
