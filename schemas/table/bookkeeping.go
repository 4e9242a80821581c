package table

import (
	"fmt"
	"strings"
)

// Checkpoint is the row that tells how far a generation was filled and who fills it. It is a table of the generation itself,
// so that it changes in the same transaction as the rows. Some columns have older names than the fields: copy is the
// generation, owner and until are the lease.
type Checkpoint struct {
	Generation  string
	Log         string // UUID of the log, "" while nothing was written
	Position    int64
	Event       string  // id of the event at the position
	Recorded    Instant // when the last event was recorded
	LeaseHolder string  // the instance that fills the generation, or ""
	LeaseExpiry Instant // when the lease ends unless it is renewed
	StopReason  string  // why it cannot continue, or ""
}

// Checkpoints is a table that every generation has, with one row.
var Checkpoints = Table[Checkpoint]{
	Def: Def{Name: "checkpoint", KeyColumns: 1, Columns: []Column{
		{"copy", Text}, {"log", Text}, {"position", Integer}, {"event", Text},
		{"recorded", Timestamp}, {"owner", Text}, {"until", Timestamp}, {"reason", Text},
	}},
	Fields: func(c *Checkpoint) []any {
		return []any{&c.Generation, &c.Log, &c.Position, &c.Event, &c.Recorded, &c.LeaseHolder, &c.LeaseExpiry, &c.StopReason}
	},
}

// AccountStatus is a generation's note about one account next to its rows. Without this row the account is in order: its rows
// contain all its events up to the checkpoint. The status changes in the transactions that write rows, so it has the same log
// position as they have.
type AccountStatus struct {
	Account          string // StreamOwner of the streams that it is about
	Kind             string // AccountRunning, AccountUnusable, AccountUnreadable or AccountRefolding
	Stream           string // stream of the event that stopped the account
	Revision         int64  // revision of that event in its stream
	Position         int64  // position of that event in the log
	Reason           string // why that event stopped the account, or what is wrong with it although the account runs
	LastSkipped      int64  // position of the account's last event skipped since
	RefoldCount      int64  // how often a rewrite of its rows from its streams was requested or begun
	VoidedEvents     int64  // how many events of its streams are named by corrections
	FirstEmptyCommit int64  // position of the first commit without a sync id that was skipped; 0 for none
}

// Kinds of AccountStatus. With any kind except AccountRunning, the account is stopped.
const (
	AccountRunning    = ""           // its rows are right
	AccountUnusable   = "unusable"   // an event of it cannot be decoded, or commits rows that are not staged: it waits for a repair
	AccountUnreadable = "unreadable" // one of its personal fields cannot be opened at present
	AccountRefolding  = "refold"     // its rows are about to be rewritten from its streams
)

// IsStopped reports whether the account's events are skipped and its rows must not be shown.
func (s AccountStatus) IsStopped() bool { return s.Kind != AccountRunning }

// HasNote reports whether something is wrong with an event of the account, which runs nevertheless.
func (s AccountStatus) HasNote() bool { return !s.IsStopped() && s.Reason != "" }

// AccountStatuses is a table that every generation has.
var AccountStatuses = Table[AccountStatus]{
	Def: Def{Name: "account_status", KeyColumns: 1, Indexes: []string{"kind"}, Columns: []Column{
		{"account", Text}, {"kind", Text}, {"stream", Text}, {"revision", Integer}, {"position", Integer}, {"reason", Text},
		{"passed", Integer}, {"refolds", Integer}, {"voided", Integer}, {"empty", Integer},
	}},
	Fields: func(s *AccountStatus) []any {
		return []any{&s.Account, &s.Kind, &s.Stream, &s.Revision, &s.Position, &s.Reason, &s.LastSkipped, &s.RefoldCount, &s.VoidedEvents, &s.FirstEmptyCommit}
	},
}

// StreamOwner is what stops if an event of a stream cannot be used: the account whose stream it is or, for a stream without an
// account, a slash and the stream's name. Account ids contain no slash.
func StreamOwner(stream string) string {
	category, id, _ := strings.Cut(stream, "-")
	switch category {
	case "account", "locations":
		return id
	}
	return "/" + stream
}

// OwnerStreams are the names that the streams of an owner (see StreamOwner) have in some categories. The streams need not
// exist.
func OwnerStreams(owner string, categories []string) (streams []string) {
	if stream, isSingle := strings.CutPrefix(owner, "/"); isSingle {
		return []string{stream}
	}
	for _, category := range categories {
		if stream := category + "-" + owner; StreamOwner(stream) == owner {
			streams = append(streams, stream)
		}
	}
	return streams
}

// StoppedError: the account is stopped, and its rows must not be shown.
type StoppedError struct{ AccountStatus }

func (e *StoppedError) Error() string {
	return fmt.Sprintf("account %s is stopped (%s) at position %d: %s", e.Account, e.Kind, e.Position, e.Reason)
}
