package history

import (
	"encoding/json"
	"strconv"

	"lieudit/projections/projector"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// changed tells what was done to sites as a whole and then to each, or what was done to the one that was meant.
func changed(b *projector.Batch, e event.SitesChanged, r projector.Record) {
	if single(e) {
		projector.Put(b, table.Entries, ofSite(entryOf(r), e.Referential, e.Rows[0]))
		return
	}
	rows(b, e.Referential, e.Rows, r)
	e.Rows = nil // which the sentence does not need
	whole(b, e, e.SitesWritten, r)
}

// single says whether one site was named by who asked, and no set of them.
func single(e event.SitesChanged) bool {
	switch e.Action {
	case "sync", "upsert", "archive":
		return false
	}
	return len(e.Rows) == 1
}

func staged(b *projector.Batch, e event.SyncStaged, r projector.Record) {
	if commit, ok := r.Commit.(event.SyncCommitted); ok {
		rows(b, commit.Referential, e.Rows, r)
	}
}

func committed(b *projector.Batch, e event.SyncCommitted, r projector.Record) {
	whole(b, e, e.SitesWritten, r)
}
func kept(b *projector.Batch, e event.RequestKept, r projector.Record) {
	whole(b, e, e.SitesWritten, r)
}

// whole is the entry of what one request did to a referential.
func whole(b *projector.Batch, e event.Event, w event.SitesWritten, r projector.Record) {
	w.Key, w.Request = "", "" // hashes
	entry := entryOf(r)
	entry.Kind, entry.Subject, entry.Sentence, entry.Data = table.KindSites, w.Referential, event.Sentence(e), text(w)
	projector.Put(b, table.Entries, entry)
}

// rowBits is room for the rows of an event among the parts of its position: it holds at most 64 KiB.
const rowBits = 16

// rows are the entries of what became of each site.
func rows(b *projector.Batch, code string, rows []event.SiteRow, r projector.Record) {
	entry := entryOf(r)
	for i, row := range rows {
		entry.Part = int64(r.Nth)<<rowBits + int64(i) + 1
		projector.Put(b, table.Entries, ofSite(entry, code, row))
	}
}

// ofSite is the entry as it tells of one site.
func ofSite(entry table.Entry, code string, row event.SiteRow) table.Entry {
	entry.Kind, entry.Subject = table.KindSites, table.SiteSubject(code, row.ExternalID)
	entry.Sentence = row.Op + " site " + row.ExternalID + " of " + code + " (version " + strconv.FormatInt(row.Version, 10) + ")"
	row.Digest = nil // of what is personal
	entry.Data = text(row)
	return entry
}

// text is a value as JSON.
func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "{}"
	}
	return string(data)
}
