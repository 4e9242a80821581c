package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"lieudit/commands/usage"
	"lieudit/http/problem"
	"lieudit/schemas/access"
)

// RequestMeter counts requests against the quotas of accounts.
type RequestMeter interface {
	// Admit lets a request to an endpoint ("GET /me") into the work, or says with which problem it is refused.
	// Requests that write are counted before their work, the others after it. Settle must be called once
	// when the work is done and before its answer is sent.
	Admit(ctx context.Context, g access.Grant, endpoint string, writes bool) (SettleFunc, error)

	// CheckQuota is nil, or the refusal of an account that is known to be at its cap. It counts nothing.
	CheckQuota(ctx context.Context, g access.Grant, endpoint string) error

	// CountRefused is told of a request that is refused before its work and not for its quota.
	CountRefused(ctx context.Context, g access.Grant, endpoint string) error
}

// SettleFunc tells a meter the status of the answer that is about to be sent, and what is used of the quota by then. Its error
// is sent in the answer's place.
type SettleFunc func(ctx context.Context, status int) (usage.QuotaUsage, error)

// bodyWithUsage makes the body of an answer that tells what is used of the quota.
type bodyWithUsage func(usage.QuotaUsage) any

// CountingPolicy is what counts of the requests with a valid key. The zero CountingPolicy is in the customer's favour: of those that
// were let into the work all but 413 and 5xx, and no others. Section 8 of the specification exempts only GET
// /version and 400: that is ToTheLetter. Requests without a valid key, and those refused by the quota or the
// scope of a publishable key, never count.
type CountingPolicy struct {
	Refusals bool // 403 of the plan, 404 of a route, 405
	Failures bool // 413 and 5xx
}

// CountAll counts all that the specification does not exempt.
var CountAll = CountingPolicy{Refusals: true, Failures: true}

// isCounted says whether a request that was let into the work counts, by the status of its answer. One whose key turns out
// to be no good any more, or cannot be checked, never does.
func (c CountingPolicy) isCounted(status int) bool {
	if status == http.StatusUnauthorized || status == http.StatusServiceUnavailable {
		return false
	}
	return c.Failures || status < http.StatusInternalServerError && status != http.StatusRequestEntityTooLarge
}

// policyMeter is a ledger as the API sees it.
type policyMeter struct {
	*usage.Meter
	policy CountingPolicy
	log    *slog.Logger
}

// NewRequestMeter is the meter of a ledger.
func NewRequestMeter(l *usage.Meter, c CountingPolicy, log *slog.Logger) RequestMeter {
	return policyMeter{l, c, log}
}

func (m policyMeter) Admit(ctx context.Context, g access.Grant, endpoint string, writes bool) (SettleFunc, error) {
	if writes {
		return m.admitWrite(ctx, g, endpoint)
	}
	if err := m.Meter.CheckQuota(ctx, g, endpoint); err != nil {
		return nil, m.toProblem(g, err)
	}
	return func(ctx context.Context, status int) (usage.QuotaUsage, error) {
		if !m.policy.isCounted(status) {
			return usage.QuotaUsage{}, nil
		}
		spent, err := m.CountRequest(ctx, g, endpoint)
		return spent, m.toProblem(g, err)
	}, nil
}

func (m policyMeter) CheckQuota(ctx context.Context, g access.Grant, endpoint string) error {
	return m.toProblem(g, m.Meter.CheckQuota(ctx, g, endpoint))
}

// admitWrite counts before the work, and takes back what does not count after all before the answer is sent.
func (m policyMeter) admitWrite(ctx context.Context, g access.Grant, endpoint string) (SettleFunc, error) {
	receipt, err := m.Reserve(ctx, g, endpoint)
	if err != nil {
		return nil, m.toProblem(g, err)
	}
	return func(ctx context.Context, status int) (usage.QuotaUsage, error) {
		if m.policy.isCounted(status) {
			receipt.Confirm()
			return usage.QuotaUsage{}, nil
		}
		ctx, cancel := detachFromClient(ctx)
		defer cancel()
		if err := receipt.Refund(ctx); err != nil {
			m.log.Warn("a refund is not durable yet", "account", g.Account, "endpoint", endpoint, "reason", err)
		}
		return usage.QuotaUsage{}, nil
	}, nil
}

// detachFromClient is a context that ends when a request's is due to, and not with its client.
func detachFromClient(ctx context.Context) (context.Context, context.CancelFunc) {
	detached := context.WithoutCancel(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(detached, deadline)
	}
	return detached, func() {}
}

// CountRefused counts what counts of the requests that are refused all the same: at the cap the refusal stays what it is.
func (m policyMeter) CountRefused(ctx context.Context, g access.Grant, endpoint string) error {
	if !m.policy.Refusals {
		return nil
	}
	_, err := m.CountRequest(ctx, g, endpoint)
	if spent := new(usage.QuotaExceededError); errors.As(err, &spent) {
		return nil
	}
	return m.toProblem(g, err)
}

func (m policyMeter) toProblem(g access.Grant, err error) error {
	spent := new(usage.QuotaExceededError)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &spent):
		return problem.QuotaExceeded(g.Plan, spent.Limit)
	case errors.Is(err, usage.ErrRevoked):
		return problem.KeyInvalid()
	default:
		return problem.AuthUnavailable()
	}
}

// nopMeter admits everything.
type nopMeter struct{}

func (nopMeter) Admit(_ context.Context, g access.Grant, _ string, _ bool) (SettleFunc, error) {
	return func(context.Context, int) (usage.QuotaUsage, error) { return usage.QuotaUsage{Limit: g.Quota}, nil }, nil
}

func (nopMeter) CheckQuota(context.Context, access.Grant, string) error { return nil }

func (nopMeter) CountRefused(context.Context, access.Grant, string) error { return nil }
