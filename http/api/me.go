package api

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"lieudit/commands/locations"
	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/http/kit"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
)

// showMe shows whose key it is and what it gives. The usage that it shows includes this request, so the body is made only once
// the request was counted.
func (h *handler) showMe(ctx context.Context, c call, _ body.Empty) (kit.Response, error) {
	g := c.Principal.Grant
	p, ok := plan.Lookup(g.Plan)
	if !ok {
		return kit.Response{}, fmt.Errorf("account %s has unknown plan %q", g.Account, g.Plan)
	}
	running := plan.PeriodAt(g.Anchor, c.Principal.now)
	counts, err := h.countLocations(ctx, c)
	if err != nil {
		return kit.Response{}, err
	}
	return kit.Response{LateBody: func() any {
		shown := toMe(g, p, running, c.Quota.Usage())
		shown.Sites.Active, shown.Referentials.Active = &counts.Sites, &counts.Referentials
		return shown
	}}, nil
}

// toMe shows a grant with the plan that it names and the period that its requests are counted in, or the running one if they are not
// counted. If more is used than the limit, 0 remains.
func toMe(g grant.Grant, p plan.Plan, period plan.Period, used usage.QuotaUsage) body.Me {
	if used.Period != (plan.Period{}) {
		period = used.Period
	}
	remaining := max(used.Limit-used.Used, 0)
	return body.Me{
		Client: g.Account,
		Plan:   g.Plan,
		Key:    body.MyKey{ID: g.KeyID, Hint: g.Hint, Type: g.Kind},
		Quota: body.MyQuota{
			Limit: used.Limit, Used: &used.Used, Remaining: &remaining,
			Interval: body.Interval{Start: period.Start(), End: period.End()},
		},
		Sites:        body.MySites{Capacity: p.SiteCapacity, Ceiling: p.SiteCeiling()},
		Referentials: body.MyReferentials{Maximum: p.MaxReferentials},
		Agency:       g.Agency,
	}
}

// countLocations returns how many active sites and referentials the caller's account has. Where that is not cached it reads the log,
// and waits for it as long as the request may. A log that does not answer in time is eventstore.ErrUnavailable.
func (h *handler) countLocations(ctx context.Context, c call) (counts locations.Counts, err error) {
	account := c.Principal.Account
	if counts, _, isCached := h.counts.cached(account); isCached {
		return counts, nil
	}
	err = c.Principal.Wait.RetryUntilAvailable(ctx, func(ctx context.Context) (err error) {
		counts, err = h.counts.count(ctx, account)
		return err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
	}
	return counts, err
}

// maxCachedAccounts bounds the accounts whose counts are cached. One account more empties the cache, which is
// simpler than dropping the oldest, and rare.
const maxCachedAccounts = 10_000

// countCache caches how many sites and referentials each account has until they change. An entry is valid while lastChange is what it was when
// the count began, so a change during the count makes the entry stale. It is safe for concurrent use; two requests may count the
// same account at the same time.
type countCache struct {
	load       func(ctx context.Context, account string) (locations.Counts, error)
	lastChange func(account string) eventstore.Position // position of the last change of the account's locations

	mu        sync.Mutex
	byAccount map[string]cachedCount
}

type cachedCount struct {
	locations.Counts
	asOf eventstore.Position // the last change before it was counted
}

// cached is the cached count of an account, and the position of its last change; false: it must be counted.
func (c *countCache) cached(account string) (counts locations.Counts, at eventstore.Position, ok bool) {
	at = c.lastChange(account)
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, ok := c.byAccount[account]
	return entry.Counts, at, ok && entry.asOf == at
}

// count returns how many sites and referentials an account has, read from the log where that is not cached.
func (c *countCache) count(ctx context.Context, account string) (locations.Counts, error) {
	cached, at, ok := c.cached(account)
	if ok {
		return cached, nil
	}
	loaded, err := c.load(ctx, account)
	if err != nil {
		return loaded, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byAccount == nil || len(c.byAccount) >= maxCachedAccounts {
		c.byAccount = make(map[string]cachedCount)
	}
	c.byAccount[account] = cachedCount{loaded, at}
	return loaded, nil
}
