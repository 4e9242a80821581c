package server

import (
	"context"
	"sync"

	"lieudit/commands/locations"
	"lieudit/eventstore"
)

// maxCounted bounds the accounts whose figures are remembered; past it they are all counted anew.
const maxCounted = 10_000

// figures are how many places accounts have, remembered until something changes.
type figures struct {
	of      func(ctx context.Context, account string) (locations.Figures, error)
	changed func(account string) eventstore.Position // where the account's places changed last; nil: nobody knows

	mu   sync.Mutex
	kept map[string]counted
}

type counted struct {
	locations.Figures
	at eventstore.Position // of the last change that was known before it was counted
}

// count is how many places an account has.
func (f *figures) count(ctx context.Context, account string) (locations.Figures, error) {
	if f.changed == nil {
		return f.of(ctx, account)
	}
	at := f.changed(account)
	f.mu.Lock()
	have, ok := f.kept[account]
	f.mu.Unlock()
	if ok && have.at == at {
		return have.Figures, nil
	}
	now, err := f.of(ctx, account)
	if err != nil {
		return now, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.kept == nil || len(f.kept) >= maxCounted {
		f.kept = make(map[string]counted)
	}
	f.kept[account] = counted{now, at}
	return now, nil
}
