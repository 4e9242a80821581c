package api

import (
	"context"
	"errors"
	"fmt"

	"lieudit/commands/locations"
	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/schemas/access"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
)

// showVersion tells what is running.
func (h *handler) showVersion(context.Context, call, body.Empty) (any, error) {
	v := body.Version{Version: h.Version}
	if h.Addresses == nil {
		return v, nil
	}
	if e, ok := h.Addresses.Use(); ok {
		defer e.Done()
		v.Vintage, v.Addresses = e.Meta.Millesime, int64(e.Meta.Addresses)
	}
	return v, nil
}

// showMe tells whose key it is and what it gives.
func (h *handler) showMe(ctx context.Context, c call, _ body.Empty) (any, error) {
	g := c.grant
	p, ok := plan.Lookup(g.Plan)
	if !ok {
		return nil, fmt.Errorf("account %s has unknown plan %q", g.Account, g.Plan)
	}
	period := plan.PeriodAt(g.Anchor, c.now)
	counts, err := h.locationCounts(ctx, c)
	if err != nil {
		return nil, err
	}
	return bodyWithUsage(func(spent usage.QuotaUsage) any {
		shown := toMe(g, p, period, spent)
		shown.Sites.Active, shown.Referentials.Active = counts.Sites, counts.Referentials
		return shown
	}), nil
}

func toMe(g access.Grant, p plan.Plan, period plan.Period, spending usage.QuotaUsage) body.Me {
	remaining := max(spending.Limit-spending.Used, 0)
	return body.Me{
		Client: g.Account,
		Plan:   g.Plan,
		Key:    body.MyKey{ID: g.KeyID, Hint: g.Hint, Type: g.Kind},
		Quota: body.MyQuota{
			Limit: spending.Limit, Used: &spending.Used, Remaining: &remaining,
			Interval: body.Interval{Start: period.Start(), End: period.End()},
		},
		Sites:        body.MySites{Capacity: p.SiteCapacity, Ceiling: p.SiteCeiling()},
		Referentials: body.MyReferentials{Maximum: p.MaxReferentials},
		Agency:       g.Agency,
	}
}

// knownCounts are an account's figures, as far as they are known.
type knownCounts struct{ Sites, Referentials *int }

func (h *handler) locationCounts(ctx context.Context, c call) (knownCounts, error) {
	if h.counts == nil {
		return knownCounts{}, nil
	}
	f, _, isCached := h.counts.cached(c.account())
	if isCached {
		return knownCounts{&f.Sites, &f.Referentials}, nil
	}
	f, err := h.countLocations(ctx, c)
	return knownCounts{&f.Sites, &f.Referentials}, err
}

// countLocations reads the log, and waits for it like all that does.
func (h *handler) countLocations(ctx context.Context, c call) (f locations.Counts, err error) {
	err = c.budget.runWithin(ctx, func(ctx context.Context) error {
		return h.Limiter.RetryUntilAvailable(ctx, c.account(), func(ctx context.Context) (err error) {
			f, err = h.counts.count(ctx, c.account())
			return err
		})
	})
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
	}
	return f, err
}
