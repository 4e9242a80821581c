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

// known is how many places an account has, if that is remembered.
func (f *figures) known(account string) (figures locations.Figures, at eventstore.Position, ok bool) {
	if f.changed == nil {
		return figures, 0, false
	}
	at = f.changed(account)
	f.mu.Lock()
	defer f.mu.Unlock()
	have, ok := f.kept[account]
	return have.Figures, at, ok && have.at == at
}

// count is how many places an account has, by the log where that is not remembered.
func (f *figures) count(ctx context.Context, account string) (locations.Figures, error) {
	have, at, ok := f.known(account)
	if ok {
		return have, nil
	}
	now, err := f.of(ctx, account)
	if err != nil || f.changed == nil {
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
