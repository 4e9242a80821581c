package event

import "slices"

// ReferentialOpened gives an account a group of sites. The account can never reuse its code for another one.
type ReferentialOpened struct {
	Code string   `json:"code"`
	Name Personal `json:"name,omitempty"`
}

// ReferentialRenamed gives a referential another name. Its code stays the same.
type ReferentialRenamed struct {
	Code   string   `json:"code"`
	Before Personal `json:"before,omitempty"`
	Name   Personal `json:"name,omitempty"`
}

// ReferentialArchived ends a referential for writes. If it had active sites, the previous event of the same append deactivated
// them.
type ReferentialArchived struct {
	Code string `json:"code"`
}

// AuditSubject is the referential.
func (e ReferentialOpened) AuditSubject() Subject   { return Subject{ID: e.Code} }
func (e ReferentialRenamed) AuditSubject() Subject  { return Subject{ID: e.Code} }
func (e ReferentialArchived) AuditSubject() Subject { return Subject{ID: e.Code} }

// SiteWriteSummary is what one request did to the sites of a referential, with the counts and limits behind the decision.
type SiteWriteSummary struct {
	Referential        string `json:"referential"`
	Action             string `json:"action"` // sync, upsert, put, patch, deactivate, reactivate, archive
	Created            int    `json:"created"`
	Updated            int    `json:"updated"`
	Unchanged          int    `json:"unchanged"`
	Reactivated        int    `json:"reactivated"`
	Deactivated        int    `json:"deactivated"`
	Geocoded           int    `json:"placed"` // sites written whose position came from their address
	ActiveBefore       int    `json:"before"` // active sites of the referential
	ActiveAfter        int    `json:"after"`
	AccountActive      int    `json:"active"`            // active sites of the account, before
	Capacity           int    `json:"capacity"`          // active sites that the account's plan includes
	Ceiling            int    `json:"ceiling"`           // active sites that no write may exceed: plan.Plan.SiteCeiling
	IdempotencyKeyHash string `json:"key,omitempty"`     // SHA-256 of the request's Idempotency-Key, in hexadecimal
	RequestHash        string `json:"request,omitempty"` // SHA-256 of the request's content, if there is a key
}

// SiteRow is the change of one site.
type SiteRow struct {
	ExternalID string   `json:"externalId"`
	SiteID     string   `json:"site"`              // its id
	Operation  string   `json:"op"`                // created, updated, reactivated, deactivated
	Version    int64    `json:"version"`           // after the change: 1 for a new site, and one more with each row
	Content    Personal `json:"content,omitempty"` // a locations.StoredSite as JSON; left out when it does not change
	Digest     []byte   `json:"digest,omitempty"`  // the locations.Digest of the content
	Geocoded   bool     `json:"placed,omitempty"`  // the position in the content came from its address
	Unlocated  bool     `json:"lost,omitempty"`    // the content has no position
}

// The operations of a SiteRow. A reactivated site may also have new content.
const (
	SiteCreated     = "created"
	SiteUpdated     = "updated"
	SiteReactivated = "reactivated"
	SiteDeactivated = "deactivated"
)

// SitesChanged is a write of sites that fits one event, with its rows.
type SitesChanged struct {
	SiteWriteSummary
	Rows []SiteRow `json:"rows"`
}

// SyncCommitted commits the rows of a staging stream, all at once: they count as if they were in this event.
type SyncCommitted struct {
	SiteWriteSummary
	SyncID     string `json:"sync"`   // the staging stream is sync-{sync}
	EventCount int    `json:"events"` // how many events it holds, all of them SyncStaged
	RowCount   int    `json:"rows"`
	Digest     []byte `json:"digest"` // SHA-256 over the data of its events, in order
}

// SyncStaged holds rows of a large sync. They only count once a SyncCommitted names their stream. Personal texts are sealed
// for the stream of that commit.
type SyncStaged struct {
	Rows []SiteRow `json:"rows"`
}

// UnchangedWriteRecorded keeps the answer to a request with an Idempotency-Key that changed nothing. Without it a repeated
// request could not be recognized.
type UnchangedWriteRecorded struct {
	SiteWriteSummary
}

// MapPersonal maps the name.
func (e ReferentialOpened) MapPersonal(f func(Personal) (Personal, error)) (Event, error) {
	name, err := e.Name.mapText(f)
	if err != nil {
		return nil, err
	}
	e.Name = name
	return e, nil
}

// MapPersonal maps both names.
func (e ReferentialRenamed) MapPersonal(f func(Personal) (Personal, error)) (Event, error) {
	before, err := e.Before.mapText(f)
	if err != nil {
		return nil, err
	}
	name, err := e.Name.mapText(f)
	if err != nil {
		return nil, err
	}
	e.Before, e.Name = before, name
	return e, nil
}

// MapPersonal maps the contents of the rows.
func (e SitesChanged) MapPersonal(f func(Personal) (Personal, error)) (Event, error) {
	rows, err := mapContents(e.Rows, f)
	if err != nil {
		return nil, err
	}
	e.Rows = rows
	return e, nil
}

// MapPersonal maps the contents of the rows.
func (e SyncStaged) MapPersonal(f func(Personal) (Personal, error)) (Event, error) {
	rows, err := mapContents(e.Rows, f)
	if err != nil {
		return nil, err
	}
	return SyncStaged{rows}, nil
}

// mapContents returns a copy of the rows with their contents mapped.
func mapContents(rows []SiteRow, f func(Personal) (Personal, error)) ([]SiteRow, error) {
	mapped := slices.Clone(rows)
	for i := range mapped {
		content, err := mapped[i].Content.mapText(f)
		if err != nil {
			return nil, err
		}
		mapped[i].Content = content
	}
	return mapped, nil
}

// StagedStream names the stream that the event commits, how many events it holds and their digest.
func (e SyncCommitted) StagedStream() (stream string, events int, digest []byte) {
	return "sync-" + e.SyncID, e.EventCount, e.Digest
}

// StagedCommit is an event that commits the events of another stream: they then count in its place.
type StagedCommit interface {
	Event
	StagedStream() (stream string, events int, digest []byte)
}

// EventType is the wire name.
func (ReferentialOpened) EventType() string      { return "locations.referential-opened.v2" }
func (ReferentialRenamed) EventType() string     { return "locations.referential-renamed.v2" }
func (ReferentialArchived) EventType() string    { return "locations.referential-archived.v1" }
func (SitesChanged) EventType() string           { return "locations.sites-changed.v1" }
func (SyncCommitted) EventType() string          { return "locations.sync-committed.v1" }
func (UnchangedWriteRecorded) EventType() string { return "locations.request-kept.v1" }
func (SyncStaged) EventType() string             { return "sync.staged.v1" }
