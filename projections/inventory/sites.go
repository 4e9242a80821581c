package inventory

import (
	"lieudit/projections/projector"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

func (f filling) changed(b *projector.Batch, e event.SitesChanged, r projector.Record) {
	counted(b, e.SitesWritten, r)
	f.rows(b, e.Referential, e.Rows, r)
}

func (f filling) staged(b *projector.Batch, e event.SyncStaged, r projector.Record) {
	if commit, ok := r.Commit.(event.SyncCommitted); ok {
		f.rows(b, commit.Referential, e.Rows, r)
	}
}

// committed comes after the rows that it makes real.
func committed(b *projector.Batch, e event.SyncCommitted, r projector.Record) {
	counted(b, e.SitesWritten, r)
}

// rows writes what became of sites of a referential.
func (f filling) rows(b *projector.Batch, code string, rows []event.SiteRow, r projector.Record) {
	if standing.Of(b, r).erased {
		return
	}
	for _, row := range rows {
		id := table.SiteID(account(r), code, row.ExternalID)
		if row.Op == event.SiteCreated {
			projector.Put(b, table.Sites, created(id, code, row, r))
		} else {
			missing := func() table.Site { return unmade(id, code, row, r) }
			projector.ChangeOr(b, table.Sites, id, missing, func(s *table.Site) { become(s, row, r) })
		}
		if f.outbox {
			projector.Put(b, table.Outbox, table.Outgoing{ID: id, Position: int64(r.Position)})
		}
	}
}

func created(id, code string, row event.SiteRow, r projector.Record) table.Site {
	s := unmade(id, code, row, r)
	s.Active = true
	become(&s, row, r)
	return s
}

// unmade is a site before anything was said of it.
func unmade(id, code string, row event.SiteRow, r projector.Record) table.Site {
	return table.Site{
		ID: id, Account: account(r), Referential: code, ExternalID: row.ExternalID, Site: row.Site, Created: table.At(r.Time),
	}
}

// become makes a site what a row says. A row without content leaves the content as it is.
func become(s *table.Site, row event.SiteRow, r projector.Record) {
	s.Version, s.Modified, s.Position = row.Version, table.At(r.Time), int64(r.Position)
	if row.Content != "" {
		s.Content = string(row.Content)
	}
	switch row.Op {
	case event.SiteReactivated:
		s.Active, s.Deactivated = true, 0
	case event.SiteDeactivated:
		s.Active, s.Deactivated = false, table.At(r.Time)
	}
}
