package service

import (
	"context"

	"lieudit/eventstore"
	"lieudit/schemas/table"
)

// found returns when places show, and searches find, what the core log held at a position. It asks nothing of the other
// read models: a large sync fills them for longer.
func (s *service) found(ctx context.Context, at eventstore.Position) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	err := s.projector.Wait(ctx, at, table.Places.Name)
	if err == nil { // else the pulse may have nowhere to begin
		err = s.pulse.Wait(ctx, at)
	}
	if err == nil {
		err = s.searchable(ctx, at)
	}
	if err != nil {
		s.Log.Warn("answered before the places", "position", at, "reason", err)
	}
}

// cursorKey is what the cursors of an account are sealed with: they are of no use any more when it is erased.
func (s *service) cursorKey(ctx context.Context, account string) ([]byte, error) {
	return s.keys.Key(ctx, account, true)
}
