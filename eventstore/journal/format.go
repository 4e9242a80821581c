// Package journal is the embedded event log: an eventstore.Store in one folder, written by one process.
// An append returns when its bytes are on disk, a reader sees an event only then, and no crash, power cut,
// full disk or failing fsync takes an acknowledged event back. Whatever the disk gives back is checked
// against its CRC before anyone sees it.
package journal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// The format on disk, version 1. Integers are little-endian; CRC is CRC-32C (Castagnoli).
//
// A log is a folder of segments, NNNNNNNNNNNNNNNN.log, each with an index beside it once it is full
// (NNNNNNNNNNNNNNNN.idx, see index.go). The sixteen hexadecimal digits are the segment's base: the position of its first
// byte. A position is a byte's place in the whole log; the base of a segment is the base of the one before plus
// its size. *.tmp is unfinished work and worth nothing; lock names the process that holds the folder.
//
// A segment has its full size from birth, zeros where nothing was written, and begins with a header of 64 bytes:
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
// so that a frame can be checked alone, and its place in the chain too. A mark goes on with
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
// The events of one append stand next to each other in one segment. What one fdatasync makes durable is a group: a mark,
// then whole appends. A segment's first frame is a mark, whose durable is the end of the segment before. In a quiet moment the
// next group's mark is written early, alone and not yet synced; the group then writes the very same bytes again, or, when it
// goes to the next segment, leaves that mark behind: it proves what it says but no frame links to it.
//
// To read the log: take frames while they check out. Where one does not, the log ends there if no valid mark with a durable
// beyond that place stands later in the file or in a later segment; else the log is damaged. An append without its last
// event is not there.
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

// newCRCSeed is what the CRCs of a log's frames begin with, so that a frame of another log is never taken for one of this.
func newCRCSeed(logID uuid.UUID) uint32 { return crc32.Checksum(logID[:], castagnoli) }

// segmentHeader is the beginning of a segment.
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

func newCorruptError(pos eventstore.Position, reason string) error {
	return &eventstore.CorruptError{Position: pos, Reason: reason}
}
