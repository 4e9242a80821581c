package service

import (
	"context"

	"lieudit/queries/places/finder"
	"lieudit/queries/places/local"
)

// search is the search of sites, in memory: no older than the last change of an account's places that was seen.
func (s *service) search() finder.Engine {
	return local.New(s.shelf, func(account string) uint64 { return uint64(s.pulse.Changed(account)) }, s.Now, local.Held)
}

// cursorKey is what the cursors of an account are sealed with: they are of no use any more when it is erased.
func (s *service) cursorKey(ctx context.Context, account string) ([]byte, error) {
	return s.vault.Key(ctx, account, true)
}
