package journal

import (
	"hash/crc32"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// frame is the bytes of a mark or an event; format.go has the layout.
type frame []byte

func (f frame) crc() uint32     { return littleEndian.Uint32(f) }
func (f frame) size() int       { return int(littleEndian.Uint32(f[4:])) }
func (f frame) prevCRC() uint32 { return littleEndian.Uint32(f[8:]) }
func (f frame) kind() byte      { return f[12] }
func (f frame) position() eventstore.Position {
	return eventstore.Position(littleEndian.Uint64(f[16:]))
}
func (f frame) durableEnd() eventstore.Position {
	return eventstore.Position(littleEndian.Uint64(f[24:]))
}
func (f frame) revision() eventstore.Revision {
	return eventstore.Revision(littleEndian.Uint64(f[24:]))
}
func (f frame) time() time.Time      { return time.UnixMicro(int64(littleEndian.Uint64(f[32:]))).UTC() }
func (f frame) id() uuid.UUID        { return uuid.UUID(f[40:56]) }
func (f frame) isEvent() bool        { return f[12] != kindDurableMark }
func (f frame) isLastOfAppend() bool { return f[12] == kindLastEvent }

func (f frame) stream() []byte {
	n := eventHeaderSize + int(littleEndian.Uint16(f[14:]))
	return f[eventHeaderSize:n:n]
}

func (f frame) typeName() []byte {
	at := eventHeaderSize + int(littleEndian.Uint16(f[14:]))
	n := at + int(littleEndian.Uint32(f[56:]))
	return f[at:n:n]
}

// metadataAndData are the metadata and the data, either of them nil when it is empty.
func (f frame) metadataAndData() (metadata, data []byte) {
	at := eventHeaderSize + int(littleEndian.Uint16(f[14:])) + int(littleEndian.Uint32(f[56:]))
	n := at + int(littleEndian.Uint32(f[60:]))
	return sliceOrNil(f, at, n), sliceOrNil(f, n, len(f))
}

func sliceOrNil(f frame, from, to int) []byte {
	if from == to {
		return nil
	}
	return f[from:to:to]
}

func (f frame) checkpoint(logID uuid.UUID) eventstore.Checkpoint {
	return eventstore.Checkpoint{Log: logID, Position: f.position(), Event: f.id()}
}

// hasValidLengths says whether the lengths inside a frame of this size agree, so that the accessors stay within it.
func (f frame) hasValidLengths() bool {
	switch f.kind() {
	case kindDurableMark:
		return len(f) == durableMarkSize && string(f[32:40]) == durableMarkMagic
	case kindEvent, kindLastEvent:
		return len(f) >= eventHeaderSize && uint64(len(f)) >=
			eventHeaderSize+uint64(littleEndian.Uint16(f[14:]))+uint64(littleEndian.Uint32(f[56:]))+uint64(littleEndian.Uint32(f[60:]))
	}
	return false
}

// invalidReason says what is wrong with a whole frame that was read at pos, or "".
func (f frame) invalidReason(pos eventstore.Position, seed uint32) string {
	switch {
	case crc32.Update(seed, castagnoli, f[4:]) != f.crc():
		return "CRC does not match"
	case f.position() != pos:
		return "frame of another position"
	case !f.hasValidLengths():
		return "lengths do not agree"
	}
	return ""
}

// finalize gives a frame its place in the log. Nothing in it may change afterwards.
func (f frame) finalize(pos eventstore.Position, prev, seed uint32) {
	littleEndian.PutUint32(f[8:], prev)
	littleEndian.PutUint64(f[16:], uint64(pos))
	littleEndian.PutUint32(f, crc32.Update(seed, castagnoli, f[4:]))
}

// appendDurableMark adds a sealed mark to b.
func appendDurableMark(b []byte, pos, durable eventstore.Position, prev, seed uint32) []byte {
	n := len(b)
	b = append(b, make([]byte, durableMarkSize)...)
	f := frame(b[n:])
	littleEndian.PutUint32(f[4:], durableMarkSize)
	f[12] = kindDurableMark
	littleEndian.PutUint64(f[24:], uint64(durable))
	copy(f[32:], durableMarkMagic)
	f.finalize(pos, prev, seed)
	return b
}

// appendEventFrame adds an event to b that has yet to get its revision, its time and its place.
func appendEventFrame(b []byte, stream string, e *eventstore.ProposedEvent, kind byte) []byte {
	var h [eventHeaderSize]byte
	littleEndian.PutUint32(h[4:], uint32(eventFrameSize(stream, e)))
	h[12] = kind
	littleEndian.PutUint16(h[14:], uint16(len(stream)))
	copy(h[40:], e.ID[:])
	littleEndian.PutUint32(h[56:], uint32(len(e.Type)))
	littleEndian.PutUint32(h[60:], uint32(len(e.Metadata)))
	b = append(b, h[:]...)
	b = append(b, stream...)
	b = append(b, e.Type...)
	b = append(b, e.Metadata...)
	return append(b, e.Data...)
}

func eventFrameSize(stream string, e *eventstore.ProposedEvent) int {
	return eventHeaderSize + len(stream) + len(e.Type) + len(e.Metadata) + len(e.Data)
}

// setRevisionAndTime gives an event its revision and its time.
func (f frame) setRevisionAndTime(rev eventstore.Revision, micros int64) {
	littleEndian.PutUint64(f[24:], uint64(rev))
	littleEndian.PutUint64(f[32:], uint64(micros))
}
