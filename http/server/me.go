package server

import (
	"context"
	"fmt"

	"lieudit/commands/usage"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
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
func (a *api) me(_ context.Context, c call, _ body.Empty) (any, error) {
	g := c.grant
	p, ok := plan.Lookup(g.Plan)
	if !ok {
		return nil, fmt.Errorf("account %s has unknown plan %q", g.Account, g.Plan)
	}
	period := plan.PeriodAt(g.Anchor, c.now)
	return afterwards(func(spent usage.Spending) any { return me(g, p, period, spent) }), nil
}

func me(g grant.Grant, p plan.Plan, period plan.Period, spent usage.Spending) body.Me {
	left := max(spent.Limit-spent.Used, 0)
	return body.Me{
		Client: g.Account,
		Plan:   g.Plan,
		Key:    body.MyKey{ID: g.Key, Hint: g.Hint, Type: g.Kind},
		Quota: body.MyQuota{
			Limit: spent.Limit, Used: &spent.Used, Remaining: &left,
			Interval: body.Interval{Start: period.Start(), End: period.End()},
		},
		Sites:        body.MySites{Capacity: p.Sites, Ceiling: p.Ceiling()},
		Referentials: body.MyReferentials{Maximum: p.Referentials},
		Agency:       g.Agency,
	}
}
