package api

import (
	"context"
	"sync"

	"lieudit/commands/locations"
	"lieudit/eventstore"
)

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
