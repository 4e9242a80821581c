package server

import (
	"context"
	"fmt"

	"lieudit/commands/usage"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
)

// version tells what is running.
func (a *api) version(context.Context, call, body.Empty) (any, error) {
	v := body.Version{Version: a.Version}
	if a.Atlas == nil {
		return v, nil
	}
	if e, ok := a.Atlas.Use(); ok {
		defer e.Done()
		v.Vintage, v.Addresses = e.Meta.Millesime, int64(e.Meta.Addresses)
	}
	return v, nil
}

// me tells whose key it is and what it gives.
func (a *api) me(ctx context.Context, c call, _ body.Empty) (any, error) {
	g := c.grant
	p, ok := plan.Lookup(g.Plan)
	if !ok {
		return nil, fmt.Errorf("account %s has unknown plan %q", g.Account, g.Plan)
	}
	spent, err := a.Meter.Spending(ctx, g)
	if err != nil {
		return nil, err
	}
	period := plan.PeriodAt(g.Anchor, c.now)
	return body.Me{
		Client:       g.Account,
		Plan:         g.Plan,
		Key:          body.MyKey{ID: g.Key, Hint: g.Hint, Type: g.Kind},
		Quota:        quota(spent, period),
		Sites:        body.MySites{Capacity: p.Sites, Ceiling: p.Ceiling()},
		Referentials: body.MyReferentials{Maximum: p.Referentials},
		Agency:       g.Agency,
	}, nil
}

// quota is the account's spending once this very request is counted.
func quota(s usage.Spending, p plan.Period) body.MyQuota {
	used := s.Used + 1
	left := max(s.Limit-used, 0)
	return body.MyQuota{Limit: s.Limit, Used: &used, Remaining: &left, Interval: body.Interval{Start: p.Start(), End: p.End()}}
}
