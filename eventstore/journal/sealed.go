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
	indexMagic  = "LIEUDITX"
	indexHeader = 72
	indexEntry  = 40
)

// sealed is the index of one full segment: in memory until its file is written, in the file from then on.
type sealed struct {
	runs    []run
	once    sync.Once
	byKey   map[streamKey]int // of runs, made when first asked for
	file    File
	streams int
	list    int64 // where the offsets begin
}

// seal gives a full segment the index of its events.
func (s *segment) seal(runs []run) { s.index.Store(&sealed{runs: runs}) }

// find is the extent of a stream in segment s.
func (x *sealed) find(s *segment, key streamKey) (extent, error) {
	if x.file == nil {
		return x.findInMemory(s, key)
	}
	lo, hi := 0, x.streams
	var b [indexEntry]byte
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if _, err := x.file.ReadAt(b[:], indexHeader+int64(mid)*indexEntry); err != nil {
			return extent{}, fmt.Errorf("read index: %w", err)
		}
		switch c := bytes.Compare(b[:16], key[:]); {
		case c == 0:
			return x.extent(s, b[:]), nil
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return extent{}, damage(s.base, "stream missing in the index of the segment")
}

func (x *sealed) findInMemory(s *segment, key streamKey) (extent, error) {
	x.once.Do(func() {
		x.byKey = make(map[streamKey]int, len(x.runs))
		for i := range x.runs {
			x.byKey[x.runs[i].key] = i
		}
	})
	if i, ok := x.byKey[key]; ok {
		return x.runs[i].extent(s.base), nil
	}
	return extent{}, damage(s.base, "stream missing in the index of the segment")
}

func (x *sealed) extent(s *segment, entry []byte) extent {
	return extent{
		base: s.base, first: eventstore.Revision(le.Uint64(entry[16:])), prev: eventstore.Position(le.Uint64(entry[24:])),
		count: int(le.Uint32(entry[32:])), file: x.file, at: x.list + 4*int64(le.Uint32(entry[36:])),
	}
}

// encodeIndex is the index file of a full segment.
func encodeIndex(log uuid.UUID, s *segment, runs []run) []byte {
	events := 0
	for i := range runs {
		events += len(runs[i].offsets)
	}
	runs = slices.SortedFunc(slices.Values(runs), func(a, b run) int { return bytes.Compare(a.key[:], b.key[:]) })
	b := make([]byte, indexHeader, indexHeader+indexEntry*len(runs)+4*events)
	copy(b, indexMagic)
	le.PutUint32(b[8:], version)
	copy(b[16:], log[:])
	le.PutUint64(b[32:], uint64(s.base))
	le.PutUint64(b[40:], uint64(s.end))
	le.PutUint64(b[48:], uint64(s.final))
	le.PutUint32(b[56:], s.last)
	le.PutUint32(b[60:], uint32(len(runs)))
	le.PutUint32(b[64:], uint32(events))
	list := 0
	for _, r := range runs {
		b = append(b, r.key[:]...)
		b = le.AppendUint64(b, uint64(r.first))
		b = le.AppendUint64(b, uint64(r.prev))
		b = le.AppendUint32(b, uint32(len(r.offsets)))
		b = le.AppendUint32(b, uint32(list))
		list += len(r.offsets)
	}
	for _, r := range runs {
		for _, o := range r.offsets {
			b = le.AppendUint32(b, o)
		}
	}
	le.PutUint32(b[12:], indexCRC(b))
	return b
}

func indexCRC(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:12], castagnoli), castagnoli, b[16:])
}

// writeIndex puts the index of a full segment on disk and opens it.
func writeIndex(fs FS, s *segment, b []byte) (*sealed, error) {
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
		return nil, fmt.Errorf("write index: %w", errors.Join(err, f.Close(), discard(fs, tmp)))
	}
	return newSealed(f, b), nil
}

func newSealed(f File, b []byte) *sealed {
	streams := int(le.Uint32(b[60:]))
	return &sealed{file: f, streams: streams, list: indexHeader + indexEntry*int64(streams)}
}

var errIndex = errors.New("index does not match its segment")

// readIndex opens the index of segment s and returns its bytes, checked.
func readIndex(fs FS, s *segment, log uuid.UUID) (File, []byte, error) {
	f, err := fs.Open(indexName(s.base), false)
	if err != nil {
		return nil, nil, err
	}
	b, err := indexBytes(f, s, log)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, b, nil
}

func indexBytes(f File, s *segment, log uuid.UUID) ([]byte, error) {
	b := make([]byte, indexHeader)
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil, err
	}
	streams, events := int64(le.Uint32(b[60:])), int64(le.Uint32(b[64:]))
	if string(b[:8]) != indexMagic || le.Uint32(b[8:]) != version || streams > events || events > s.size/eventSize {
		return nil, errIndex
	}
	b = make([]byte, indexHeader+indexEntry*streams+4*events)
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil, err
	}
	if le.Uint32(b[12:]) != indexCRC(b) || uuid.UUID(b[16:32]) != log || le.Uint64(b[32:]) != uint64(s.base) ||
		le.Uint64(b[40:]) != uint64(s.end) || le.Uint32(b[56:]) != s.last {
		return nil, errIndex
	}
	return b, nil
}
