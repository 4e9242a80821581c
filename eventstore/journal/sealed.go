package journal

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// The index of a full segment, in a file beside it. It proves where the segment ends, and is made again from
// the segment when it is missing or damaged. Header of 72 bytes:
//
//	 0  magic    8  "LIEUDITX"
//	 8  version  4  1
//	12  crc      4  of the rest of the file
//	16  log     16
//	32  base     8  of the segment
//	40  end      8  position after its last frame
//	48  final    8  position of the log's last event up to there
//	56  last     4  crc of its last frame
//	60  streams  4
//	64  events   4
//	68           4  zero
//
// then, ordered by key, one entry of 40 bytes a stream
//
//	 0  key     16  first half of the name's SHA-256
//	16  first    8  revision of its first event here
//	24  prev     8  base of the segment that holds the events before, or all ones
//	32  count    4  events here
//	36  list     4  which of the offsets is the first event's
//
// then the offsets of all events, 4 bytes each, stream by stream, from the segment's beginning.
const (
	indexMagic      = "LIEUDITX"
	indexHeaderSize = 72
	indexEntrySize  = 40
)

// segmentIndex is the index of one full segment: in memory until its file is written, in the file from then on.
type segmentIndex struct {
	runs         []streamRun
	once         sync.Once
	byKey        map[streamKey]int // of runs, made when first asked for
	file         File
	streams      int
	offsetsStart int64 // where the offsets begin
}

// seal gives a full segment the index of its events.
func (s *segment) seal(runs []streamRun) { s.index.Store(&segmentIndex{runs: runs}) }

// findExtent is the extent of a stream in segment s.
func (x *segmentIndex) findExtent(s *segment, key streamKey) (extent, error) {
	if x.file == nil {
		return x.findExtentInMemory(s, key)
	}
	lo, hi := 0, x.streams
	var b [indexEntrySize]byte
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if _, err := x.file.ReadAt(b[:], indexHeaderSize+int64(mid)*indexEntrySize); err != nil {
			return extent{}, fmt.Errorf("read index: %w", err)
		}
		switch c := bytes.Compare(b[:16], key[:]); {
		case c == 0:
			return x.decodeExtent(s, b[:]), nil
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return extent{}, newCorruptError(s.base, "stream missing in the index of the segment")
}

func (x *segmentIndex) findExtentInMemory(s *segment, key streamKey) (extent, error) {
	x.once.Do(func() {
		x.byKey = make(map[streamKey]int, len(x.runs))
		for i := range x.runs {
			x.byKey[x.runs[i].key] = i
		}
	})
	if i, ok := x.byKey[key]; ok {
		return x.runs[i].extent(s.base), nil
	}
	return extent{}, newCorruptError(s.base, "stream missing in the index of the segment")
}

func (x *segmentIndex) decodeExtent(s *segment, entry []byte) extent {
	return extent{
		base: s.base, firstRevision: eventstore.Revision(littleEndian.Uint64(entry[16:])), prevSegment: eventstore.Position(littleEndian.Uint64(entry[24:])),
		count: int(littleEndian.Uint32(entry[32:])), file: x.file, fileOffset: x.offsetsStart + 4*int64(littleEndian.Uint32(entry[36:])),
	}
}

// encodeSegmentIndex is the index file of a full segment.
func encodeSegmentIndex(logID uuid.UUID, s *segment, runs []streamRun) []byte {
	events := 0
	for i := range runs {
		events += len(runs[i].offsets)
	}
	runs = slices.SortedFunc(slices.Values(runs), func(a, b streamRun) int { return bytes.Compare(a.key[:], b.key[:]) })
	b := make([]byte, indexHeaderSize, indexHeaderSize+indexEntrySize*len(runs)+4*events)
	copy(b, indexMagic)
	littleEndian.PutUint32(b[8:], formatVersion)
	copy(b[16:], logID[:])
	littleEndian.PutUint64(b[32:], uint64(s.base))
	littleEndian.PutUint64(b[40:], uint64(s.end))
	littleEndian.PutUint64(b[48:], uint64(s.lastPosition))
	littleEndian.PutUint32(b[56:], s.lastCRC)
	littleEndian.PutUint32(b[60:], uint32(len(runs)))
	littleEndian.PutUint32(b[64:], uint32(events))
	list := 0
	for _, r := range runs {
		b = append(b, r.key[:]...)
		b = littleEndian.AppendUint64(b, uint64(r.firstRevision))
		b = littleEndian.AppendUint64(b, uint64(r.prevSegment))
		b = littleEndian.AppendUint32(b, uint32(len(r.offsets)))
		b = littleEndian.AppendUint32(b, uint32(list))
		list += len(r.offsets)
	}
	for _, r := range runs {
		for _, o := range r.offsets {
			b = littleEndian.AppendUint32(b, o)
		}
	}
	littleEndian.PutUint32(b[12:], indexCRC(b))
	return b
}

func indexCRC(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:12], castagnoli), castagnoli, b[16:])
}

// writeSegmentIndex puts the index of a full segment on disk and opens it.
func writeSegmentIndex(fs FS, s *segment, b []byte) (*segmentIndex, error) {
	name := indexName(s.base)
	tmp := strings.TrimSuffix(name, ".idx") + ".idx.tmp"
	f, err := fs.Open(tmp, true)
	if err != nil {
		return nil, fmt.Errorf("write index: %w", err)
	}
	if _, err = f.WriteAt(b, 0); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = fs.Rename(tmp, name)
	}
	if err == nil {
		err = fs.SyncDir()
	}
	if err != nil {
		return nil, fmt.Errorf("write index: %w", errors.Join(err, f.Close(), removeFiles(fs, tmp)))
	}
	return newSegmentIndex(f, b), nil
}

func newSegmentIndex(f File, b []byte) *segmentIndex {
	streams := int(littleEndian.Uint32(b[60:]))
	return &segmentIndex{file: f, streams: streams, offsetsStart: indexHeaderSize + indexEntrySize*int64(streams)}
}

var errIndexMismatch = errors.New("index does not match its segment")

// openSegmentIndex opens the index of segment s and returns its bytes, checked.
func openSegmentIndex(fs FS, s *segment, logID uuid.UUID) (File, []byte, error) {
	f, err := fs.Open(indexName(s.base), false)
	if err != nil {
		return nil, nil, err
	}
	b, err := readIndexBytes(f, s, logID)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, b, nil
}

func readIndexBytes(f File, s *segment, logID uuid.UUID) ([]byte, error) {
	b := make([]byte, indexHeaderSize)
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil, err
	}
	streams, events := int64(littleEndian.Uint32(b[60:])), int64(littleEndian.Uint32(b[64:]))
	if string(b[:8]) != indexMagic || littleEndian.Uint32(b[8:]) != formatVersion || streams > events || events > s.size/eventHeaderSize {
		return nil, errIndexMismatch
	}
	b = make([]byte, indexHeaderSize+indexEntrySize*streams+4*events)
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil, err
	}
	if littleEndian.Uint32(b[12:]) != indexCRC(b) || uuid.UUID(b[16:32]) != logID || littleEndian.Uint64(b[32:]) != uint64(s.base) ||
		littleEndian.Uint64(b[40:]) != uint64(s.end) || littleEndian.Uint32(b[56:]) != s.lastCRC {
		return nil, errIndexMismatch
	}
	return b, nil
}
