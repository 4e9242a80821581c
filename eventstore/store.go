// Package eventstore is the contract of the event log: streams of events that are appended with an expected revision and
// read back in one total order. The logs themselves are in journal (a folder) and esdb (EventStoreDB, or a node, which shares
// a journal over the same protocol); storetest holds each of them to every sentence of Store.
//
//	event.Event ──Codec.Encode──► ProposedEvent ──Store.Append──► stream
//	                  │ Vault: data keys                            │
//	event.Event ◄─Codec.Decode── RecordedEvent ◄─Store.ReadStream──┤ one stream
//	                             Signal        ◄─Store.ReadAll,────┘ the whole log
//	                                             Store.Subscribe
//
// The Codec seals personal texts with data keys from the Vault, which is outside the log. What follows from the bytes on the
// log alone needs no vault: ReadStagedEvents, VoidedRevision and ValidateEvent. AppendUntilKnown sends an append whose outcome
// is unknown again, until it is known.
package eventstore

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Revision is the place of an event in its stream, counted from 0. The negative values are expectations of an append, or
// the start of a read, that name no place.
type Revision int64

const (
	NoStream Revision = -1 // the stream holds no event yet
	Any      Revision = -2 // the stream may hold anything
	End      Revision = -3 // for ReadStream backward: from the last event
)

// Position is the place of an event in the whole log. Positions grow with time and have gaps;
// 0 is before every event.
type Position uint64

// Checkpoint names a place in one log so that a later read can check it: the log, the position, and the id of the event that
// stands there. The zero Checkpoint is the beginning of any log.
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

// Filter lists the stream categories that a reader wants: "account" matches "account-42". An empty filter wants every
// stream but those whose name begins with "$".
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

// ProposedEvent is an event that is to be appended. Its ID names it for ever: the same ID always goes with the same bytes,
// which makes it safe to send an append again. An ID that stands twice in one append is added twice.
type ProposedEvent struct {
	ID       uuid.UUID
	Type     string
	Data     []byte // JSON
	Metadata []byte // JSON, see Metadata
}

// RecordedEvent is an event with its place on the log. Data and Metadata must not be changed. They stay valid for as long as
// they are referenced.
type RecordedEvent struct {
	Position Position
	Stream   string
	Revision Revision
	ID       uuid.UUID
	Type     string
	Time     time.Time // when the log recorded it, UTC, in whole microseconds: a database keeps no more
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
	CaughtUp                            // all wanted events were yielded that were durable when the reader reached Signal.Checkpoint
)

// Signal is one element of a read of the whole log. A later read may resume after the Checkpoint of any Signal.
type Signal struct {
	Kind       SignalKind
	Event      RecordedEvent
	Checkpoint Checkpoint
}

// MaxAppendBytes is the most that one append may hold, in bytes of types, data and metadata together. EventStoreDB's own
// limit is 1 MiB for the whole request; the rest is for its framing.
const MaxAppendBytes = 1<<20 - 64<<10

// Store is a log. It is safe for concurrent use. No call outlives its context by more than a scheduling delay, whatever the
// network or the disk does.
type Store interface {
	// Identity is the UUID that the log got when it was made. A copy of a log has the same.
	Identity(ctx context.Context) (uuid.UUID, error)

	// Append adds events, all or none and next to each other, to the end of one stream. It returns when they are durable.
	// expected is the revision of the stream's last event, NoStream, or Any.
	//
	// The very same append sent again (same ids, same order, same expectation) returns what the first one did and adds
	// nothing. With a revision or NoStream that is always so. With Any it is so as long as the log remembers the ids: at
	// least those of its last 10,000 appends while it stays open. A log that was opened again, or that another node leads
	// now, may have forgotten them and add the events a second time. So only events whose repeat changes no fold may be
	// appended with Any. An append sent many times at once is added once, but while one call is under way another may
	// return ErrUnknown.
	//
	// The error is a *ConflictError when the stream is at another revision, ErrTooLarge above MaxAppendBytes, ErrIDReused
	// when an id was used in another append, ErrUnavailable, and ErrClosed after Close: in all these cases nothing was
	// added. ErrUnknown means that the events may or may not have been added: sending the very same append again settles
	// it. An append whose context ends early is ErrUnknown too and wraps the context's error, unless a server gave it up a
	// little before.
	Append(ctx context.Context, stream string, expected Revision, events []ProposedEvent) (AppendResult, error)

	// ReadStream yields the events of one stream from a revision on, inclusive, to the stream's end (backward: to its first
	// event). A stream that does not exist yields nothing. An error is the last element of the sequence; an end without an
	// error is the true end.
	ReadStream(ctx context.Context, stream string, from Revision, dir Direction) iter.Seq2[RecordedEvent, error]

	// ReadAll yields the wanted events after a checkpoint, in the order of their positions, up to what was durable when it
	// was called or somewhat later, then one CaughtUp, and ends. A checkpoint that is not on this log is a *DivergedError.
	ReadAll(ctx context.Context, after Checkpoint, filter Filter) iter.Seq2[Signal, error]

	// Subscribe is ReadAll that continues: after CaughtUp it waits and yields events as they become durable. It yields another
	// CaughtUp after every burst that it had to catch up with, and a CheckpointReached now and then while it skips unwanted
	// events. It survives outages by itself, without gap or repetition. It ends only with an error: the context's, a
	// *DivergedError, a *CorruptError or ErrClosed.
	Subscribe(ctx context.Context, after Checkpoint, filter Filter) iter.Seq2[Signal, error]

	// Health is nil while appends and reads are expected to work, otherwise it says why not: a *StallError when the log does not
	// answer and is not taken for lost yet.
	Health() error

	// Close ends running calls with ErrClosed or ErrUnknown and frees everything. It may be called again.
	Close() error
}
