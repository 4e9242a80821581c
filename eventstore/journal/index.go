package journal

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/maphash"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// noSegment is a base that no segment has.
const noSegment = ^eventstore.Position(0)

// streamIndex holds the head of every stream and, for the active segment, the offsets of each stream's events. A full segment
// has an index of its own (segmentIndex), whose entry for a stream names the previous segment with events of it. So all
// events of a stream are found by walking back from its head.
//
// Nothing that grows with the number of streams holds pointers, so the garbage collector does not scan millions of entries.
//
// Only one goroutine changes an index: recovery, then the writer. It reads without the lock, and locks mu to change what
// readers use.
type streamIndex struct {
	mu         sync.RWMutex
	slots      map[streamKey]slot
	heads      [][]streamHead
	activeRuns []streamRun
	activeBase eventstore.Position // of the active segment
}

// slot is the index of a stream's head in heads. It never changes.
type slot uint32

// headsPerChunk is how many heads are allocated at once.
const headsPerChunk = 4096

// streamHead is what is kept in memory for every stream.
type streamHead struct {
	// The latest revision assigned, perhaps not durable yet. Only the writer reads and writes it.
	revision eventstore.Revision
	// The base of the last segment that holds durable events of the stream and, if that is the active one, the index of the
	// stream's run in activeRuns.
	segmentBase eventstore.Position
	runIndex    uint32
}

// streamRun lists the events of one stream in one segment.
type streamRun struct {
	key           streamKey
	firstRevision eventstore.Revision
	prevSegment   eventstore.Position // base of the segment that holds the events before
	offsets       []uint32            // of the events, from the segment's beginning
}

// newStreamIndex makes an index without streams. Set activeBase before adding events.
func newStreamIndex() *streamIndex { return &streamIndex{slots: map[streamKey]slot{}} }

// head is the head of a stream. Heads are kept in chunks, so that growing never copies them.
func (x *streamIndex) head(s slot) *streamHead { return &x.heads[s/headsPerChunk][s%headsPerChunk] }

// currentRevision is the latest revision assigned in a stream. Only the writer calls it.
func (x *streamIndex) currentRevision(s slot, known bool) eventstore.Revision {
	if !known {
		return eventstore.NoStream
	}
	return x.head(s).revision
}

// slotFor returns the slot of a stream and assigns one if necessary. Only the writer and recovery call it.
func (x *streamIndex) slotFor(key streamKey) slot {
	if s, ok := x.slots[key]; ok {
		return s
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	s := slot(len(x.slots))
	if s%headsPerChunk == 0 {
		x.heads = append(x.heads, make([]streamHead, headsPerChunk))
	}
	*x.head(s) = streamHead{revision: eventstore.NoStream, segmentBase: noSegment}
	x.slots[key] = s
	return s
}

// addEvents adds durable events of the active segment. They have consecutive revisions from first on.
func (x *streamIndex) addEvents(key streamKey, s slot, first eventstore.Revision, offsets []uint32) {
	h := x.head(s)
	if h.segmentBase != x.activeBase {
		x.activeRuns = append(x.activeRuns, streamRun{key: key, firstRevision: first, prevSegment: h.segmentBase})
		h.segmentBase, h.runIndex = x.activeBase, uint32(len(x.activeRuns)-1)
	}
	r := &x.activeRuns[h.runIndex]
	r.offsets = append(r.offsets, offsets...)
}

// addGroup adds the appends of a group and calls publish, which shows them to readers, in one step.
func (x *streamIndex) addGroup(g *group, publish func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range g.appends {
		x.addEvents(p.key, p.slot, p.firstRevision, g.offsets[p.offsetsFrom:p.offsetsTo])
	}
	publish()
}

var (
	errIndexMismatch = errors.New("index does not match its segment")
	errRevisionOrder = errors.New("revisions of a stream do not follow each other")
)

// addAppend adds a replayed append. The index must hold all appends before it.
func (x *streamIndex) addAppend(a replayedAppend) error {
	s := x.slotFor(a.key)
	if x.head(s).revision+1 != a.firstRevision {
		return errRevisionOrder
	}
	x.head(s).revision += eventstore.Revision(len(a.offsets))
	x.addEvents(a.key, s, a.firstRevision, a.offsets)
	return nil
}

// loadSegmentIndex adds the streams of a full segment from its index file b. The index must hold all segments before it.
func (x *streamIndex) loadSegmentIndex(base eventstore.Position, b []byte) error {
	streams := int(littleEndian.Uint32(b[60:]))
	for e := b[indexHeaderSize:][:streams*indexEntrySize]; len(e) > 0; e = e[indexEntrySize:] {
		h := x.head(x.slotFor(streamKey(e[:16])))
		if h.revision+1 != eventstore.Revision(littleEndian.Uint64(e[16:])) || h.segmentBase != eventstore.Position(littleEndian.Uint64(e[24:])) {
			return errIndexMismatch
		}
		h.revision += eventstore.Revision(littleEndian.Uint32(e[32:]))
		h.segmentBase = base
	}
	return nil
}

// rollSegment passes the runs of the active segment to seal, which stores them as that segment's own index, and starts the
// next segment, in one step: a reader always finds a stream in one of the two indexes.
func (x *streamIndex) rollSegment(base eventstore.Position, seal func([]streamRun)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	seal(x.activeRuns)
	x.activeRuns, x.activeBase = nil, base
}

// lastExtent returns where the newest durable events of a stream are. If they are not in the active segment, it sets only the
// base. It calls capture with the index locked, so that capture sees the view that belongs to the extent.
func (x *streamIndex) lastExtent(key streamKey, capture func()) (e extent, active bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	capture()
	s, ok := x.slots[key]
	if !ok {
		return extent{base: noSegment}, false
	}
	h := x.head(s)
	if h.segmentBase != x.activeBase {
		return extent{base: h.segmentBase}, false
	}
	return x.activeRuns[h.runIndex].extent(x.activeBase), true
}

func (r *streamRun) extent(base eventstore.Position) extent {
	return extent{base: base, firstRevision: r.firstRevision, prevSegment: r.prevSegment, count: len(r.offsets), memoryOffsets: r.offsets}
}

// extent is where the events of one stream are in one segment. Their offsets are in memory or in the segment's index file.
// base is noSegment if the stream has no (more) events; prevSegment is noSegment if no earlier segment holds any.
type extent struct {
	base, prevSegment eventstore.Position
	firstRevision     eventstore.Revision
	count             int
	memoryOffsets     []uint32
	file              File // nil when the offsets are in memory
	fileOffset        int64
}

// readOffsets returns the offsets of the extent's events lo to hi, exclusive.
func (e extent) readOffsets(lo, hi int) ([]uint32, error) {
	if e.file == nil {
		return e.memoryOffsets[lo:hi], nil
	}
	b := make([]byte, 4*(hi-lo))
	if _, err := e.file.ReadAt(b, e.fileOffset+4*int64(lo)); err != nil {
		return nil, err
	}
	out := make([]uint32, hi-lo)
	for i := range out {
		out[i] = littleEndian.Uint32(b[4*i:])
	}
	return out, nil
}

// streamKey stands for a stream's name where there is one entry per stream: the first half of its SHA-256. A collision is not
// expected.
type streamKey [16]byte

// newStreamKey computes the key of a name.
func newStreamKey(stream string) streamKey {
	sum := sha256.Sum256([]byte(stream))
	return streamKey(sum[:16])
}

// streamKeyCache keeps the keys of streams that are written often, to save their SHA-256. It is safe for concurrent use; a
// stream that hashes to an occupied entry replaces it.
type streamKeyCache struct {
	seed    maphash.Seed
	entries [4096]atomic.Pointer[cachedStreamKey]
}

type cachedStreamKey struct {
	stream string
	key    streamKey
}

// keyFor is newStreamKey, from the cache if it is there.
func (k *streamKeyCache) keyFor(stream string) streamKey {
	p := &k.entries[maphash.String(k.seed, stream)%uint64(len(k.entries))]
	if e := p.Load(); e != nil && e.stream == stream {
		return e.key
	}
	e := &cachedStreamKey{stream, newStreamKey(stream)}
	p.Store(e)
	return e.key
}

// The format of the index of a full segment, a file next to it. It is rebuilt from the segment if it is missing or damaged.
// Header of 72 bytes:
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
	// In memory:
	runs  []streamRun
	once  sync.Once
	byKey map[streamKey]int // indexes into runs, made at the first lookup

	// In the file, nil until it is written:
	file         File
	streams      int
	offsetsStart int64 // where the offsets begin in it
}

