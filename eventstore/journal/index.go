package journal

import (
	"sync"

	"lieudit/eventstore"
)

// nowhere is the base of no segment.
const nowhere = ^eventstore.Position(0)

// index knows of every stream where it stands, and of the active segment where its events are. Full segments
// know that of their own events (sealed), and each entry there names the segment before that
// holds the stream; so a stream is found by going back from its head.
//
// Nothing in it that grows with the streams holds a pointer, so the collector does not walk millions of them.
type index struct {
	mu     sync.RWMutex
	slots  map[streamKey]slot
	heads  [][]head
	active []run
	base   eventstore.Position // of the active segment
}

// slot is the place of a stream among the heads. It never changes.
type slot uint32

const headChunk = 4096

// head is what is kept in memory for every stream.
type head struct {
	// The revision given out last, maybe not durable yet: read and written by the writer alone.
	rev eventstore.Revision
	// The base of the last segment that holds durable events of the stream and, if that is the active one, which of
	// its runs they are.
	seg eventstore.Position
	run uint32
}

// run is the events of one stream in one segment.
type run struct {
	key     streamKey
	first   eventstore.Revision
	prev    eventstore.Position // base of the segment that holds the events before first
	offsets []uint32
}

func newIndex() *index { return &index{slots: map[streamKey]slot{}} }

func (x *index) head(s slot) *head { return &x.heads[s/headChunk][s%headChunk] }

// current is the revision given out last to a stream, for the writer.
func (x *index) current(s slot, known bool) eventstore.Revision {
	if !known {
		return eventstore.NoStream
	}
	return x.head(s).rev
}

// slot finds a stream for the writer, who alone adds any, or gives it a place.
func (x *index) slot(key streamKey) slot {
	if s, ok := x.slots[key]; ok {
		return s
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	s := slot(len(x.slots))
	if s%headChunk == 0 {
		x.heads = append(x.heads, make([]head, headChunk))
	}
	*x.head(s) = head{rev: eventstore.NoStream, seg: nowhere}
	x.slots[key] = s
	return s
}

// add makes durable events of the active segment known. They follow each other in their stream from first on.
func (x *index) add(key streamKey, s slot, first eventstore.Revision, offsets []uint32) {
	h := x.head(s)
	if h.seg != x.base {
		x.active = append(x.active, run{key: key, first: first, prev: h.seg})
		h.seg, h.run = x.base, uint32(len(x.active)-1)
	}
	r := &x.active[h.run]
	r.offsets = append(r.offsets, offsets...)
}

// publish makes the appends of a group known to readers, in one step with show.
func (x *index) publish(g *group, show func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range g.placed {
		x.add(p.key, p.slot, p.first, g.offsets[p.from:p.to])
	}
	show()
}

// roll hands what is known of the active segment to seal and begins with the next, in one step: who looks afterwards
// looks into the sealed one.
func (x *index) roll(base eventstore.Position, seal func([]run)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	seal(x.active)
	x.active, x.base = nil, base
}

// last is where the newest durable events of a stream are. When they are not in the active segment, only the
// extent's base is set. look sees the log as it is at that moment.
func (x *index) last(key streamKey, look func()) (e extent, active bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	look()
	s, ok := x.slots[key]
	if !ok {
		return extent{base: nowhere}, false
	}
	h := x.head(s)
	if h.seg != x.base {
		return extent{base: h.seg}, false
	}
	return x.active[h.run].extent(x.base), true
}

func (r *run) extent(base eventstore.Position) extent {
	return extent{base: base, first: r.first, prev: r.prev, count: len(r.offsets), memory: r.offsets}
}

// extent is where the events of one stream are in one segment.
type extent struct {
	base, prev eventstore.Position
	first      eventstore.Revision
	count      int
	memory     []uint32 // their offsets, or
	file       File     // where those are
	at         int64
}

// offsets are those of the events lo to hi, exclusive, counted from first.
func (e extent) offsets(lo, hi int) ([]uint32, error) {
	if e.file == nil {
		return e.memory[lo:hi], nil
	}
	b := make([]byte, 4*(hi-lo))
	if _, err := e.file.ReadAt(b, e.at+4*int64(lo)); err != nil {
		return nil, err
	}
	out := make([]uint32, hi-lo)
	for i := range out {
		out[i] = le.Uint32(b[4*i:])
	}
	return out, nil
}
