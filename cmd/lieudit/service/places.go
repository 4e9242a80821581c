package service

import (
	"context"

	"lieudit/eventstore"
	"lieudit/schemas/table"
)

// waitForLocations returns when places show, and searches find, what the core log held at a position. It asks nothing of the other
// read models: a large sync fills them for longer.
func (s *service) waitForLocations(ctx context.Context, at eventstore.Position) {
	ctx, cancel := context.WithTimeout(ctx, maxReadModelWait)
	defer cancel()
	err := s.projector.AwaitPosition(ctx, at, table.LocationsModel.Name)
	if err == nil { // else the pulse may have nowhere to begin
		err = s.changes.AwaitPosition(ctx, at)
	}
	if err == nil {
		err = s.waitForSearch(ctx, at)
	}
	if err != nil {
		s.Log.Warn("answered before the places", "position", at, "reason", err)
	}
}

// cursorKey is what the cursors of an account are sealed with: they are of no use any more when it is erased.
func (s *service) cursorKey(ctx context.Context, account string) ([]byte, error) {
	return s.vault.Key(ctx, account, true)
}
