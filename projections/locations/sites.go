package locations

import (
	"lieudit/projections/projector"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

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
