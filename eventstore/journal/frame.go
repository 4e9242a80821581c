package journal

import (
	"hash/crc32"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// frame is the bytes of a mark or an event; format.go has the layout.
type frame []byte

func (f frame) crc() uint32                   { return le.Uint32(f) }
func (f frame) size() int                     { return int(le.Uint32(f[4:])) }
func (f frame) prev() uint32                  { return le.Uint32(f[8:]) }
func (f frame) kind() byte                    { return f[12] }
func (f frame) position() eventstore.Position { return eventstore.Position(le.Uint64(f[16:])) }
func (f frame) durable() eventstore.Position  { return eventstore.Position(le.Uint64(f[24:])) }
func (f frame) revision() eventstore.Revision { return eventstore.Revision(le.Uint64(f[24:])) }
func (f frame) time() time.Time               { return time.UnixMicro(int64(le.Uint64(f[32:]))).UTC() }
func (f frame) id() uuid.UUID                 { return uuid.UUID(f[40:56]) }
func (f frame) isEvent() bool                 { return f[12] != kindMark }
func (f frame) endsAppend() bool              { return f[12] == kindEventEnd }

func (f frame) stream() []byte {
	n := eventSize + int(le.Uint16(f[14:]))
	return f[eventSize:n:n]
}

func (f frame) typeName() []byte {
	at := eventSize + int(le.Uint16(f[14:]))
	n := at + int(le.Uint32(f[56:]))
	return f[at:n:n]
}

// bodies are the metadata and the data, either of them nil when it is empty.
func (f frame) bodies() (metadata, data []byte) {
	at := eventSize + int(le.Uint16(f[14:])) + int(le.Uint32(f[56:]))
	n := at + int(le.Uint32(f[60:]))
	return part(f, at, n), part(f, n, len(f))
}

func part(f frame, from, to int) []byte {
	if from == to {
		return nil
	}
	return f[from:to:to]
}

func (f frame) mark(log uuid.UUID) eventstore.Mark {
	return eventstore.Mark{Log: log, Position: f.position(), Event: f.id()}
}

// fits says whether the lengths inside a frame of this size agree, so that the accessors stay within it.
func (f frame) fits() bool {
	switch f.kind() {
	case kindMark:
		return len(f) == markSize && string(f[32:40]) == markMagic
	case kindEvent, kindEventEnd:
		return len(f) >= eventSize && uint64(len(f)) >=
			eventSize+uint64(le.Uint16(f[14:]))+uint64(le.Uint32(f[56:]))+uint64(le.Uint32(f[60:]))
	}
	return false
}

// check says what is wrong with a whole frame that was read at pos, or "".
func (f frame) check(pos eventstore.Position, seed uint32) string {
	switch {
	case crc32.Update(seed, castagnoli, f[4:]) != f.crc():
		return "CRC does not match"
	case f.position() != pos:
		return "frame of another position"
	case !f.fits():
		return "lengths do not agree"
	}
	return ""
}

// seal gives a frame its place in the log. Nothing in it may change afterwards.
func (f frame) seal(pos eventstore.Position, prev, seed uint32) {
	le.PutUint32(f[8:], prev)
	le.PutUint64(f[16:], uint64(pos))
	le.PutUint32(f, crc32.Update(seed, castagnoli, f[4:]))
}

// appendMark adds a sealed mark to b.
func appendMark(b []byte, pos, durable eventstore.Position, prev, seed uint32) []byte {
	n := len(b)
	b = append(b, make([]byte, markSize)...)
	f := frame(b[n:])
	le.PutUint32(f[4:], markSize)
	f[12] = kindMark
	le.PutUint64(f[24:], uint64(durable))
	copy(f[32:], markMagic)
	f.seal(pos, prev, seed)
	return b
}

// appendEvent adds an event to b that has yet to get its revision, its time and its place.
func appendEvent(b []byte, stream string, e *eventstore.Proposed, kind byte) []byte {
	var h [eventSize]byte
	le.PutUint32(h[4:], uint32(frameSize(stream, e)))
	h[12] = kind
	le.PutUint16(h[14:], uint16(len(stream)))
	copy(h[40:], e.ID[:])
	le.PutUint32(h[56:], uint32(len(e.Type)))
	le.PutUint32(h[60:], uint32(len(e.Metadata)))
	b = append(b, h[:]...)
	b = append(b, stream...)
	b = append(b, e.Type...)
	b = append(b, e.Metadata...)
	return append(b, e.Data...)
}

func frameSize(stream string, e *eventstore.Proposed) int {
	return eventSize + len(stream) + len(e.Type) + len(e.Metadata) + len(e.Data)
}

// stamp gives an event its revision and its time.
func (f frame) stamp(rev eventstore.Revision, micros int64) {
	le.PutUint64(f[24:], uint64(rev))
	le.PutUint64(f[32:], uint64(micros))
}
