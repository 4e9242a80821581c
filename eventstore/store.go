// Package eventstore is the log: streams of events appended with an expected revision and read back
// in one total order. It names the contract (Store), the envelope every event travels in (Metadata) and
// the codec between typed events and bytes; the logs themselves are in journal and esdb, and storetest
// holds each of them to every sentence written here.
package eventstore

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Revision is the place of an event in its stream, counted from 0. The negative values say what an
// append expects, or where a read begins, without naming a place.
type Revision int64

const (
	NoStream Revision = -1 // the stream holds no event yet
	Any      Revision = -2 // whatever the stream holds
	End      Revision = -3 // for ReadStream backward: the last event
)

// Position is the place of an event in the whole log. Positions grow with time and have gaps;
// 0 is before every event.
type Position uint64

// Checkpoint names a place in one log so that it can be checked later: which log, which position, and the id of the
// event that stood there. The zero Checkpoint is the beginning of whichever log is asked.
type Checkpoint struct {
	Log      uuid.UUID
	Position Position
	Event    uuid.UUID
}

// Direction says which way a stream is read.
type Direction bool

const (
	Forward  Direction = false
	Backward Direction = true
)

// Filter is the stream categories a reader wants ("account" matches "account-42"); an empty one wants
// every stream but those whose name begins with "$".
type Filter []string

// Matches says whether the filter wants the events of stream.
func (f Filter) Matches(stream string) bool {
	if len(f) == 0 {
		return !strings.HasPrefix(stream, "$")
	}
	category, _, _ := strings.Cut(stream, "-")
	for _, c := range f {
		if c == category {
			return true
		}
	}
	return false
}

// ProposedEvent is an event on its way into a stream. ID names it for ever: the same ID always goes with
// the same bytes, which is what makes sending an append again safe. Twice in one append it stands there twice.
type ProposedEvent struct {
	ID       uuid.UUID
	Type     string
	Data     []byte // JSON
	Metadata []byte // JSON, see Metadata
}

// RecordedEvent is an event in its place. Data and Metadata must not be changed; they stay valid for as long
// as they are referenced.
type RecordedEvent struct {
	Position Position
	Stream   string
	Revision Revision
	ID       uuid.UUID
	Type     string
	Time     time.Time // when the log recorded it, UTC
	Data     []byte
	Metadata []byte
}

// AppendResult is where an append went: the revision and the position of its last event.
type AppendResult struct {
	Revision Revision
	Position Position
}

// SignalKind tells what a Signal says.
type SignalKind uint8

const (
	EventAppeared     SignalKind = iota // an event: Signal.Event is set
	CheckpointReached                   // nothing wanted up to Mark: resume from there
	CaughtUp                            // all that was durable when the reader reached Mark has been said
)

// Signal is one thing a reader of the whole log is told. Mark is always the place to resume after.
type Signal struct {
	Kind       SignalKind
	Event      RecordedEvent
	Checkpoint Checkpoint
}

// MaxAppendBytes is the most one append may hold, in bytes of type, data and metadata together. EventStoreDB's own
// default is 1 MiB for the whole request; the rest is left to its framing.
const MaxAppendBytes = 1<<20 - 64<<10

// Store is a log. It is safe for concurrent use. No call outlives its context by more than a scheduling
// delay, whatever the network or the disk does.
type Store interface {
	// Identity is the UUID the log got when it was made. A copy of a log keeps it.
	Identity(ctx context.Context) (uuid.UUID, error)

	// Append adds events, all or none and next to each other, to the end of one stream, and returns when they
	// are durable. expected is the revision of the stream's last event, NoStream, or Any.
	//
	// Sending the very same batch again (same ids, same order, same expectation) returns what the first
	// sending did and adds nothing: always when expected is a revision or NoStream, and with Any as long as the
	// log remembers the ids, which it does for at least its last 10,000 appends while it stays open. A log that was
	// opened again, or that another node leads now, may have forgotten them and add the batch a second time: what is
	// appended with Any is for folds to which a repeat is nothing. Sent many times at once it lands once, but while one
	// sending is on its way another may be ErrUnknown.
	//
	// It fails with a *ConflictError when the stream is elsewhere, ErrTooLarge above MaxAppend, ErrMismatch when
	// an id comes back in another batch (none of them is added), ErrUnavailable when certainly nothing was
	// added, ErrClosed after Close. ErrUnknown means that it cannot be known: send the very same batch again to settle it. An
	// append whose context ends early is ErrUnknown too, and wraps the context's error, unless a server gave it up a
	// little before.
	Append(ctx context.Context, stream string, expected Revision, events []ProposedEvent) (AppendResult, error)

	// ReadStream yields the events of one stream from a revision on, inclusive, and ends at the stream's end
	// (backward: at its first event). A stream that does not exist yields nothing. An error ends the
	// sequence and is its last element; an end without an error is the true end.
	ReadStream(ctx context.Context, stream string, from Revision, dir Direction) iter.Seq2[RecordedEvent, error]

	// ReadAll yields the wanted events after a mark, in the order of their positions, up to what was durable when
	// it was called (or somewhat later), then one CaughtUp, and ends. A mark that is not in this log is a
	// *DivergedError.
	ReadAll(ctx context.Context, after Checkpoint, want Filter) iter.Seq2[Signal, error]

	// Subscribe is ReadAll that goes on: after CaughtUp it waits and yields events as they become durable. It
	// says CaughtUp again after every burst it had to catch up with, and Progress now and then
	// when unwanted events go by. It survives outages by itself, without gap or repetition, and
	// ends only with an error: the context's, a *DivergedError, a *CorruptError or ErrClosed.
	Subscribe(ctx context.Context, after Checkpoint, want Filter) iter.Seq2[Signal, error]

	// Health is nil while appends and reads are expected to work, else why they are not: a *StallError when the
	// log is silent and not given up yet.
	Health() error

	// Close lets running calls end with ErrClosed (or ErrUnknown) and frees everything.
	Close() error
}
