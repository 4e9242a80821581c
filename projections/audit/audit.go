// Package audit fills the trail: one row for every event of accounts, tokens and places, as an auditor reads it, and one for
// every site that an event changed. It never sees a personal field, and shows hashes only by their first characters.
package audit

import (
	"encoding/json"
	"strconv"
	"strings"

	"lieudit/eventstore"
	"lieudit/projections/projector"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// Model is the history. An event of its categories needs nothing here to be in it.
var Model = projector.Model{
	ReadModel:  table.AuditModel,
	Categories: eventstore.Filter{"account", "token", "locations"},
	Handlers: []projector.EventHandler{
		projector.OnAnyOther(onAnyOther),
		projector.On(onSitesChanged),
		projector.On(onSyncStaged),
		projector.On(onSyncCommitted),
		projector.On(onRequestKept),
	},
	DropRows: dropRows,
}

// dropRows takes the entries of an account away, or those of the one stream of a token. Entries about tokens stand in the
// history of the account that they act for, and do not come from its streams.
func dropRows(b *projector.Changeset, owner string, _ eventstore.Position) {
	if token, ok := strings.CutPrefix(owner, "/token-"); ok {
		projector.DeleteRowsWhere(b, table.AuditEntries, "kind = ? and subject = ?", table.AuditKindToken, token)
		return
	}
	projector.DeleteRowsWhere(b, table.AuditEntries, "account = ? and kind <> ?", owner, table.AuditKindToken)
}

func onAnyOther(b *projector.Changeset, e event.Event, r projector.Record) {
	entry := newEntry(r)
	entry.Kind, entry.Subject = subjectOf(e, r)
	entry.Account, entry.Sentence, entry.Data = accountOf(e, r), event.Sentence(e), redactedJSON(e)
	projector.PutRow(b, table.AuditEntries, entry)
}

// newEntry is what an entry has from its event's place and envelope.
func newEntry(r projector.Record) table.AuditEntry {
	return table.AuditEntry{
		Position: int64(r.Position), Account: eventstore.EntityID(r.Stream), Recorded: table.InstantOf(r.Time), Type: r.Type,
		Actor: r.Meta.Actor, OnBehalfOf: r.Meta.OnBehalfOf, Reason: r.Meta.Reason,
	}
}

// subjectOf says what an event is subjectOf.
func subjectOf(e event.Event, r projector.Record) (kind, subject string) {
	switch e := e.(type) {
	case event.SecretKeyIssued:
		return table.AuditKindKeys, e.Key
	case event.PublishableKeyIssued:
		return table.AuditKindKeys, e.Key
	case event.KeyRevoked:
		return table.AuditKindKeys, e.Key
	case event.KeyOriginsChanged:
		return table.AuditKindKeys, e.Key
	case event.ReferentialOpened:
		return table.AuditKindSites, e.Code
	case event.ReferentialRenamed:
		return table.AuditKindSites, e.Code
	case event.ReferentialArchived:
		return table.AuditKindSites, e.Code
	case event.TokenIssued:
		return table.AuditKindToken, e.Token
	case event.TokenRevoked:
		return table.AuditKindToken, e.Token
	case event.TokenEventVoided:
		return table.AuditKindToken, eventstore.EntityID(r.Stream)
	case event.LocationsEventVoided:
		return table.AuditKindSites, eventstore.EntityID(r.Stream)
	case event.AccountActionRefused:
		if strings.Contains(e.Action, "key") || strings.Contains(e.Action, "origins") {
			return table.AuditKindKeys, eventstore.EntityID(r.Stream)
		}
	}
	return table.AuditKindAccount, eventstore.EntityID(r.Stream)
}

// accountOf is the account in whose history an event stands.
func accountOf(e event.Event, r projector.Record) string {
	switch e := e.(type) {
	case event.TokenIssued:
		return e.Account
	case event.TokenRevoked:
		return e.Account
	case event.TokenEventVoided:
		return ""
	}
	return eventstore.EntityID(r.Stream)
}

const (
	hashField      = `"hash":"` // as the name of a field only: inside a text the quotes are escaped
	shownHashChars = 16         // characters of a hash that are shown: enough to tell keys apart, too few to be one
)

// redactedJSON is the event as JSON, with its hash cut short. Its personal fields are empty already.
func redactedJSON(e event.Event) string {
	before, rest, found := strings.Cut(toJSON(e), hashField)
	if !found {
		return before
	}
	hash, after, _ := strings.Cut(rest, `"`)
	return before + hashField + hash[:min(len(hash), shownHashChars)] + `…"` + after
}

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
