package node

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"

	"lieudit/eventstore"
)

// The protocol's content types, and the event types that EventStoreDB reserves.
const (
	jsonType      = "application/json"
	binaryType    = "application/octet-stream"
	metadataType  = "$metadata"      // of events that hold a stream's metadata
	tombstoneType = "$streamDeleted" // of the event that ends a stream permanently
)

// The log has no field for EventStoreDB's content type. Whether the data is JSON is kept as the first byte of the
// event's metadata. Metadata that is JSON or absent never begins with either byte, so the events of this program
// are stored unchanged.
const (
	binaryPrefix = 0 // not JSON; the client's metadata follows
	escapePrefix = 1 // JSON, and the client's metadata begins with one of these two bytes
)

// encodeMetadata returns the metadata that is stored for an event.
func encodeMetadata(metadata []byte, isJSON bool) []byte {
	switch {
	case !isJSON:
		return append([]byte{binaryPrefix}, metadata...)
	case len(metadata) > 0 && metadata[0] <= escapePrefix:
		return append([]byte{escapePrefix}, metadata...)
	}
	return metadata
}

// decodeMetadata is the inverse of encodeMetadata. The result shares the memory of its argument.
func decodeMetadata(metadata []byte) (plain []byte, isJSON bool) {
	if len(metadata) == 0 || metadata[0] > escapePrefix {
		return metadata, true
	}
	return metadata[1:], metadata[0] == escapePrefix
}

// proposedMessage is a proposed event of Append or BatchAppend: the two have generated types of their own.
type proposedMessage interface {
	GetId() *shared.UUID
	GetMetadata() map[string]string
	GetCustomMetadata() []byte
	GetData() []byte
}

// parseProposed validates a proposed event. Clients cannot write the event that a tombstone is.
func parseProposed(m proposedMessage) (eventstore.ProposedEvent, error) {
	var none eventstore.ProposedEvent
	eventType, ok := m.GetMetadata()["type"]
	if !ok {
		return none, invalidArgument("Required Metadata Property 'type' is missing")
	}
	contentType, ok := m.GetMetadata()["content-type"]
	if !ok {
		return none, invalidArgument("Required Metadata Property 'content-type' is missing")
	}
	id, err := parseUUID(m.GetId())
	switch {
	case err != nil || id == uuid.Nil:
		return none, invalidArgument("Empty eventId provided.")
	case eventType == "":
		return none, invalidArgument("Empty eventType provided.")
	case eventType == tombstoneType:
		return none, invalidArgument("'%s' is not a type a client may write.", eventType)
	}
	return eventstore.ProposedEvent{ID: id, Type: eventType, Data: m.GetData(), Metadata: encodeMetadata(m.GetCustomMetadata(), contentType == jsonType)}, nil
}

// eventSize returns what an event counts toward eventstore.MaxAppendBytes.
func eventSize(e eventstore.ProposedEvent) int { return len(e.Type) + len(e.Data) + len(e.Metadata) }

// isTombstone reports whether an event ended its stream.
func isTombstone(e eventstore.RecordedEvent) bool { return e.Type == tombstoneType }

// eventResponse is an event as clients receive it. The revision of a tombstone is the greatest one, as on
// EventStoreDB. The official client for Node.js asks for ids as text, the others as two integers.
func eventResponse(e eventstore.RecordedEvent, idAsText bool) *streams.ReadResp {
	metadata, isJSON := decodeMetadata(e.Metadata)
	contentType, revision, position := jsonType, uint64(e.Revision), uint64(e.Position)
	if !isJSON {
		contentType = binaryType
	}
	if isTombstone(e) {
		revision = math.MaxInt64
	}
	id := structuredUUID(e.ID)
	if idAsText {
		id = &shared.UUID{Value: &shared.UUID_String_{String_: e.ID.String()}}
	}
	return &streams.ReadResp{Content: &streams.ReadResp_Event{Event: &streams.ReadResp_ReadEvent{
		Event: &streams.ReadResp_ReadEvent_RecordedEvent{
			Id:               id,
			StreamIdentifier: streamIdentifier(e.Stream),
			StreamRevision:   revision,
			PreparePosition:  position,
			CommitPosition:   position,
			Metadata:         map[string]string{"type": e.Type, "content-type": contentType, "created": strconv.FormatInt(ticks(e.Time), 10)},
			CustomMetadata:   metadata,
			Data:             e.Data,
		},
		Position: &streams.ReadResp_ReadEvent_CommitPosition{CommitPosition: position},
	}}}
}

// streamIdentifier is a stream's name as the protocol has it.
func streamIdentifier(stream string) *shared.StreamIdentifier {
	return &shared.StreamIdentifier{StreamName: []byte(stream)}
}

// ticks is a time in EventStoreDB's unit: 100 ns since 1970.
func ticks(t time.Time) int64 { return t.UnixNano() / 100 }

// structuredUUID is an id as the protocol's two big-endian integers.
func structuredUUID(id uuid.UUID) *shared.UUID {
	return &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{
		MostSignificantBits:  int64(binary.BigEndian.Uint64(id[:8])),
		LeastSignificantBits: int64(binary.BigEndian.Uint64(id[8:])),
	}}}
}

// parseUUID reads both forms of an id.
func parseUUID(id *shared.UUID) (uuid.UUID, error) {
	if s := id.GetStructured(); s != nil {
		var u uuid.UUID
		binary.BigEndian.PutUint64(u[:8], uint64(s.GetMostSignificantBits()))
		binary.BigEndian.PutUint64(u[8:], uint64(s.GetLeastSignificantBits()))
		return u, nil
	}
	return uuid.Parse(id.GetString_())
}

// parseStreamName refuses what cannot be a stream: no name, the name of the whole log, a text that is not UTF-8.
func parseStreamName(id *shared.StreamIdentifier) (string, error) {
	name := string(id.GetStreamName())
	if name == "" || name == "$$" || name == "$all" || !utf8.ValidString(name) {
		return "", invalidArgument("'%s' is not a stream name.", printableHeader(name))
	}
	return name, nil
}

// parseStreamRevision refuses numbers that are not a revision of the log.
func parseStreamRevision(r uint64) (eventstore.Revision, error) {
	if r > math.MaxInt64 {
		return 0, invalidArgument("'%d' is not a revision.", r)
	}
	return eventstore.Revision(r), nil
}
