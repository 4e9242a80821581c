// Package locations fills the tables of customers' referentials and sites as they are now, and the outbox that feeds an
// external search engine. The content of a site is personal, so an erasure of the account permanently deletes its sites.
//
// The rows of a large sync are staged: SyncStaged events on a stream of their own, which take effect once SyncCommitted names
// that stream. The projector passes them to the handlers when it reads the commit, as if they stood there.
//
// The projector calls the handlers of Model with each decoded event; a rowWriter turns it into rows of the changeset:
//
//	SitesChanged ─────────────┐
//	SyncStaged, by its commit ┴> writeSiteRows ──> site, outbox
//	Referential…, SyncCommitted ─────────────────> referential
//	AccountErased ──> erasure, no more sites and names, outbox
package locations

import (
	"lieudit/eventstore"
	"lieudit/projections/projector"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// Model is the read model of sites. With fillsOutbox every change of a site is also put into the outbox, in the same
// transaction. Of the account's events it handles only the erasure.
func Model(fillsOutbox bool) projector.Model {
	w := rowWriter{fillsOutbox}
	return projector.Model{
		ReadModel:         table.LocationsModel,
		NeedsPersonalData: true,
		StreamStates:      []projector.AnyStreamState{erasureStates},
		Handlers: []projector.EventHandler{
			projector.On(onReferentialOpened),
			projector.On(onReferentialRenamed),
			projector.On(onReferentialArchived),
			projector.On(w.onSitesChanged),
			projector.On(w.onSyncStaged),
			projector.On(onSyncCommitted),
			projector.On(w.onAccountErased),
		},
		DropRows: w.dropRows,
	}
}

const locationsCategory = "locations"

// rowWriter holds the handlers that write sites, and outbox rows if there is a search engine to feed.
type rowWriter struct{ fillsOutbox bool }

// dropRows deletes the rows of an account. The outbox tells the search engine to delete the account's sites; those that a
// refold rewrites get outbox rows of their own.
func (w rowWriter) dropRows(b *projector.Changeset, account string, at eventstore.Position) {
	projector.RequireScrub(b)
	projector.DeleteRows(b, table.Referentials, "account", account)
	projector.DeleteRows(b, table.Sites, "account", account)
	projector.DeleteRows(b, table.Erasures, "stream", locationsCategory+"-"+account)
	w.queueAccountDeletion(b, account, at)
}

// queueAccountDeletion puts an account into the outbox: its id with a slash stands for all of its sites.
func (w rowWriter) queueAccountDeletion(b *projector.Changeset, account string, at eventstore.Position) {
	if w.fillsOutbox {
		projector.PutRow(b, table.Outbox, table.OutboxEntry{ID: account + "/", Position: int64(at)})
	}
}

func onReferentialOpened(b *projector.Changeset, e event.ReferentialOpened, r projector.Record) {
	opened := blankReferential(e.Code, r)
	opened.Name, opened.Position = string(e.Name), int64(r.Position)
	projector.PutRow(b, table.Referentials, opened)
}

func blankReferential(code string, r projector.Record) table.Referential {
	blank := table.Referential{ID: table.ReferentialID(r.Account(), code), Account: r.Account(), Code: code, Created: table.InstantOf(r.Time)}
	markChanged(&blank, r)
	return blank
}

func onReferentialRenamed(b *projector.Changeset, e event.ReferentialRenamed, r projector.Record) {
	updateReferential(b, e.Code, r, func(t *table.Referential) {
		t.Name = string(e.Name)
		markChanged(t, r)
	})
}

func onReferentialArchived(b *projector.Changeset, e event.ReferentialArchived, r projector.Record) {
	updateReferential(b, e.Code, r, func(t *table.Referential) {
		t.Archived = table.InstantOf(r.Time)
		markChanged(t, r)
	})
}

// markChanged notes a change of a referential itself. A change in its number of active sites does not count.
func markChanged(t *table.Referential, r projector.Record) {
	t.Changed, t.Modified = int64(r.Position), table.InstantOf(r.Time)
}

// updateActiveCount sets how many active sites a referential has after a write.
func updateActiveCount(b *projector.Changeset, e event.SiteWriteSummary, r projector.Record) {
	updateReferential(b, e.Referential, r, func(t *table.Referential) { t.ActiveSites = int64(e.ActiveAfter) })
}

// updateReferential changes the row of a referential. A correction may have voided the event that opened it: then the row
// begins blank.
func updateReferential(b *projector.Changeset, code string, r projector.Record, change func(*table.Referential)) {
	missing := func() table.Referential { return blankReferential(code, r) }
	projector.UpdateRowOr(b, table.Referentials, table.ReferentialID(r.Account(), code), missing, func(t *table.Referential) {
		change(t)
		t.Position = int64(r.Position)
	})
}

// onSitesChanged writes the rows of a request that fitted into one event.
func (w rowWriter) onSitesChanged(b *projector.Changeset, e event.SitesChanged, r projector.Record) {
	updateActiveCount(b, e.SiteWriteSummary, r)
	w.writeSiteRows(b, e.Referential, e.Rows, r)
}

// onSyncStaged writes staged rows, once a commit has made them real.
func (w rowWriter) onSyncStaged(b *projector.Changeset, e event.SyncStaged, r projector.Record) {
	if commit, ok := r.Commit.(event.SyncCommitted); ok {
		w.writeSiteRows(b, commit.Referential, e.Rows, r)
	}
}

// onSyncCommitted is called after the staged events that the commit makes real.
func onSyncCommitted(b *projector.Changeset, e event.SyncCommitted, r projector.Record) {
	updateActiveCount(b, e.SiteWriteSummary, r)
}

// writeSiteRows applies changes of sites of a referential, unless the account is erased.
func (w rowWriter) writeSiteRows(b *projector.Changeset, code string, rows []event.SiteRow, r projector.Record) {
	if erasureStates.ForEvent(b, r).isErased {
		return
	}
	for _, row := range rows {
		id := table.SiteID(r.Account(), code, row.ExternalID)
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

// blankSite is a site without content and state.
func blankSite(id, code string, row event.SiteRow, r projector.Record) table.Site {
	return table.Site{
		ID: id, Account: r.Account(), Referential: code, ExternalID: row.ExternalID, PublicID: row.SiteID, Created: table.InstantOf(r.Time),
	}
}

// applySiteRow changes a site as a row describes. A row without content leaves the content unchanged.
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

// erasureStates records, before sites of an account are written, whether the account is erased. A write in progress during
// the erasure may come after it on the log; its sites must not come back.
var erasureStates = projector.StreamState[table.Erasure, *erasureState]{
	Table:    table.Erasures,
	Category: locationsCategory,
	Restore:  func(row *table.Erasure) (*erasureState, error) { return &erasureState{isErased: row != nil}, nil },
	Save:     func(*projector.Changeset, string, *erasureState) error { return nil }, // onAccountErased has put the row
}

type erasureState struct{ isErased bool }

// onAccountErased deletes the account's sites, empties the names of its referentials and marks its locations stream as
// erased, for this batch and later ones.
func (w rowWriter) onAccountErased(b *projector.Changeset, _ event.AccountErased, r projector.Record) {
	projector.RequireScrub(b)
	projector.DeleteRows(b, table.Sites, "account", r.Account())
	projector.BlankColumns(b, table.Referentials, []string{"name"}, "account", r.Account())
	w.queueAccountDeletion(b, r.Account(), r.Position)
	locationsRecord := r
	locationsRecord.Stream = locationsCategory + "-" + r.Account()
	projector.PutRow(b, table.Erasures, table.Erasure{Stream: locationsRecord.Stream, Position: int64(r.Position)})
	if s := erasureStates.ForEvent(b, locationsRecord); s != nil { // nil: the batch holds no event of that stream
		s.isErased = true
	}
}