// seal stores the runs of a full segment as its index.
func (s *segment) seal(runs []streamRun) { s.index.Store(&segmentIndex{runs: runs}) }

// findExtent returns the extent of a stream in segment s. It is a *CorruptError if the index does not hold the stream, since
// another entry names this segment.
func (x *segmentIndex) findExtent(s *segment, key streamKey) (extent, error) {
	if x.file == nil {
		return x.findExtentInMemory(s, key)
	}
	var entry [indexEntrySize]byte
	var readErr error
	_, found := sort.Find(x.streams, func(i int) int {
		if readErr == nil {
			_, readErr = x.file.ReadAt(entry[:], indexHeaderSize+int64(i)*indexEntrySize)
		}
		return bytes.Compare(key[:], entry[:16])
	})
	switch {
	case readErr != nil:
		return extent{}, fmt.Errorf("read index: %w", readErr)
	case !found:
		return extent{}, newCorruptError(s.base, "stream missing in the index of the segment")
	}
	return x.decodeExtent(s, entry[:]), nil
}

// findExtentInMemory is findExtent before the file is written. The first call makes the map.
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

// decodeExtent reads an entry of the index file.
func (x *segmentIndex) decodeExtent(s *segment, entry []byte) extent {
	return extent{
		base: s.base, firstRevision: eventstore.Revision(littleEndian.Uint64(entry[16:])), prevSegment: eventstore.Position(littleEndian.Uint64(entry[24:])),
		count: int(littleEndian.Uint32(entry[32:])), file: x.file, fileOffset: x.offsetsStart + 4*int64(littleEndian.Uint32(entry[36:])),
	}
}

// encodeSegmentIndex makes the index file of a full segment.
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

// writeSegmentIndex writes b, the index of a full segment, to its file and opens it.
func writeSegmentIndex(fs FS, s *segment, b []byte) (*segmentIndex, error) {
	name := indexName(s.base)
	f, err := createFileAtomically(fs, name+".tmp", name, func(f File) error {
		if _, err := f.WriteAt(b, 0); err != nil {
			return err
		}
		return f.Sync()
	})
	if err != nil {
		return nil, fmt.Errorf("write index: %w", err)
	}
	return newSegmentIndex(f, b), nil
}

// newSegmentIndex reads the index from file f, whose bytes are b.
func newSegmentIndex(f File, b []byte) *segmentIndex {
	streams := int(littleEndian.Uint32(b[60:]))
	return &segmentIndex{file: f, streams: streams, offsetsStart: indexHeaderSize + indexEntrySize*int64(streams)}
}

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

// readIndexBytes reads an index file and checks that it is whole and belongs to segment s; otherwise it fails with
// errIndexMismatch.
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
