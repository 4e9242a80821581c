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

func (w rowWriter) onSitesChanged(b *projector.Changeset, e event.SitesChanged, r projector.Record) {
	updateActiveCount(b, e.SiteWriteSummary, r)
	w.writeSiteRows(b, e.Referential, e.Rows, r)
}

func (w rowWriter) onSyncStaged(b *projector.Changeset, e event.SyncStaged, r projector.Record) {
	if commit, ok := r.Commit.(event.SyncCommitted); ok {
		w.writeSiteRows(b, commit.Referential, e.Rows, r)
	}
}

// onSyncCommitted comes after the rows that it makes real.
func onSyncCommitted(b *projector.Changeset, e event.SyncCommitted, r projector.Record) {
	updateActiveCount(b, e.SiteWriteSummary, r)
}

// writeSiteRows writes what became of sites of a referential.
func (w rowWriter) writeSiteRows(b *projector.Changeset, code string, rows []event.SiteRow, r projector.Record) {
	if erasureStates.ForEvent(b, r).isErased {
		return
	}
	for _, row := range rows {
		id := table.SiteID(accountOf(r), code, row.ExternalID)
		if row.Operation == event.SiteCreated {
			projector.PutRow(b, table.Sites, newSite(id, code, row, r))
		} else {
			missing := func() table.Site { return blankSite(id, code, row, r) }
			projector.UpdateRowOr(b, table.Sites, id, missing, func(s *table.Site) { applySiteRow(s, row, r) })
		}
		if w.fillsOutbox {
			projector.PutRow(b, table.Outbox, table.OutboxEntry{ID: id, Position: int64(r.Position)})
		}
	}
}

func newSite(id, code string, row event.SiteRow, r projector.Record) table.Site {
	s := blankSite(id, code, row, r)
	s.Active = true
	applySiteRow(&s, row, r)
	return s
}

// blankSite is a site before anything was said of it.
func blankSite(id, code string, row event.SiteRow, r projector.Record) table.Site {
	return table.Site{
		ID: id, Account: accountOf(r), Referential: code, ExternalID: row.ExternalID, PublicID: row.SiteID, Created: table.InstantOf(r.Time),
	}
}

// applySiteRow makes a site what a row says. A row without content leaves the content as it is.
func applySiteRow(s *table.Site, row event.SiteRow, r projector.Record) {
	s.Version, s.Modified, s.Position = row.Version, table.InstantOf(r.Time), int64(r.Position)
	if row.Content != "" {
		s.Content = string(row.Content)
	}
	switch row.Operation {
	case event.SiteReactivated:
		s.Active, s.Deactivated = true, 0
	case event.SiteDeactivated:
		s.Active, s.Deactivated = false, table.InstantOf(r.Time)
	}
}

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
