package inventory

import (
	"lieudit/projections/projector"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// standing is what is to be known of an account before sites of it are written. A write that was under way while the account
// was erased may stand after the erasure on the log.
var standing = projector.State[table.Erasure, *tenant]{
	Table:    table.Erasures,
	Category: category,
	Open:     func(row *table.Erasure) (*tenant, error) { return &tenant{erased: row != nil}, nil },
	Close:    func(*projector.Batch, string, *tenant) error { return nil },
}

type tenant struct{ erased bool }

func (f filling) erased(b *projector.Batch, _ event.AccountErased, r projector.Record) {
	projector.Erase(b)
	projector.Wipe(b, table.Sites, "account", account(r))
	if f.outbox {
		projector.Put(b, table.Outbox, table.Outgoing{ID: account(r) + "/", Position: int64(r.Position)})
	}
	places := r
	places.Stream = category + "-" + account(r)
	projector.Put(b, table.Erasures, table.Erasure{Stream: places.Stream, Position: int64(r.Position)})
	if s := standing.Of(b, places); s != nil {
		s.erased = true
	}
}
