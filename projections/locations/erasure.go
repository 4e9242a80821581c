package locations

import (
	"lieudit/projections/projector"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// erasureStates is what is to be known of an account before sites of it are written. A write that was under way while the account
// was erased may stand after the erasure on the log.
var erasureStates = projector.StreamState[table.Erasure, *erasureState]{
	Table:    table.Erasures,
	Category: locationsCategory,
	Restore:  func(row *table.Erasure) (*erasureState, error) { return &erasureState{isErased: row != nil}, nil },
	Save:     func(*projector.Changeset, string, *erasureState) error { return nil },
}

type erasureState struct{ isErased bool }

func (w rowWriter) onAccountErased(b *projector.Changeset, _ event.AccountErased, r projector.Record) {
	projector.RequireScrub(b)
	projector.DeleteRows(b, table.Sites, "account", accountOf(r))
	if w.fillsOutbox {
		projector.PutRow(b, table.Outbox, table.OutboxEntry{ID: accountOf(r) + "/", Position: int64(r.Position)})
	}
	locationsRecord := r
	locationsRecord.Stream = locationsCategory + "-" + accountOf(r)
	projector.PutRow(b, table.Erasures, table.Erasure{Stream: locationsRecord.Stream, Position: int64(r.Position)})
	if s := erasureStates.ForEvent(b, locationsRecord); s != nil {
		s.isErased = true
	}
}
