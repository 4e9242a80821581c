package esdb

import (
	"context"
	"encoding/binary"
	"math"
	"strconv"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"lieudit/eventstore"
)

// noCountLimit is the count of a read without a limit.
const noCountLimit = math.MaxInt64

// streamIdentifier is a stream's name in the form of the protocol.
func streamIdentifier(stream string) *shared.StreamIdentifier {
	return &shared.StreamIdentifier{StreamName: []byte(stream)}
}

// structuredUUID is an id as the protocol's two big-endian integers.
func structuredUUID(id uuid.UUID) *shared.UUID {
	return &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{
		MostSignificantBits:  int64(binary.BigEndian.Uint64(id[:8])),
		LeastSignificantBits: int64(binary.BigEndian.Uint64(id[8:])),
	}}}
}

// parseUUID reads both forms of an id. It returns the zero id for a malformed one.
func parseUUID(id *shared.UUID) uuid.UUID {
	s := id.GetStructured()
	if s == nil {
		u, _ := uuid.Parse(id.GetString_())
		return u
	}
	var u uuid.UUID
	binary.BigEndian.PutUint64(u[:8], uint64(s.GetMostSignificantBits()))
	binary.BigEndian.PutUint64(u[8:], uint64(s.GetLeastSignificantBits()))
	return u
}

// parseRecordedEvent reads an event. Its time is in EventStoreDB's unit: 100 ns since 1970.
func parseRecordedEvent(e *streams.ReadResp_ReadEvent_RecordedEvent) eventstore.RecordedEvent {
	md := e.GetMetadata()
	ticks, _ := strconv.ParseInt(md["created"], 10, 64) // a malformed time reads as 1970
	return eventstore.RecordedEvent{
		Position: eventstore.Position(e.GetCommitPosition()),
		Stream:   string(e.GetStreamIdentifier().GetStreamName()),
		Revision: eventstore.Revision(e.GetStreamRevision()),
		ID:       parseUUID(e.GetId()),
		Type:     md["type"],
		Time:     time.UnixMicro(ticks / 10).UTC(),
		Data:     e.GetData(),
		Metadata: e.GetCustomMetadata(),
	}
}

// newReadOptions are the options of every read of this package: at most count events, no filter, and ids as integers.
func newReadOptions(dir eventstore.Direction, count uint64) *streams.ReadReq_Options {
	o := &streams.ReadReq_Options{
		CountOption:  &streams.ReadReq_Options_Count{Count: count},
		FilterOption: &streams.ReadReq_Options_NoFilter{NoFilter: &shared.Empty{}},
		UuidOption:   &streams.ReadReq_Options_UUIDOption{Content: &streams.ReadReq_Options_UUIDOption_Structured{Structured: &shared.Empty{}}},
	}
	if dir == eventstore.Backward {
		o.ReadDirection = streams.ReadReq_Options_Backwards
	}
	return o
}

// streamReadOptions read a stream from a revision, or from its end, on.
func streamReadOptions(stream string, from eventstore.Revision, dir eventstore.Direction, count uint64) *streams.ReadReq_Options {
	o := newReadOptions(dir, count)
	s := &streams.ReadReq_Options_StreamOptions{StreamIdentifier: streamIdentifier(stream)}
	s.RevisionOption = &streams.ReadReq_Options_StreamOptions_Revision{Revision: uint64(from)}
	if from == eventstore.End {
		s.RevisionOption = &streams.ReadReq_Options_StreamOptions_End{End: &shared.Empty{}}
	}
	o.StreamOption = &streams.ReadReq_Options_Stream{Stream: s}
	return o
}

