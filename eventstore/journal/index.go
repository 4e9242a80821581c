package journal

import (
	"sync"

	"lieudit/eventstore"
)

// noSegment is the base of no segment.
const noSegment = ^eventstore.Position(0)

// streamIndex knows of every stream where it stands, and of the active segment where its events are. Full segments
// know that of their own events (sealed), and each entry there names the segment before that
// holds the stream; so a stream is found by going back from its head.
//
// Nothing in it that grows with the streams holds a pointer, so the collector does not walk millions of them.
type streamIndex struct {
	mu         sync.RWMutex
	slots      map[streamKey]slot
	heads      [][]streamHead
	activeRuns []streamRun
	activeBase eventstore.Position // of the active segment
}

// slot is the place of a stream among the heads. It never changes.
type slot uint32

const headsPerChunk = 4096

// streamHead is what is kept in memory for every stream.
type streamHead struct {
	// The revision given out last, maybe not durable yet: read and written by the writer alone.
	revision eventstore.Revision
	// The base of the last segment that holds durable events of the stream and, if that is the active one, which of
	// its runs they are.
	segmentBase eventstore.Position
	runIndex    uint32
}

// streamRun is the events of one stream in one segment.
type streamRun struct {
	key           streamKey
	firstRevision eventstore.Revision
	prevSegment   eventstore.Position // base of the segment that holds the events before first
	offsets       []uint32
}

func newStreamIndex() *streamIndex { return &streamIndex{slots: map[streamKey]slot{}} }

func (x *streamIndex) head(s slot) *streamHead { return &x.heads[s/headsPerChunk][s%headsPerChunk] }

// currentRevision is the revision given out last to a stream, for the writer.
func (x *streamIndex) currentRevision(s slot, known bool) eventstore.Revision {
	if !known {
		return eventstore.NoStream
	}
	return x.head(s).revision
}

// slotFor finds a stream for the writer, who alone adds any, or gives it a place.
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

// addEvents makes durable events of the active segment known. They follow each other in their stream from first on.
func (x *streamIndex) addEvents(key streamKey, s slot, first eventstore.Revision, offsets []uint32) {
	h := x.head(s)
	if h.segmentBase != x.activeBase {
		x.activeRuns = append(x.activeRuns, streamRun{key: key, firstRevision: first, prevSegment: h.segmentBase})
		h.segmentBase, h.runIndex = x.activeBase, uint32(len(x.activeRuns)-1)
	}
	r := &x.activeRuns[h.runIndex]
	r.offsets = append(r.offsets, offsets...)
}

// addGroup makes the appends of a group known to readers, in one step with show.
func (x *streamIndex) addGroup(g *group, publish func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range g.appends {
		x.addEvents(p.key, p.slot, p.firstRevision, g.offsets[p.offsetsFrom:p.offsetsTo])
	}
	publish()
}

// rollSegment hands what is known of the active segment to seal and begins with the next, in one step: who looks afterwards
// looks into the sealed one.
func (x *streamIndex) rollSegment(base eventstore.Position, seal func([]streamRun)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	seal(x.activeRuns)
	x.activeRuns, x.activeBase = nil, base
}

// lastExtent is where the newest durable events of a stream are. When they are not in the active segment, only the
// extent's base is set. look sees the log as it is at that moment.
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

// extent is where the events of one stream are in one segment.
type extent struct {
	base, prevSegment eventstore.Position
	firstRevision     eventstore.Revision
	count             int
	memoryOffsets     []uint32 // their offsets, or
	file              File     // where those are
	fileOffset        int64
}

// readOffsets are those of the events lo to hi, exclusive, counted from first.
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
