package table

import (
	"fmt"
	"strings"
)

// Checkpoint is the row that says how far a generation was filled and who fills it. It is a table of the generation
// itself, so that it changes in the same transaction as the rows. Some of its columns have older words than the fields:
// copy is the generation, owner and until are the lease.
type Checkpoint struct {
	Generation  string
	Log         string // UUID of the log, "" while nothing was written
	Position    int64
	Event       string  // id of the event at the position
	Recorded    Instant // when the last event was recorded
	LeaseHolder string  // the instance that fills the generation, "" for none
	LeaseExpiry Instant // when the lease ends unless it is renewed
	StopReason  string  // why it cannot continue, "" when it can
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

// AccountStatus is what a generation notes of one account next to its rows. An account without this row is in order: its
// rows contain all its events up to the checkpoint. The status changes in the transactions that write rows, so it is of
// the same position in the log as they are.
type AccountStatus struct {
	Account          string // StreamOwner of the streams that it is about
	Kind             string // AccountRunning, AccountUnusable, AccountUnreadable or AccountRefolding
	Stream           string // stream of the event that stopped the account
	Revision         int64  // revision of that event in its stream
	Position         int64  // position of that event in the log
	Reason           string // why that event stopped the account
	LastSkipped      int64  // position of the last event of the account that was skipped since
	RefoldCount      int64  // how often that its rows are written again from its streams was requested or begun
	VoidedEvents     int64  // how many events of its streams are named by corrections
	FirstEmptyCommit int64  // position of the first commit without a sync id that was skipped; 0 for none
}

// Kinds of AccountStatus. But for AccountRunning, the account is stopped.
const (
	AccountRunning    = ""           // its rows are right
	AccountUnusable   = "unusable"   // an event of it cannot be decoded, or commits what is not staged: it waits for a repair
	AccountUnreadable = "unreadable" // a personal field of it cannot be opened for now
	AccountRefolding  = "refold"     // its rows are about to be written again from its streams
)

// IsStopped reports whether the account's events are skipped and its rows must not be shown.
func (s AccountStatus) IsStopped() bool { return s.Kind != AccountRunning }

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

// StreamOwner is what stops when an event of a stream cannot be used: the account whose stream it is, or, for a stream
// of no account, a slash and the stream's name. No account's id contains a slash.
func StreamOwner(stream string) string {
	category, id, _ := strings.Cut(stream, "-")
	switch category {
	case "account", "locations":
		return id
	}
	return "/" + stream
}

// OwnerStreams are the names of the streams of an owner, as StreamOwner returns it, in some categories. A stream of the name
// need not exist.
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
