package journal

import (
	"crypto/sha256"
	"sync"

	"lieudit/eventstore"
)

// streamKey stands for a stream's name wherever one entry a stream is kept: the first half of its SHA-256, which
// no two names share.
type streamKey [16]byte

func keyOf(stream string) streamKey {
	sum := sha256.Sum256([]byte(stream))
	return streamKey(sum[:16])
}

// nowhere is the base of no segment.
const nowhere = ^eventstore.Position(0)

// index knows of every stream where it stands, and of the active segment where its events are. Sealed segments
// know that of their own events (sealed), and each entry there names the segment before that
// holds the stream; so a stream is found by going back from its head.
type index struct {
	mu     sync.RWMutex
	heads  map[streamKey]head
	active map[streamKey]*run
	base   eventstore.Position // of the active segment
}

// head is what is kept in memory for every stream.
type head struct {
	rev eventstore.Revision // the last one given out: the writer's alone, it may not be durable yet
	seg eventstore.Position // base of the last segment that holds durable events of the stream
}

// run is the events of one stream in one segment.
type run struct {
	first   eventstore.Revision
	prev    eventstore.Position // base of the segment that holds the events before first
	offsets []uint32
}

func newIndex() *index {
	return &index{heads: map[streamKey]head{}, active: map[streamKey]*run{}}
}

// revision is the last one given out to a stream.
func (x *index) revision(key streamKey) eventstore.Revision {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if h, ok := x.heads[key]; ok {
		return h.rev
	}
	return eventstore.NoStream
}

// advance gives out revisions up to rev.
func (x *index) advance(key streamKey, rev eventstore.Revision) {
	x.mu.Lock()
	defer x.mu.Unlock()
	h, ok := x.heads[key]
	if !ok {
		h.seg = nowhere
	}
	h.rev = rev
	x.heads[key] = h
}

// add makes durable events of the active segment known. They follow each other in their stream from first on.
func (x *index) add(key streamKey, first eventstore.Revision, offsets ...uint32) {
	r := x.active[key]
	if r == nil {
		h := x.heads[key]
		r = &run{first: first, prev: h.seg}
		x.active[key] = r
		h.seg = x.base
		x.heads[key] = h
	}
	r.offsets = append(r.offsets, offsets...)
}

// publish makes the appends of a group known to readers, in one step with show.
func (x *index) publish(group []placed, show func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range group {
		x.add(p.key, p.first, p.offsets...)
	}
	show()
}

// roll hands over what is known of the active segment and begins with the next.
func (x *index) roll(base eventstore.Position) map[streamKey]*run {
	x.mu.Lock()
	defer x.mu.Unlock()
	full := x.active
	x.active, x.base = map[streamKey]*run{}, base
	return full
}

// last is where the newest durable events of a stream are. When they are not in the active segment, only the
// extent's base is set. look sees the log as it is at that moment.
func (x *index) last(key streamKey, look func()) (e extent, active bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	look()
	if r := x.active[key]; r != nil {
		return r.extent(x.base), true
	}
	if h, ok := x.heads[key]; ok {
		return extent{base: h.seg}, false
	}
	return extent{base: nowhere}, false
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
