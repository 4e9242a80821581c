package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"lieudit/commands/usage"
	"lieudit/http/problem"
	"lieudit/schemas/grant"
)

// Meter counts requests against the quotas of accounts.
type Meter interface {
	// Admit lets a request to an endpoint ("GET /me") into the work, or says with which problem it is refused.
	// Requests that write are counted before their work, the others after it. Settle must be called once
	// when the work is done and before its answer is sent.
	Admit(ctx context.Context, g grant.Grant, endpoint string, writes bool) (Settle, error)
}

// Settle tells a meter the status of the answer that is about to be sent, and what is used of the quota by then. Its error
// is sent in the answer's place.
type Settle func(ctx context.Context, status int) (usage.Spending, error)

// afterwards makes the body of an answer that tells what is used of the quota.
type afterwards func(usage.Spending) any

// counted is what counts of the requests that were let into the work, by the status of their answer. Those that never
// got there (401, 403, 404 of a route, 405, 400, 429, 503) do not count. Section 8 of the specification names only
// GET /version and 400: the rest is in the customer's favour.
func counted(status int) bool {
	return status < http.StatusInternalServerError && status != http.StatusRequestEntityTooLarge
}

// metered is a ledger as the API sees it.
type metered struct {
	*usage.Ledger
	log *slog.Logger
}

// Metered is the meter of a ledger.
func Metered(l *usage.Ledger, log *slog.Logger) Meter { return metered{l, log} }

func (m metered) Admit(ctx context.Context, g grant.Grant, endpoint string, writes bool) (Settle, error) {
	if writes {
		return m.hold(ctx, g, endpoint)
	}
	if err := m.Ledger.Admit(ctx, g, endpoint); err != nil {
		return nil, m.problem(g, err)
	}
	return func(ctx context.Context, status int) (usage.Spending, error) {
		if !counted(status) {
			return usage.Spending{}, nil
		}
		spent, err := m.Count(ctx, g, endpoint)
		return spent, m.problem(g, err)
	}, nil
}

// hold counts before the work, and takes back what does not count after all before the answer is sent.
func (m metered) hold(ctx context.Context, g grant.Grant, endpoint string) (Settle, error) {
	receipt, err := m.Hold(ctx, g, endpoint)
	if err != nil {
		return nil, m.problem(g, err)
	}
	return func(ctx context.Context, status int) (usage.Spending, error) {
		if counted(status) {
			receipt.Keep()
			return usage.Spending{}, nil
		}
		if err := receipt.Refund(context.WithoutCancel(ctx)); err != nil {
			m.log.Warn("a refund is not durable yet", "account", g.Account, "endpoint", endpoint, "reason", err)
		}
		return usage.Spending{}, nil
	}, nil
}

func (m metered) problem(g grant.Grant, err error) error {
	spent := new(usage.SpentError)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &spent):
		return problem.QuotaSpent(g.Plan, spent.Limit)
	case errors.Is(err, usage.ErrRevoked):
		return problem.KeyInvalid()
	default:
		return problem.AuthUnavailable()
	}
}

// unmetered admits everything.
type unmetered struct{}

func (unmetered) Admit(_ context.Context, g grant.Grant, _ string, _ bool) (Settle, error) {
	return func(context.Context, int) (usage.Spending, error) { return usage.Spending{Limit: g.Quota}, nil }, nil
}
