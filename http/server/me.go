package server

import (
	"context"
	"errors"
	"fmt"

	"lieudit/commands/locations"
	"lieudit/commands/usage"
	"lieudit/eventstore"
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
func (a *api) me(ctx context.Context, c call, _ body.Empty) (any, error) {
	g := c.grant
	p, ok := plan.Lookup(g.Plan)
	if !ok {
		return nil, fmt.Errorf("account %s has unknown plan %q", g.Account, g.Plan)
	}
	period := plan.PeriodAt(g.Anchor, c.now)
	places, err := a.places(ctx, c)
	if err != nil {
		return nil, err
	}
	return afterwards(func(spent usage.Spending) any {
		shown := me(g, p, period, spent)
		shown.Sites.Active, shown.Referentials.Active = places.Sites, places.Referentials
		return shown
	}), nil
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

// mine are an account's figures, as far as they are known.
type mine struct{ Sites, Referentials *int }

func (a *api) places(ctx context.Context, c call) (mine, error) {
	if a.figures == nil {
		return mine{}, nil
	}
	f, _, known := a.figures.known(c.account())
	if known {
		return mine{&f.Sites, &f.Referentials}, nil
	}
	f, err := a.countPlaces(ctx, c)
	return mine{&f.Sites, &f.Referentials}, err
}

// countPlaces reads the log, and waits for it like all that does.
func (a *api) countPlaces(ctx context.Context, c call) (f locations.Figures, err error) {
	err = c.caller.wait(ctx, func(ctx context.Context) error {
		return a.Waiting.Wait(ctx, c.account(), func(ctx context.Context) (err error) {
			f, err = a.figures.count(ctx, c.account())
			return err
		})
	})
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
	}
	return f, err
}
