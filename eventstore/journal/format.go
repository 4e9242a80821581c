package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// The format on disk, version 1. Integers are little-endian; CRC is CRC-32C (Castagnoli).
//
// A log is a folder of segments, NNNNNNNNNNNNNNNN.log, each with an index next to it once it is full (NNNNNNNNNNNNNNNN.idx,
// see index.go). The sixteen hexadecimal digits are the segment's base: the position of its first byte. A position is a
// byte's offset in the whole log; the base of a segment is the base of the one before plus its size. A *.tmp file is
// unfinished work and is removed at the next start; the file lock names the process that holds the folder.
//
// A segment has its full size from the beginning, filled with zeros. It begins with a header of 64 bytes:
//
//	 0  magic    8  "LIEUDITJ"
//	 8  version  4  1
//	12  crc      4  of the other 60 bytes
//	16  log     16  UUID of the log
//	32  base     8
//	40  size     8  of the whole file
//	48           16 zero
//
// Frames follow without gaps up to the first whose size is 0. Every frame begins with
//
//	 0  crc      4  of the frame's bytes from 4 on, begun with seed, the CRC of the log's UUID
//	 4  size     4  of the whole frame
//	 8  prev     4  crc of the frame before, in this segment or the one before; seed for the first of all
//	12  kind     1  1 mark, 2 event, 3 event that ends its append
//	13           1  zero
//	14  stream   2  bytes of stream name (0 in a mark)
//	16  position 8  of this frame
//
// so that a frame can be checked both alone and in the chain. A mark continues with
//
//	24  durable  8  all the log's bytes before this position were on disk when the mark was written
//	32  magic    8  FF "durabl" FE
//
// and an event with
//
//	24  revision 8  place in its stream, from 0
//	32  time     8  microseconds since 1970, UTC
//	40  id      16
//	56  type     4  bytes of type name
//	60  metadata 4  bytes of metadata
//	64  stream name, type name, metadata, and data up to the frame's end
//
// The events of one append are adjacent in one segment. A group is what one fdatasync makes durable: a mark, then whole
// appends. A segment's first frame is a mark, whose durable is the end of the segment before. When the writer has been idle for
// a moment it writes the mark of the next group early, alone and not yet synced. That group then writes the very same bytes again. If the
// group goes to the next segment instead, the early mark stays behind: it is true, but no frame links to it.
//
// To read the log: read frames while they are valid. The log ends at the first invalid one, unless a later valid mark, in
// this segment or another, declares a position beyond it durable: then the log is damaged. An append whose last event is
// missing does not count.
const (
	formatVersion     = 1
	segmentHeaderSize = 64
	durableMarkSize   = 40
	eventHeaderSize   = 64 // without names and bodies

	segmentMagic     = "LIEUDITJ"
	durableMarkMagic = "\xffdurabl\xfe" // never in UTF-8

	kindDurableMark = 1
	kindEvent       = 2
	kindLastEvent   = 3
)

var (
	castagnoli   = crc32.MakeTable(crc32.Castagnoli)
	littleEndian = binary.LittleEndian
)

// newCRCSeed is the value that the CRC of every frame of a log starts from. It makes a frame of another log invalid here.
func newCRCSeed(logID uuid.UUID) uint32 { return crc32.Checksum(logID[:], castagnoli) }

// segmentHeader is the content of a segment's header.
type segmentHeader struct {
	logID      uuid.UUID
	base, size uint64
}

func (h segmentHeader) encode() []byte {
	b := make([]byte, segmentHeaderSize)
	copy(b, segmentMagic)
	littleEndian.PutUint32(b[8:], formatVersion)
	copy(b[16:], h.logID[:])
	littleEndian.PutUint64(b[32:], h.base)
	littleEndian.PutUint64(b[40:], h.size)
	littleEndian.PutUint32(b[12:], segmentHeaderCRC(b))
	return b
}

func segmentHeaderCRC(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:12], castagnoli), castagnoli, b[16:segmentHeaderSize])
}

var (
	errNotSegment     = errors.New("not a segment of a journal")
	errUnknownVersion = errors.New("segment of a version this program does not know")
	errDamagedHeader  = errors.New("segment header is damaged")
)

func decodeSegmentHeader(b []byte) (segmentHeader, error) {
	switch {
	case len(b) < segmentHeaderSize || string(b[:8]) != segmentMagic:
		return segmentHeader{}, errNotSegment
	case littleEndian.Uint32(b[12:]) != segmentHeaderCRC(b):
		return segmentHeader{}, errDamagedHeader
	case littleEndian.Uint32(b[8:]) != formatVersion:
		return segmentHeader{}, errUnknownVersion
	}
	return segmentHeader{logID: uuid.UUID(b[16:32]), base: littleEndian.Uint64(b[32:]), size: littleEndian.Uint64(b[40:])}, nil
}

// newCorruptError is a *CorruptError at pos. Operators read the reason.
func newCorruptError(pos eventstore.Position, reason string) error {
	return &eventstore.CorruptError{Position: pos, Reason: reason}
}

// frame is the bytes of one mark or one event, in the layout at the top of this file. The accessors rely on parseFrame, which
// has checked the lengths. The slices that they return share the frame's memory and have no spare capacity, so appending to
// them changes nothing else. durableEnd is for marks only; revision, time, id, stream, typeName and metadataAndData are for
// events only.
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

// metadataAndData returns the metadata and the data, nil if empty.
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

