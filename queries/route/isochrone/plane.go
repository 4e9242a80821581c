package isochrone

import "slices"

// plane is a bit for each node of a grid. Rows are whole words; the borders are never set, so that nothing flows from one row
// into the next.
type plane struct {
	words  []uint64
	perRow int // words
}

// clear makes an empty plane, in the memory that it has.
func (p *plane) clear(columns, rows int) {
	p.perRow = columns / 64
	p.words = slices.Grow(p.words[:0], p.perRow*rows)[:p.perRow*rows]
	clear(p.words)
}

func (p *plane) set(node int)      { p.words[node>>6] |= 1 << (node & 63) }
func (p *plane) unset(node int)    { p.words[node>>6] &^= 1 << (node & 63) }
func (p *plane) has(node int) bool { return p.words[node>>6]>>(node&63)&1 == 1 }

// include sets the bits of another plane too.
func (p *plane) include(other *plane) {
	for i, w := range other.words {
		p.words[i] |= w
	}
}

// growToCorners turns squares, each under its south-western node, into their corners.
func (p *plane) growToCorners() {
	carry := uint64(0)
	for i, w := range p.words {
		p.words[i] = w | w<<1 | carry
		carry = w >> 63
	}
	for i := len(p.words) - 1; i >= p.perRow; i-- {
		p.words[i] |= p.words[i-p.perRow]
	}
}

// closeGaps sets the nodes of gaps at most twice as wide as reach, but for those of roads: it grows by reach nodes in all
// directions, and shrinks by as many. This is done in the plane grown.
func (p *plane) closeGaps(reach int, roads, grown *plane) {
	copy(grown.words, p.words)
	for range reach {
		grown.grow()
	}
	grown.invert()
	for range reach {
		grown.grow()
	}
	grown.invert()
	for i, w := range grown.words {
		p.words[i] |= w &^ roads.words[i]
	}
}

func (p *plane) invert() {
	for i, w := range p.words {
		p.words[i] = ^w
	}
}

// grow sets the eight neighbours of each node that is set.
func (p *plane) grow() {
	carry, last := uint64(0), len(p.words)-1
	for i, w := range p.words {
		next := uint64(0)
		if i < last {
			next = p.words[i+1] << 63
		}
		p.words[i] = w | w<<1 | carry | w>>1 | next
		carry = w >> 63
	}
	before := slices.Clone(p.words[:p.perRow])
	for i := 0; i+p.perRow < len(p.words); i += p.perRow {
		row, above := p.words[i:i+p.perRow], p.words[i+p.perRow:]
		for j, w := range row {
			row[j] = w | before[j] | above[j]
			before[j] = w
		}
	}
}
