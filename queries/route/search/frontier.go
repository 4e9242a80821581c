package search

import (
	"math/bits"

	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
)

// frontier is what one search knows: the labels of the edges that it has seen, and which of them come next. It is a hash table,
// so that it is emptied at no cost and takes the memory of the search alone.
type frontier struct {
	keys    []uint64 // generation << 32 | edge
	slots   []node
	used    int
	stamp   uint64
	shift   uint
	queue   overlay.Queue
	settled int
}

// node is what is known of an edge.
type node struct {
	label     overlay.Label
	parent    uint32 // edge before it on the path, graph.None at the ends
	level     uint8  // of the cell that the path crosses from there; 0: the edges follow each other; lastHop: and the path ends there
	isSettled bool
}

// lastHop marks the labels from which the path ends on the next edge.
const lastHop = 255

const smallestTable = 1 << 10

// reset forgets everything.
func (f *frontier) reset() {
	if f.keys == nil {
		f.allocate(smallestTable)
	}
	f.stamp += 1 << 32
	f.used, f.settled = 0, 0
	f.queue.Reset()
}

func (f *frontier) allocate(size int) {
	f.keys, f.slots = make([]uint64, size), make([]node, size)
	f.shift = uint(64 - bits.TrailingZeros(uint(size)))
}

// find returns the slot of an edge, or the free slot for it.
func (f *frontier) find(edge uint32) (slot int, ok bool) {
	key := f.stamp | uint64(edge)
	mask := len(f.keys) - 1
	for slot = int(uint64(edge) * 0x9E3779B97F4A7C15 >> f.shift); ; slot = (slot + 1) & mask {
		switch k := f.keys[slot]; {
		case k == key:
			return slot, true
		case k>>32 != f.stamp>>32:
			return slot, false
		}
	}
}

// get returns what is known of an edge.
func (f *frontier) get(edge uint32) (*node, bool) {
	slot, ok := f.find(edge)
	if !ok {
		return nil, false
	}
	return &f.slots[slot], true
}

// improve keeps a label of an edge if it is better than the known one.
func (f *frontier) improve(edge uint32, label overlay.Label, parent uint32, level uint8) bool {
	slot, ok := f.find(edge)
	if ok && !label.IsLess(f.slots[slot].label) {
		return false
	}
	if !ok {
		if 4*f.used >= 3*len(f.keys) {
			f.grow()
			slot, _ = f.find(edge)
		}
		f.keys[slot] = f.stamp | uint64(edge)
		f.used++
	}
	f.slots[slot] = node{label: label, parent: parent, level: level}
	f.queue.Push(edge, label)
	return true
}

// grow makes the table twice as large.
func (f *frontier) grow() {
	keys, slots := f.keys, f.slots
	f.allocate(2 * len(keys))
	for i, key := range keys {
		if key>>32 == f.stamp>>32 {
			slot, _ := f.find(uint32(key))
			f.keys[slot], f.slots[slot] = key, slots[i]
		}
	}
}

// settle takes the best edge that is not settled yet.
func (f *frontier) settle() (edge uint32, label overlay.Label, ok bool) {
	for {
		edge, label, ok = f.queue.Pop()
		if !ok {
			return graph.None, label, false
		}
		n, _ := f.get(edge)
		if !n.isSettled && n.label == label {
			n.isSettled = true
			f.settled++
			return edge, label, true
		}
	}
}
