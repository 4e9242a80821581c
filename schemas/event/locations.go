package event

// ReferentialOpened gives an account a group of sites. Its code is taken for ever.
type ReferentialOpened struct {
	Code string `json:"code"`
	Name string `json:"name,omitempty"`
}

// ReferentialRenamed gives a referential another name; its code stays.
type ReferentialRenamed struct {
	Code   string `json:"code"`
	Before string `json:"before,omitempty"`
	Name   string `json:"name,omitempty"`
}

// ReferentialArchived ends a referential for writes. Where it had active sites, the event before it in the same append
// made them inactive.
type ReferentialArchived struct {
	Code string `json:"code"`
}

// AuditSubject is the referential.
func (e ReferentialOpened) AuditSubject() Subject   { return Subject{ID: e.Code} }
func (e ReferentialRenamed) AuditSubject() Subject  { return Subject{ID: e.Code} }
func (e ReferentialArchived) AuditSubject() Subject { return Subject{ID: e.Code} }

// SiteWriteSummary is what one request did to the sites of a referential, and how the account stood.
type SiteWriteSummary struct {
	Referential        string `json:"referential"`
	Action             string `json:"action"` // sync, upsert, put, patch, deactivate, reactivate, archive
	Created            int    `json:"created"`
	Updated            int    `json:"updated"`
	Unchanged          int    `json:"unchanged"`
	Reactivated        int    `json:"reactivated"`
	Deactivated        int    `json:"deactivated"`
	Geocoded           int    `json:"placed"` // of those written, by their address
	ActiveBefore       int    `json:"before"` // active sites of the referential
	ActiveAfter        int    `json:"after"`
	AccountActive      int    `json:"active"` // active sites of the account, before
	Capacity           int    `json:"capacity"`
	Ceiling            int    `json:"ceiling"`
	IdempotencyKeyHash string `json:"key,omitempty"`     // SHA-256 of the request's Idempotency-Key, in hexadecimal
	RequestHash        string `json:"request,omitempty"` // SHA-256 of what was asked for, where there is a key
}

// SiteRow is what became of one site.
type SiteRow struct {
	ExternalID string   `json:"externalId"`
	SiteID     string   `json:"site"` // its id
	Operation  string   `json:"op"`   // created, updated, reactivated, deactivated
	Version    int64    `json:"version"`
	Content    Personal `json:"content,omitempty"` // site.Stored as JSON; left out where it stays as it was
	Digest     []byte   `json:"digest,omitempty"`  // site.Digest of the content
	Geocoded   bool     `json:"placed,omitempty"`  // the content has a position that its address gave
	Unlocated  bool     `json:"lost,omitempty"`    // the content has no position
}

// What becomes of a site. A site that comes back may come with a new content.
const (
	SiteCreated     = "created"
	SiteUpdated     = "updated"
	SiteReactivated = "reactivated"
	SiteDeactivated = "deactivated"
)

// SitesChanged is a small change of sites, with its rows.
type SitesChanged struct {
	SiteWriteSummary
	Rows []SiteRow `json:"rows"`
}

// SyncCommitted makes the rows of a staging stream real, all at once: they are as if they stood in this event's place.
type SyncCommitted struct {
	SiteWriteSummary
	SyncID     string `json:"sync"`   // the staging stream is sync-{sync}
	EventCount int    `json:"events"` // it holds so many, all of them SyncStaged
	RowCount   int    `json:"rows"`
	Digest     []byte `json:"digest"` // SHA-256 over the data of its events, in order
}

// SyncStaged is rows of a sync that is only an intention until it is committed. Personal fields are sealed for the stream
// that commits them.
type SyncStaged struct {
	Rows []SiteRow `json:"rows"`
}

// UnchangedWriteRecorded keeps the answer to a request with an Idempotency-Key that changed nothing.
type UnchangedWriteRecorded struct {
	SiteWriteSummary
}

// StagedStream names the stream an event makes real, how many events that holds and their digest.
func (e SyncCommitted) StagedStream() (stream string, events int, digest []byte) {
	return "sync-" + e.SyncID, e.EventCount, e.Digest
}

// StagedCommit is an event that makes the events of another stream real.
type StagedCommit interface {
	Event
	StagedStream() (stream string, events int, digest []byte)
}

// EventType is the wire name.
func (ReferentialOpened) EventType() string      { return "locations.referential-opened.v1" }
func (ReferentialRenamed) EventType() string     { return "locations.referential-renamed.v1" }
func (ReferentialArchived) EventType() string    { return "locations.referential-archived.v1" }
func (SitesChanged) EventType() string           { return "locations.sites-changed.v1" }
func (SyncCommitted) EventType() string          { return "locations.sync-committed.v1" }
func (UnchangedWriteRecorded) EventType() string { return "locations.request-kept.v1" }
func (SyncStaged) EventType() string             { return "sync.staged.v1" }
