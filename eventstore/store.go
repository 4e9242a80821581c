// Package eventstore is the contract of the event log: streams of events that are appended with an expected revision and read
// back in one total order. The logs themselves are in journal (a folder) and esdb (EventStoreDB, or a node, which shares a
// journal over the same protocol); storetest holds each of them to every sentence of Store.
//
//	event.Event ──Codec.Encode──► ProposedEvent ──Store.Append──► stream
//	                  │ Vault: data keys                            │
//	event.Event ◄─Codec.Decode── RecordedEvent ◄─Store.ReadStream──┤ one stream
//	                             Signal        ◄─Store.ReadAll,────┘ the whole log
//	                                             Store.Subscribe
//
// The Codec seals personal texts with data keys from the Vault, which is outside the log. Functions that need only the bytes
// on the log use no vault: ReadStagedEvents, VoidedRevision and ValidateEvent. AppendUntilKnown resends an append until its
// outcome is known.
package eventstore

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Revision is the index of an event in its stream, from 0. The negative values are not indexes: they are expectations of an
// append, or the start of a read.
type Revision int64

const (
	NoStream Revision = -1 // the stream holds no event yet
	Any      Revision = -2 // the stream may hold anything
	End      Revision = -3 // for ReadStream backward: from the last event
)

// Position is the position of an event in the whole log. Positions grow with time and have gaps; 0 is before every event.
type Position uint64

// Checkpoint names an event of one log so that a later read can check it: the log, the position, and the id of the event
// there. The zero Checkpoint is the beginning of any log.
type Checkpoint struct {
	Log      uuid.UUID
	Position Position
	Event    uuid.UUID
}

// Direction is the direction in which a stream is read.
type Direction bool

const (
	Forward  Direction = false
	Backward Direction = true
)

// Filter lists the stream categories that a reader wants: "account" matches "account-42". An empty filter wants every stream
// except those whose name begins with "$".
type Filter []string

// Matches reports whether the filter wants the events of stream.
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

// ProposedEvent is an event to be appended. Its ID identifies it permanently: the same ID always means the same bytes, which
// makes it safe to send an append again. An ID that occurs twice in one append is added twice.
type ProposedEvent struct {
	ID       uuid.UUID
	Type     string
	Data     []byte // JSON
	Metadata []byte // JSON, see Metadata
}

// RecordedEvent is an event with its position on the log. Data and Metadata must not be changed. They stay valid as long as
// they are referenced.
type RecordedEvent struct {
	Position Position
	Stream   string
	Revision Revision
	ID       uuid.UUID
	Type     string
	Time     time.Time // when the log recorded it, UTC, in whole microseconds, the precision of a database
	Data     []byte
	Metadata []byte
}

// AppendResult is the revision and the position of an append's last event.
type AppendResult struct {
	Revision Revision
	Position Position
}

// SignalKind is the kind of a Signal.
type SignalKind uint8

const (
	EventAppeared     SignalKind = iota // a wanted event: Signal.Event is set
	CheckpointReached                   // no wanted event since the last signal up to Signal.Checkpoint
	CaughtUp                            // every wanted event was yielded that was durable when the reader reached Signal.Checkpoint
)

// Signal is one element of a read of the whole log. A later read may resume after the Checkpoint of any Signal.
type Signal struct {
	Kind       SignalKind
	Event      RecordedEvent
	Checkpoint Checkpoint
}

// MaxAppendBytes is the largest append, in bytes of types, data and metadata together. EventStoreDB's own limit is 1 MiB for
// the whole request; the rest is for its framing.
const MaxAppendBytes = 1<<20 - 64<<10

// Store is a log. It is safe for concurrent use. No call outlives its context by more than a scheduling delay, whatever the
// network or the disk does.
type Store interface {
	// Identity is the UUID that the log got when it was made. A copy of a log has the same one.
	Identity(ctx context.Context) (uuid.UUID, error)

	// Append adds events, all or none and adjacent, to the end of one stream. It returns when they are durable. expected is
	// the revision of the stream's last event, NoStream, or Any.
	//
	// The very same append sent again (same ids, same order, same expectation) returns the result of the first one and adds
	// nothing. With a revision or NoStream that always holds. With Any it holds as long as the log remembers the ids: at
	// least those of its last 10,000 appends while it stays open. A log that was reopened, or is now led by another node, may
	// have forgotten them and add the events a second time. So append with Any only events whose repeat changes no fold. An
	// append sent many times concurrently is added once, but while one call is in progress another may return ErrUnknown.
	//
	// The error is a *ConflictError if the stream is at another revision, ErrTooLarge above MaxAppendBytes, ErrIDReused if an
	// id was used in another append, ErrUnavailable, or ErrClosed after Close: in all these cases nothing was added.
	// ErrUnknown means that the events may or may not have been added: sending the very same append again settles it. An
	// append whose context ends early is ErrUnknown too and wraps the context's error, unless a server gave it up shortly
	// before.
	Append(ctx context.Context, stream string, expected Revision, events []ProposedEvent) (AppendResult, error)

	// ReadStream yields the events of one stream from a revision on, inclusive, to the stream's end (backward: to its first
	// event). A stream that does not exist yields nothing. An error is the last element of the sequence; without one the end
	// is the true end.
	ReadStream(ctx context.Context, stream string, from Revision, dir Direction) iter.Seq2[RecordedEvent, error]

	// ReadAll yields the wanted events after a checkpoint, in the order of their positions, up to at least what was durable
	// when it was called, then one CaughtUp, and ends. A checkpoint that is not on this log is a *DivergedError.
	ReadAll(ctx context.Context, after Checkpoint, filter Filter) iter.Seq2[Signal, error]

	// Subscribe is ReadAll that continues: after CaughtUp it waits and yields events as they become durable. It yields
	// another CaughtUp after every burst that it had to catch up with, and occasionally a CheckpointReached while it skips
	// unwanted events. It survives outages on its own, without gaps or repetitions. It ends only with an error: the
	// context's, a *DivergedError, a *CorruptError or ErrClosed.
	Subscribe(ctx context.Context, after Checkpoint, filter Filter) iter.Seq2[Signal, error]

	// Health is nil while appends and reads are expected to work. Otherwise it is the cause: a *StallError if the log does
	// not answer but is not considered lost yet.
	Health() error

	// Close ends running calls with ErrClosed or ErrUnknown and releases everything. It may be called again.
	Close() error
}
