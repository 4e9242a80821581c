package audit

import (
	"encoding/json"
	"strconv"

	"lieudit/projections/projector"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// onSitesChanged tells what was done to sites as a whole and then to each, or what was done to the one that was meant.
func onSitesChanged(b *projector.Changeset, e event.SitesChanged, r projector.Record) {
	if isSingleSite(e) {
		projector.PutRow(b, table.AuditEntries, siteEntry(newEntry(r), e.Referential, e.Rows[0]))
		return
	}
	putSiteEntries(b, e.Referential, e.Rows, r)
	e.Rows = nil // which the sentence does not need
	putRequestEntry(b, e, e.SiteWriteSummary, r)
}

// isSingleSite says whether one site was named by who asked, and no set of them.
func isSingleSite(e event.SitesChanged) bool {
	switch e.Action {
	case "sync", "upsert", "archive":
		return false
	}
	return len(e.Rows) == 1
}

func onSyncStaged(b *projector.Changeset, e event.SyncStaged, r projector.Record) {
	if commit, ok := r.Commit.(event.SyncCommitted); ok {
		putSiteEntries(b, commit.Referential, e.Rows, r)
	}
}

func onSyncCommitted(b *projector.Changeset, e event.SyncCommitted, r projector.Record) {
	putRequestEntry(b, e, e.SiteWriteSummary, r)
}
func onRequestKept(b *projector.Changeset, e event.UnchangedWriteRecorded, r projector.Record) {
	putRequestEntry(b, e, e.SiteWriteSummary, r)
}

// putRequestEntry is the entry of what one request did to a referential.
func putRequestEntry(b *projector.Changeset, e event.Event, w event.SiteWriteSummary, r projector.Record) {
	w.IdempotencyKeyHash, w.RequestHash = "", "" // hashes
	entry := newEntry(r)
	entry.Kind, entry.Subject, entry.Sentence, entry.Data = table.AuditKindSites, w.Referential, event.Sentence(e), toJSON(w)
	projector.PutRow(b, table.AuditEntries, entry)
}

// rowBits is room for the rows of an event among the parts of its position: it holds at most 64 KiB.
const rowBits = 16

// putSiteEntries are the entries of what became of each site.
func putSiteEntries(b *projector.Changeset, code string, rows []event.SiteRow, r projector.Record) {
	entry := newEntry(r)
	for i, row := range rows {
		entry.Part = int64(r.StagedNumber)<<rowBits + int64(i) + 1
		projector.PutRow(b, table.AuditEntries, siteEntry(entry, code, row))
	}
}

// siteEntry is the entry as it tells of one site.
func siteEntry(entry table.AuditEntry, code string, row event.SiteRow) table.AuditEntry {
	entry.Kind, entry.Subject = table.AuditKindSites, table.AuditSiteSubject(code, row.ExternalID)
	entry.Sentence = row.Operation + " site " + row.ExternalID + " of " + code + " (version " + strconv.FormatInt(row.Version, 10) + ")"
	row.Digest = nil // of what is personal
	entry.Data = toJSON(row)
	return entry
}

// toJSON is a value as JSON.
func toJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "{}"
	}
	return string(data)
}
