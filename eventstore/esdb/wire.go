package esdb

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"

	"lieudit/eventstore"
)

// unlimited is the count of a read that goes to the end.
const unlimited = math.MaxInt64

func identifier(stream string) *shared.StreamIdentifier {
	return &shared.StreamIdentifier{StreamName: []byte(stream)}
}

func structured(id uuid.UUID) *shared.UUID {
	return &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{
		MostSignificantBits:  int64(binary.BigEndian.Uint64(id[:8])),
		LeastSignificantBits: int64(binary.BigEndian.Uint64(id[8:])),
	}}}
}

func parseID(id *shared.UUID) uuid.UUID {
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

func recorded(e *streams.ReadResp_ReadEvent_RecordedEvent) eventstore.Recorded {
	md := e.GetMetadata()
	ticks, _ := strconv.ParseInt(md["created"], 10, 64) // of 100 ns, since 1970
	return eventstore.Recorded{
		Position: eventstore.Position(e.GetCommitPosition()),
		Stream:   string(e.GetStreamIdentifier().GetStreamName()),
		Revision: eventstore.Revision(e.GetStreamRevision()),
		ID:       parseID(e.GetId()),
		Type:     md["type"],
		Time:     time.Unix(ticks/1e7, ticks%1e7*100).UTC(),
		Data:     e.GetData(),
		Metadata: e.GetCustomMetadata(),
	}
}

// question is a read request with what every one of ours has.
func question(dir eventstore.Direction, count uint64) *streams.ReadReq_Options {
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

func ofStream(stream string, from eventstore.Revision, dir eventstore.Direction, count uint64) *streams.ReadReq_Options {
	o := question(dir, count)
	s := &streams.ReadReq_Options_StreamOptions{StreamIdentifier: identifier(stream)}
	s.RevisionOption = &streams.ReadReq_Options_StreamOptions_Revision{Revision: uint64(from)}
	if from == eventstore.End {
		s.RevisionOption = &streams.ReadReq_Options_StreamOptions_End{End: &shared.Empty{}}
	}
	o.StreamOption = &streams.ReadReq_Options_Stream{Stream: s}
	return o
}

// ofAll reads the whole log from a position on, or back from before it; the greatest position is the end.
func ofAll(from eventstore.Position, dir eventstore.Direction, count uint64) *streams.ReadReq_Options {
	o := question(dir, count)
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

// filtered narrows a read of the whole log on the server. A prefix is wider than a category ("account" and
// "accounts-1"), because a stream may be named like its category; the reader looks again.
func filtered(o *streams.ReadReq_Options, want eventstore.Filter) *streams.ReadReq_Options {
	names := &streams.ReadReq_Options_FilterOptions_Expression{Prefix: want}
	if len(want) == 0 {
		names.Regex = "^[^$]"
	}
	o.FilterOption = &streams.ReadReq_Options_Filter{Filter: &streams.ReadReq_Options_FilterOptions{
		Filter:                       &streams.ReadReq_Options_FilterOptions_StreamIdentifier{StreamIdentifier: names},
		Window:                       &streams.ReadReq_Options_FilterOptions_Max{Max: 500},
		CheckpointIntervalMultiplier: 2,
	}}
	return o
}

// following turns a read into a subscription that goes on.
func following(o *streams.ReadReq_Options) *streams.ReadReq_Options {
	o.CountOption = &streams.ReadReq_Options_Subscription{Subscription: &streams.ReadReq_Options_SubscriptionOptions{}}
	return o
}

func appendTo(stream string, expected eventstore.Revision) *streams.AppendReq {
	o := &streams.AppendReq_Options{StreamIdentifier: identifier(stream)}
	switch expected {
	case eventstore.Any:
		o.ExpectedStreamRevision = &streams.AppendReq_Options_Any{Any: &shared.Empty{}}
	case eventstore.NoStream:
		o.ExpectedStreamRevision = &streams.AppendReq_Options_NoStream{NoStream: &shared.Empty{}}
	default:
		o.ExpectedStreamRevision = &streams.AppendReq_Options_Revision{Revision: uint64(expected)}
	}
	return &streams.AppendReq{Content: &streams.AppendReq_Options_{Options: o}}
}

func proposal(e eventstore.Proposed) *streams.AppendReq {
	return &streams.AppendReq{Content: &streams.AppendReq_ProposedMessage_{ProposedMessage: &streams.AppendReq_ProposedMessage{
		Id:             structured(e.ID),
		Metadata:       map[string]string{"type": e.Type, "content-type": "application/json"},
		CustomMetadata: e.Metadata,
		Data:           e.Data,
	}}}
}
