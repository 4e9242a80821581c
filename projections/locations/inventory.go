// Package locations fills the tables of referentials and sites as they stand, and of what a search engine outside is still to
// be told of. What the log says of a site is personal: an erasure of its account takes the row away, for good.
package locations

import (
	"lieudit/eventstore"
	"lieudit/projections/projector"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// Model is the places. With outbox every change of a site is noted in the outbox too, in the same transaction.
func Model(fillsOutbox bool) projector.Model {
	w := rowWriter{fillsOutbox}
	return projector.Model{
		ReadModel:         table.LocationsModel,
		Categories:        eventstore.Filter{"account", locationsCategory},
		NeedsPersonalData: true,
		StreamStates:      []projector.AnyStreamState{erasureStates},
		Handlers: []projector.EventHandler{
			projector.On(onReferentialOpened),
			projector.On(onReferentialRenamed),
			projector.On(onReferentialArchived),
			projector.On(w.onSitesChanged),
			projector.On(w.onSyncStaged),
			projector.On(onSyncCommitted),
			projector.Ignore[event.UnchangedWriteRecorded](),
			projector.On(w.onAccountErased),
			projector.Ignore[event.AccountOpened](),
			projector.Ignore[event.PlanChanged](),
			projector.Ignore[event.AgencyActivated](),
			projector.Ignore[event.AgencyJoined](),
			projector.Ignore[event.AgencyLeft](),
			projector.Ignore[event.AccountClosed](),
			projector.Ignore[event.SecretKeyIssued](),
			projector.Ignore[event.PublishableKeyIssued](),
			projector.Ignore[event.KeyRevoked](),
			projector.Ignore[event.KeyOriginsChanged](),
			projector.Ignore[event.AccountActionRefused](),
			projector.Ignore[event.AccountEventVoided](),
			projector.Ignore[event.LocationsEventVoided](),
		},
		DropRows: w.dropRows,
	}
}

// dropRows takes the places of an account away. An index outside is told that they are gone, and then of those that are
// written again.
func (w rowWriter) dropRows(b *projector.Changeset, account string, at eventstore.Position) {
	projector.RequireScrub(b)
	projector.DeleteRows(b, table.Referentials, "account", account)
	projector.DeleteRows(b, table.Sites, "account", account)
	projector.DeleteRows(b, table.Erasures, "stream", locationsCategory+"-"+account)
	if w.fillsOutbox {
		projector.PutRow(b, table.Outbox, table.OutboxEntry{ID: account + "/", Position: int64(at)})
	}
}

const locationsCategory = "locations"

// rowWriter is how rows are written.
type rowWriter struct{ fillsOutbox bool }

// accountOf is the accountOf whose stream an event is in.
func accountOf(r projector.Record) string { return eventstore.EntityID(r.Stream) }

func onReferentialOpened(b *projector.Changeset, e event.ReferentialOpened, r projector.Record) {
	projector.PutRow(b, table.Referentials, table.Referential{
		ID: table.ReferentialID(accountOf(r), e.Code), Account: accountOf(r), Code: e.Code, Name: e.Name,
		Created: table.InstantOf(r.Time), Position: int64(r.Position),
	})
}

func onReferentialRenamed(b *projector.Changeset, e event.ReferentialRenamed, r projector.Record) {
	updateReferential(b, e.Code, r, func(t *table.Referential) { t.Name = e.Name })
}

func onReferentialArchived(b *projector.Changeset, e event.ReferentialArchived, r projector.Record) {
	updateReferential(b, e.Code, r, func(t *table.Referential) { t.Archived = table.InstantOf(r.Time) })
}

// updateActiveCount notes how many active sites a referential has after a change of them.
func updateActiveCount(b *projector.Changeset, e event.SiteWriteSummary, r projector.Record) {
	updateReferential(b, e.Referential, r, func(t *table.Referential) { t.ActiveSites = int64(e.ActiveAfter) })
}

func updateReferential(b *projector.Changeset, code string, r projector.Record, change func(*table.Referential)) {
	missing := func() table.Referential {
		return table.Referential{ID: table.ReferentialID(accountOf(r), code), Account: accountOf(r), Code: code, Created: table.InstantOf(r.Time)}
	}
	projector.UpdateRowOr(b, table.Referentials, table.ReferentialID(accountOf(r), code), missing, func(t *table.Referential) {
		change(t)
		t.Position = int64(r.Position)
	})
}
