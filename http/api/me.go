package api

import (
	"context"
	"errors"
	"fmt"
	"sync"

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

// maxCachedAccounts bounds the accounts whose figures are remembered; past it they are all counted anew.
const maxCachedAccounts = 10_000

// countCache are how many places accounts have, remembered until something changes.
type countCache struct {
	load       func(ctx context.Context, account string) (locations.Counts, error)
	lastChange func(account string) eventstore.Position // where the account's places changed last; nil: nobody knows

	mu        sync.Mutex
	byAccount map[string]cachedCount
}

type cachedCount struct {
	locations.Counts
	asOf eventstore.Position // of the last change that was known before it was counted
}

// cached is how many places an account has, if that is remembered.
func (f *countCache) cached(account string) (counts locations.Counts, at eventstore.Position, ok bool) {
	if f.lastChange == nil {
		return counts, 0, false
	}
	at = f.lastChange(account)
	f.mu.Lock()
	defer f.mu.Unlock()
	entry, ok := f.byAccount[account]
	return entry.Counts, at, ok && entry.asOf == at
}

// count is how many places an account has, by the log where that is not remembered.
func (f *countCache) count(ctx context.Context, account string) (locations.Counts, error) {
	cached, at, ok := f.cached(account)
	if ok {
		return cached, nil
	}
	loaded, err := f.load(ctx, account)
	if err != nil || f.lastChange == nil {
		return loaded, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byAccount == nil || len(f.byAccount) >= maxCachedAccounts {
		f.byAccount = make(map[string]cachedCount)
	}
	f.byAccount[account] = cachedCount{loaded, at}
	return loaded, nil
}