// allReadOptions read the whole log: forward from a position on, backward from before it. The greatest position is
// the end.
func allReadOptions(from eventstore.Position, dir eventstore.Direction, count uint64) *streams.ReadReq_Options {
	o := newReadOptions(dir, count)
	a := &streams.ReadReq_Options_AllOptions{}
	switch from {
	case 0:
		a.AllOption = &streams.ReadReq_Options_AllOptions_Start{Start: &shared.Empty{}}
	case math.MaxUint64:
		a.AllOption = &streams.ReadReq_Options_AllOptions_End{End: &shared.Empty{}}
	default:
		a.AllOption = &streams.ReadReq_Options_AllOptions_Position{Position: &streams.ReadReq_Options_Position{
			CommitPosition: uint64(from), PreparePosition: uint64(from),
		}}
	}
	o.StreamOption = &streams.ReadReq_Options_All{All: a}
	return o
}

// withFilter makes the server filter a read of the whole log; an empty filter excludes system streams. The server compares
// prefixes, which are wider than categories: "account" also matches "accounts-1". A stream may be named like its category, so
// "account-" would be too narrow. The reader therefore filters again.
func withFilter(o *streams.ReadReq_Options, filter eventstore.Filter) *streams.ReadReq_Options {
	names := &streams.ReadReq_Options_FilterOptions_Expression{Prefix: filter}
	if len(filter) == 0 {
		names.Regex = "^[^$]"
	}
	// The server sends a subscription a checkpoint after every 2 * 500 events that it has scanned.
	o.FilterOption = &streams.ReadReq_Options_Filter{Filter: &streams.ReadReq_Options_FilterOptions{
		Filter:                       &streams.ReadReq_Options_FilterOptions_StreamIdentifier{StreamIdentifier: names},
		Window:                       &streams.ReadReq_Options_FilterOptions_Max{Max: 500},
		CheckpointIntervalMultiplier: 2,
	}}
	return o
}

// asSubscription turns the options of a read into those of a subscription.
func asSubscription(o *streams.ReadReq_Options) *streams.ReadReq_Options {
	o.CountOption = &streams.ReadReq_Options_Subscription{Subscription: &streams.ReadReq_Options_SubscriptionOptions{}}
	return o
}

// requireLeader makes a node that does not lead refuse the call. Otherwise it would answer from older data or
// forward the call.
func requireLeader(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "requires-leader", "true")
}

// noDeadline hides the caller's deadline from the server. A call that runs out of time then ends by its own context, and
// cannot be confused with a timeout of the server.
type noDeadline struct{ context.Context }

func (noDeadline) Deadline() (time.Time, bool) { return time.Time{}, false }

// appendTimeout is how long a server may take for one append. After that its outcome is unknown.
const appendTimeout = 10 * time.Second

// unresponsiveAfter is how long a pipeline may owe an answer while the server answers other calls. A server that is only slow
// refuses a write after its own limit, 2 s by default.
const unresponsiveAfter = 5 * time.Second

// newAppendRequest is an append as one message of a pipeline. The pipeline adds the correlation id.
func newAppendRequest(stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) *streams.BatchAppendReq {
	o := &streams.BatchAppendReq_Options{
		StreamIdentifier: streamIdentifier(stream),
		DeadlineOption:   &streams.BatchAppendReq_Options_Deadline{Deadline: durationpb.New(appendTimeout)},
	}
	switch expected {
	case eventstore.Any:
		o.ExpectedStreamPosition = &streams.BatchAppendReq_Options_Any{Any: &emptypb.Empty{}}
	case eventstore.NoStream:
		o.ExpectedStreamPosition = &streams.BatchAppendReq_Options_NoStream{NoStream: &emptypb.Empty{}}
	default:
		o.ExpectedStreamPosition = &streams.BatchAppendReq_Options_StreamPosition{StreamPosition: uint64(expected)}
	}
	req := &streams.BatchAppendReq{Options: o, IsFinal: true, ProposedMessages: make([]*streams.BatchAppendReq_ProposedMessage, len(events))}
	for i, e := range events {
		req.ProposedMessages[i] = &streams.BatchAppendReq_ProposedMessage{
			Id:             structuredUUID(e.ID),
			Metadata:       map[string]string{"type": e.Type, "content-type": "application/json"},
			CustomMetadata: e.Metadata,
			Data:           e.Data,
		}
	}
	return req
}
