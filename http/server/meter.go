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

	// Known is nil, or the refusal of an account that is known to be at its cap. It counts nothing.
	Known(ctx context.Context, g grant.Grant, endpoint string) error

	// Refused is told of a request that is refused before its work and not for its quota.
	Refused(ctx context.Context, g grant.Grant, endpoint string) error
}

// Settle tells a meter the status of the answer that is about to be sent, and what is used of the quota by then. Its error
// is sent in the answer's place.
type Settle func(ctx context.Context, status int) (usage.Spending, error)

// afterwards makes the body of an answer that tells what is used of the quota.
type afterwards func(usage.Spending) any

// Counting is what counts of the requests with a valid key. The zero Counting is in the customer's favour: of those that
// were let into the work all but 413 and 5xx, and no others. Section 8 of the specification exempts only GET
// /version and 400: that is ToTheLetter. Requests without a valid key, and those refused by the quota or the
// scope of a publishable key, never count.
type Counting struct {
	Refused bool // 403 of the plan, 404 of a route, 405
	Failed  bool // 413 and 5xx
}

// ToTheLetter counts all that the specification does not exempt.
var ToTheLetter = Counting{Refused: true, Failed: true}

// counted says whether a request that was let into the work counts, by the status of its answer. One whose key turns out
// to be no good any more, or cannot be checked, never does.
func (c Counting) counted(status int) bool {
	if status == http.StatusUnauthorized || status == http.StatusServiceUnavailable {
		return false
	}
	return c.Failed || status < http.StatusInternalServerError && status != http.StatusRequestEntityTooLarge
}

// metered is a ledger as the API sees it.
type metered struct {
	*usage.Ledger
	counting Counting
	log      *slog.Logger
}

// Metered is the meter of a ledger.
func Metered(l *usage.Ledger, c Counting, log *slog.Logger) Meter { return metered{l, c, log} }

func (m metered) Admit(ctx context.Context, g grant.Grant, endpoint string, writes bool) (Settle, error) {
	if writes {
		return m.hold(ctx, g, endpoint)
	}
	if err := m.Ledger.Admit(ctx, g, endpoint); err != nil {
		return nil, m.problem(g, err)
	}
	return func(ctx context.Context, status int) (usage.Spending, error) {
		if !m.counting.counted(status) {
			return usage.Spending{}, nil
		}
		spent, err := m.Count(ctx, g, endpoint)
		return spent, m.problem(g, err)
	}, nil
}

func (m metered) Known(ctx context.Context, g grant.Grant, endpoint string) error {
	return m.problem(g, m.Ledger.Admit(ctx, g, endpoint))
}

// hold counts before the work, and takes back what does not count after all before the answer is sent.
func (m metered) hold(ctx context.Context, g grant.Grant, endpoint string) (Settle, error) {
	receipt, err := m.Hold(ctx, g, endpoint)
	if err != nil {
		return nil, m.problem(g, err)
	}
	return func(ctx context.Context, status int) (usage.Spending, error) {
		if m.counting.counted(status) {
			receipt.Keep()
			return usage.Spending{}, nil
		}
		ctx, cancel := outliving(ctx)
		defer cancel()
		if err := receipt.Refund(ctx); err != nil {
			m.log.Warn("a refund is not durable yet", "account", g.Account, "endpoint", endpoint, "reason", err)
		}
		return usage.Spending{}, nil
	}, nil
}

// outliving is a context that ends when a request's is due to, and not with its client.
func outliving(ctx context.Context) (context.Context, context.CancelFunc) {
	outlives := context.WithoutCancel(ctx)
	if due, ok := ctx.Deadline(); ok {
		return context.WithDeadline(outlives, due)
	}
	return outlives, func() {}
}

// Refused counts what counts of the requests that are refused all the same: at the cap the refusal stays what it is.
func (m metered) Refused(ctx context.Context, g grant.Grant, endpoint string) error {
	if !m.counting.Refused {
		return nil
	}
	_, err := m.Count(ctx, g, endpoint)
	if spent := new(usage.SpentError); errors.As(err, &spent) {
		return nil
	}
	return m.problem(g, err)
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

func (unmetered) Known(context.Context, grant.Grant, string) error { return nil }

func (unmetered) Refused(context.Context, grant.Grant, string) error { return nil }
