package partition

import "math"

// Sides of a node in a flow.
const (
	between uint8 = iota
	source
	sink
)

// flow computes a maximum flow from the sources of a piece to its sinks, by Dinic's algorithm. Its memory is reused from piece to
// piece. choose sets the sources and sinks, maximize sends the flow, and cut says where the smallest cut is.
type flow struct {
	p     *piece
	side  []uint8
	rim   [3][]int32 // for source and sink, the nodes that have a neighbour on another side
	left  []int32    // the remaining capacity of each arc
	level []int32    // the distance of each node from the sinks in the residual network, plus base; below base: not reached
	base  int32
	top   int32   // highest level given
	next  []int32 // for each node that was reached, the arc to try next
	queue []int32
	path  []int32 // arcs from a source to the node that is being tried
	keys  []int64
	value int
}

// reset prepares the memory for a piece.
func (f *flow) reset(p *piece) {
	f.p, f.value, f.base, f.top = p, 0, 1, 0
	f.side = resize(f.side, len(p.id))
	f.level = resize(f.level, len(p.id))
	f.next = resize(f.next, len(p.id))
	f.keys = resize(f.keys, len(p.id))
	f.left = resize(f.left, len(p.head))
	clear(f.side)
	clear(f.level)
	copy(f.left, p.cap)
}

// resize returns a slice of n elements, in the same memory if they fit. Their values are undefined.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// findRims fills rim.
func (f *flow) findRims() {
	f.rim[source], f.rim[sink] = f.rim[source][:0], f.rim[sink][:0]
	for v, s := range f.side {
		if s == between {
			continue
		}
		for _, u := range f.p.head[f.p.first[v]:f.p.first[v+1]] {
			if f.side[u] != s {
				f.rim[s] = append(f.rim[s], int32(v))
				break
			}
		}
	}
}

// maximize sends flow until no more can be sent, or until isEnough rejects a cut of this value. It reports whether the flow is a
// maximum; if so, reaches holds the nodes that can reach a sink.
func (f *flow) maximize(isEnough func(value int) bool) bool {
	f.findRims()
	for !isEnough(f.value) {
		if !f.giveLevels(sink) {
			return true
		}
		f.augment()
	}
	return false
}

// giveLevels gives levels to the nodes from which a sink can be reached in the residual network, the nearest first, until sources
// have one; it reports whether any source has one. When it starts at the sources, it works the other way round.
func (f *flow) giveLevels(start uint8) bool {
	p := f.p
	f.base = f.top + 1
	f.queue = append(f.queue[:0], f.rim[start]...)
	for _, v := range f.queue {
		f.level[v] = f.base
	}
	last := int32(math.MaxInt32)
	for at := 0; at < len(f.queue) && f.level[f.queue[at]] < last; at++ {
		v := f.queue[at]
		f.top = f.level[v] + 1
		for a := p.first[v]; a < p.first[v+1]; a++ {
			u := p.head[a]
			if f.level[u] >= f.base || f.side[u] == start || !f.isOpen(a, start) {
				continue
			}
			f.level[u] = f.top
			if f.side[u] != between {
				last = f.top
				continue
			}
			f.next[u] = p.first[u]
			f.queue = append(f.queue, u)
		}
	}
	return last < math.MaxInt32
}

// isOpen reports whether flow can still be sent along an arc, or against it when levels start at the sinks.
func (f *flow) isOpen(a int32, start uint8) bool {
	if start == sink {
		a = f.p.back[a]
	}
	return f.left[a] > 0
}

// augment sends flow along the levels until each way to the sinks has a full arc.
func (f *flow) augment() {
	for _, s := range f.rim[source] {
		if f.level[s] < f.base {
			continue
		}
		f.next[s] = f.p.first[s]
		f.path = f.path[:0]
		for v := s; v >= 0; {
			v = f.step(v)
		}
	}
}

// step continues from the end of the path: to the next node, back if there is no next node, or to the first full arc once a sink is
// reached. It returns the new end, or -1 if the source has no way left.
func (f *flow) step(v int32) int32 {
	if f.side[v] == sink {
		return f.send()
	}
	for end := f.p.first[v+1]; f.next[v] < end; f.next[v]++ {
		a := f.next[v]
		if u := f.p.head[a]; f.left[a] > 0 && f.level[u] == f.level[v]-1 {
			f.path = append(f.path, a)
			return u
		}
	}
	if len(f.path) == 0 {
		return -1
	}
	v = f.tail(f.path[len(f.path)-1])
	f.path = f.path[:len(f.path)-1]
	f.next[v]++
	return v
}

// send sends as much along the path as it can carry. It returns the node before the first arc that is now full.
func (f *flow) send() int32 {
	amount := int32(math.MaxInt32)
	for _, a := range f.path {
		amount = min(amount, f.left[a])
	}
	full := -1
	for i, a := range f.path {
		f.left[a] -= amount
		f.left[f.p.back[a]] += amount
		if full < 0 && f.left[a] == 0 {
			full = i
		}
	}
	f.value += int(amount)
	v := f.tail(f.path[full])
	f.path = f.path[:full]
	return v
}

func (f *flow) tail(a int32) int32 { return f.p.head[f.p.back[a]] }

// halves returns the two sides of the smallest cut: true for the nodes on the side of the sources. It chooses between the cut
// nearest to the sources and the one nearest to the sinks, by the more even sides; small is the size of its smaller side.
func (f *flow) halves() (side []bool, small int) {
	side = make([]bool, len(f.side))
	atSink := 0
	for v, s := range f.side {
		isReached := s == sink || s == between && f.level[v] >= f.base
		side[v] = !isReached
		if isReached {
			atSink += int(f.p.size[v])
		}
	}
	f.giveLevels(source)
	atSource := 0
	for v, s := range f.side {
		if s == source || s == between && f.level[v] >= f.base {
			atSource += int(f.p.size[v])
		}
	}
	atSink, atSource = min(atSink, f.p.total-atSink), min(atSource, f.p.total-atSource)
	if atSink >= atSource {
		return side, atSink
	}
	for v, s := range f.side {
		side[v] = s == source || s == between && f.level[v] >= f.base
	}
	return side, atSource
}