// checkpoint names the event in the log with this id.
func (f frame) checkpoint(logID uuid.UUID) eventstore.Checkpoint {
	return eventstore.Checkpoint{Log: logID, Position: f.position(), Event: f.id()}
}

// hasValidLengths reports whether the lengths inside a frame fit its size, so that the accessors stay within it.
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

// parseFrame checks the frame at the beginning of b, which was read at pos: its size, CRC, position and lengths. If b holds
// only part of the frame, it returns how many bytes it needs and no frame. If b holds no valid frame, it returns the reason.
func parseFrame(b []byte, pos eventstore.Position, seed uint32) (f frame, needed int, invalid string) {
	if len(b) < durableMarkSize {
		return nil, durableMarkSize, ""
	}
	size := frame(b).size()
	if size < durableMarkSize {
		return nil, 0, fmt.Sprintf("frame of %d bytes", size)
	}
	if len(b) < size {
		return nil, size, ""
	}
	f = frame(b[:size:size])
	switch {
	case crc32.Update(seed, castagnoli, f[4:]) != f.crc():
		return nil, 0, "CRC does not match"
	case f.position() != pos:
		return nil, 0, "frame of another position"
	case !f.hasValidLengths():
		return nil, 0, "lengths do not agree"
	}
	return f, size, ""
}

// finalize sets the fields that tie a frame to its position in the log, and its CRC. prev is the CRC of the frame before. The
// frame must not change afterwards.
func (f frame) finalize(pos eventstore.Position, prev, seed uint32) {
	littleEndian.PutUint32(f[8:], prev)
	littleEndian.PutUint64(f[16:], uint64(pos))
	littleEndian.PutUint32(f, crc32.Update(seed, castagnoli, f[4:]))
}

// appendDurableMark appends to b a mark at pos that declares everything before durable to be on disk.
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

// appendEventFrame appends an event to b. The writer sets its revision, time and position later.
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

// eventFrameSize is the size in bytes of the frame that appendEventFrame makes.
func eventFrameSize(stream string, e *eventstore.ProposedEvent) int {
	return eventHeaderSize + len(stream) + len(e.Type) + len(e.Metadata) + len(e.Data)
}

// setRevisionAndTime sets the revision and the time, in microseconds, of an event.
func (f frame) setRevisionAndTime(rev eventstore.Revision, micros int64) {
	littleEndian.PutUint64(f[24:], uint64(rev))
	littleEndian.PutUint64(f[32:], uint64(micros))
}

const (
	// blockSize is how much a cursor reads from a file at once. Events are slices of the block they were read in, so one
	// event that a caller keeps may keep a whole block in memory.
	blockSize = 128 << 10
	// smallBlockSize is how much is read for a single event. Most events are smaller.
	smallBlockSize = 2 << 10
)

// cursor reads the frames of one segment in order and checks each: its CRC, its position, its link to the frame before. After
// an error it stays at the frame that it could not read.
type cursor struct {
	segment *segment
	seed    uint32
	pos     eventstore.Position // of the next frame
	end     eventstore.Position // where the frames end
	prevCRC uint32              // CRC of the frame before pos

	block []byte // the bytes already read from pos on, up to end at most
}

// nextFrame returns the frame at pos, or nil at end. A frame of size 0 is damage here: only recovery expects one.
func (c *cursor) nextFrame() (frame, error) {
	if c.pos >= c.end {
		return nil, nil
	}
	// A frame may be larger than the block: the first pass finds its size, the next one reads all of it.
	for {
		f, needed, invalid := parseFrame(c.block, c.pos, c.seed)
		if f != nil {
			return c.moveBehind(f)
		}
		switch left := uint64(c.end - c.pos); {
		case invalid != "":
			return nil, newCorruptError(c.pos, invalid)
		case left < durableMarkSize:
			return nil, newCorruptError(c.pos, "frame cut short")
		case uint64(needed) > left:
			return nil, newCorruptError(c.pos, fmt.Sprintf("frame of %d bytes", needed))
		}
		if err := c.loadBlock(max(needed, blockSize)); err != nil {
			return nil, err
		}
	}
}

// moveBehind checks that f links to the frame before and moves the cursor past it.
func (c *cursor) moveBehind(f frame) (frame, error) {
	if f.prevCRC() != c.prevCRC {
		return nil, newCorruptError(c.pos, "does not follow the frame before")
	}
	c.pos += eventstore.Position(len(f))
	c.prevCRC = f.crc()
	c.block = c.block[len(f):]
	return f, nil
}

// loadBlock reads size bytes from pos on, or up to end if that is less. Every block is a new slice: events point into the old
// ones.
func (c *cursor) loadBlock(size int) error {
	want := min(uint64(size), uint64(c.end-c.pos))
	b := make([]byte, want)
	got, err := c.segment.file.ReadAt(b, int64(c.pos-c.segment.base))
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read log at %d: %w", c.pos, err)
	}
	if uint64(got) < want {
		return newCorruptError(c.pos+eventstore.Position(got), "segment file is too short")
	}
	c.block = b
	return nil
}

// readFrameAt reads the one frame at pos, which must be before end, and checks everything but its link to the frame before.
func (s *segment) readFrameAt(pos, end eventstore.Position, seed uint32) (frame, error) {
	c := cursor{segment: s, seed: seed, pos: pos, end: end}
	if err := c.loadBlock(smallBlockSize); err != nil {
		return nil, err
	}
	if len(c.block) < durableMarkSize {
		return nil, newCorruptError(pos, "frame cut short")
	}
	c.prevCRC = frame(c.block).prevCRC() // so that the check of the link passes
	return c.nextFrame()
}
