// Package audit fills the audit trail: one row for every event of accounts, tokens and customers' sites, as an auditor reads
// it, and one row for every site that an event changed. The texts in an event that people typed (reason, labels, names) are
// in a row of their own, which an erasure deletes. It never reads the content of a site, and it shows only the first
// characters of a hash.
//
// The projector calls the handlers of Model with each decoded event. A handler makes an entry of the event's position and
// metadata (newEntry), adds who and what the event is about, its sentence from the catalog and its data as JSON, and puts it
// into the changeset, along with its texts (putTexts). A new event of the catalog needs no change in this package.
package audit

import (
	"encoding/json"
	"strings"

	"lieudit/eventstore"
	"lieudit/projections/projector"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// Model is the audit trail.
var Model = projector.Model{
	ReadModel:         table.AuditModel,
	IsExhaustive:      true,
	NeedsPersonalData: true,
	NeedsReasons:      true,
	Handlers: []projector.EventHandler{
		projector.OnAnyOther(onAnyOther, "account", tokenCategory, locationsCategory),
		projector.On(onAccountOpened),
		projector.On(onAccountErased),
		projector.OnSealed(onSitesChanged),
		projector.OnSealed(onSyncStaged),
		projector.OnSealed(onSyncCommitted),
		projector.OnSealed(onUnchangedWriteRecorded),
	},
	DropRows:  dropRows,
	EraseRows: eraseTexts,
}

const (
	tokenCategory     = "token"
	locationsCategory = "locations"
)

// dropRows deletes the entries of an account, or those of the one stream of a token. Entries about tokens are shown with
// the account that the token acts for, but come from the token's stream: dropping the account keeps them.
func dropRows(b *projector.Changeset, owner string, _ eventstore.Position) {
	projector.RequireScrub(b)
	projector.DeleteRows(b, table.AuditTexts, "owner", owner)
	if token, ok := strings.CutPrefix(owner, "/token-"); ok {
		projector.DeleteRowsWhere(b, table.AuditEntries, "kind = ? and subject = ?", table.AuditKindToken, token)
		return
	}
	projector.DeleteRowsWhere(b, table.AuditEntries, "account = ? and kind <> ?", owner, table.AuditKindToken)
}

// onAnyOther puts the one entry of an event that has no handler of its own.
func onAnyOther(b *projector.Changeset, e event.Event, r projector.Record) {
	entry := newEntry(r)
	setSubject(&entry, e)
	entry.Sentence, entry.Data = event.Sentence(e), redactedJSON(withoutPersonal(e))
	projector.PutRow(b, table.AuditEntries, entry)
	putTexts(b, entry, redactedJSON(e), r)
}

// putTexts puts the texts that people typed into the event of an entry. data is the event as JSON with its personal texts.
func putTexts(b *projector.Changeset, entry table.AuditEntry, data string, r projector.Record) {
	if data == entry.Data {
		data = ""
	}
	if data == "" && r.Meta.Reason == "" {
		return
	}
	projector.PutRow(b, table.AuditTexts, table.AuditText{
		Position: entry.Position, Owner: table.StreamOwner(r.Stream), Account: entry.Account, Reason: r.Meta.Reason, Data: data,
	})
}

// withoutPersonal is the event with its personal texts empty.
func withoutPersonal(e event.Event) event.Event {
	blank, err := event.MapPersonal(e, func(event.Personal) (event.Personal, error) { return "", nil })
	if err != nil { // only the function returns one
		return e
	}
	return blank
}

// onAccountOpened puts the entry of an account without its name, which the account itself shows.
func onAccountOpened(b *projector.Changeset, e event.AccountOpened, r projector.Record) {
	e.Name = ""
	onAnyOther(b, e, r)
}

// onAccountErased puts the entry of the erasure and deletes earlier texts that people typed about the account.
func onAccountErased(b *projector.Changeset, e event.AccountErased, r projector.Record) {
	eraseTexts(b, r.Account())
	onAnyOther(b, e, r)
}

// eraseTexts deletes the texts that people typed about an account, or about a token that acts for it.
func eraseTexts(b *projector.Changeset, account string) {
	projector.RequireScrub(b)
	projector.DeleteRows(b, table.AuditTexts, "account", account)
}

// newEntry returns an entry filled from the event's stream, position and metadata.
func newEntry(r projector.Record) table.AuditEntry {
	entry := table.AuditEntry{
		Position: int64(r.Position), Account: r.Account(), Subject: r.Account(), Kind: table.AuditKindAccount,
		Recorded: table.InstantOf(r.Time), Type: r.Type, Actor: r.Meta.Actor, OnBehalfOf: r.Meta.OnBehalfOf,
	}
	switch category, _, _ := strings.Cut(r.Stream, "-"); category {
	case tokenCategory: // no account owns the stream of a token
		entry.Kind, entry.Account = table.AuditKindToken, ""
	case locationsCategory:
		entry.Kind = table.AuditKindSites
	}
	return entry
}

// setSubject overrides the subject that the stream implies with the one that the event itself names.
func setSubject(entry *table.AuditEntry, e event.Event) {
	named, ok := e.(event.Subjected)
	if !ok {
		return
	}
	subject := named.AuditSubject()
	if subject.IsKey {
		entry.Kind = table.AuditKindKeys
	}
	if subject.ID != "" {
		entry.Subject = subject.ID
	}
	if subject.Account != "" {
		entry.Account = subject.Account
	}
}

const (
	hashField      = `"hash":"` // as the name of a field only: inside a JSON text the quotes are escaped
	shownHashChars = 16         // enough characters of a hash to distinguish keys, too few to be the hash
)

// redactedJSON is the event as JSON, with its hash cut short.
func redactedJSON(e event.Event) string {
	before, rest, found := strings.Cut(toJSON(e), hashField)
	if !found {
		return before
	}
	hash, after, _ := strings.Cut(rest, `"`)
	return before + hashField + hash[:min(len(hash), shownHashChars)] + `…"` + after
}

// onSitesChanged puts one entry for the request and one for each site, or only the site's if the request named one site.
func onSitesChanged(b *projector.Changeset, e event.SitesChanged, r projector.Record) {
	if isSingleSite(e) {
		projector.PutRow(b, table.AuditEntries, siteEntry(newEntry(r), e.Referential, e.Rows[0]))
		return
	}
	putSiteEntries(b, e.Referential, e.Rows, r)
	e.Rows = nil // the sentence does not need them
	putRequestEntry(b, e, e.SiteWriteSummary, r)
}

// isSingleSite reports whether the request named one site, and not a set of sites.
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

func onUnchangedWriteRecorded(b *projector.Changeset, e event.UnchangedWriteRecorded, r projector.Record) {
	putRequestEntry(b, e, e.SiteWriteSummary, r)
}

// putRequestEntry puts the entry of one request that wrote sites of a referential. Its hashes are left out.
func putRequestEntry(b *projector.Changeset, e event.Event, w event.SiteWriteSummary, r projector.Record) {
	w.IdempotencyKeyHash, w.RequestHash = "", ""
	entry := newEntry(r)
	entry.Subject, entry.Sentence, entry.Data = w.Referential, event.Sentence(e), toJSON(w)
	projector.PutRow(b, table.AuditEntries, entry)
}

// partRowBits is how many bits of an entry's part number hold the row within its event: an event holds at most 64 KiB, and so
// fewer rows than that.
const partRowBits = 16

// putSiteEntries puts one entry for each site. Part orders the entries of one position: by staged event, then by row.
func putSiteEntries(b *projector.Changeset, code string, rows []event.SiteRow, r projector.Record) {
	entry := newEntry(r)
	for i, row := range rows {
		entry.Part = int64(r.StagedNumber)<<partRowBits + int64(i) + 1
		projector.PutRow(b, table.AuditEntries, siteEntry(entry, code, row))
	}
}

// siteEntry completes an entry with what was done to one site. The digest of the content is left out: it is derived from
// personal data.
func siteEntry(entry table.AuditEntry, code string, row event.SiteRow) table.AuditEntry {
	entry.Kind, entry.Subject = table.AuditKindSites, table.AuditSiteSubject(code, row.ExternalID)
	entry.Sentence = row.Sentence(code)
	row.Digest = nil
	entry.Data = toJSON(row)
	return entry
}

// toJSON marshals a value. Events always have a JSON form.
func toJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "{}"
	}
	return string(data)
}
