package partition

import (
	"cmp"
	"math"
	"slices"
)

// piece is a part of the network with its own adjacency arrays, so that work on a small piece stays within a small part of memory.
// A node stands for one or more junctions. An edge is two arcs, one at each end.
type piece struct {
	id    []int32 // the number of each node in the divider's members
	x, y  []int32 // position, in units that are equally long in both directions
	size  []int32 // junctions that the node stands for
	first []int32 // the arcs of node v are numbered from first[v] up to first[v+1]
	head  []int32 // by arc; those of a node ascend
	cap   []int32 // the number of edges that each arc stands for
	back  []int32 // the opposite of each arc
	total int     // sum of size
}

// members holds for each node of the contracted network the junctions that it stands for.
type members struct {
	first     []int32
	junctions []uint32
}

func (m members) of(node int32) []uint32 { return m.junctions[m.first[node]:m.first[node+1]] }

// newPiece makes a piece of the whole network. Its nodes are sorted along a curve that fills the plane, so that neighbours lie
// near one another in memory.
func newPiece(in Input) *piece {
	n := len(in.Lon)
	p := &piece{id: make([]int32, n), x: make([]int32, n), y: make([]int32, n), size: make([]int32, n), total: n}
	order, place := curveOrder(in), make([]int32, n)
	scale := math.Cos(middleLat(in.Lat) * math.Pi / 180)
	for v, j := range order {
		place[j] = int32(v)
		p.id[v], p.size[v] = int32(j), 1
		p.x[v], p.y[v] = int32(float64(in.Lon[j])*scale), in.Lat[j]
	}
	p.fill(func(add func(tail, head, cap int32)) {
		for _, e := range in.Edges {
			if a, b := place[e[0]], place[e[1]]; a != b {
				add(a, b, 1)
				add(b, a, 1)
			}
		}
	})
	return p
}

// middleLat is the latitude in the middle of all, in degrees.
func middleLat(lat []int32) float64 {
	return (float64(slices.Min(lat)) + float64(slices.Max(lat))) / 2e7
}

// curveOrder sorts junctions along the Z-order curve, equal ones by number.
func curveOrder(in Input) []uint32 {
	type key struct {
		curve    uint64
		junction uint32
	}
	keys := make([]key, len(in.Lon))
	for j := range keys {
		keys[j] = key{spread(in.Lon[j]) | spread(in.Lat[j])<<1, uint32(j)}
	}
	slices.SortFunc(keys, func(a, b key) int { return cmp.Or(cmp.Compare(a.curve, b.curve), cmp.Compare(a.junction, b.junction)) })
	order := make([]uint32, len(keys))
	for i, k := range keys {
		order[i] = k.junction
	}
	return order
}

// spread puts a zero bit before each bit of a coordinate.
func spread(coordinate int32) uint64 {
	x := uint64(uint32(coordinate) ^ 1<<31)
	x = (x | x<<16) & 0x0000ffff0000ffff
	x = (x | x<<8) & 0x00ff00ff00ff00ff
	x = (x | x<<4) & 0x0f0f0f0f0f0f0f0f
	x = (x | x<<2) & 0x3333333333333333
	return (x | x<<1) & 0x5555555555555555
}

// fill fills the arcs of a piece. each adds all of them, in both directions, in any order; it is called twice. Arcs between the
// same nodes become one.
func (p *piece) fill(each func(add func(tail, head, cap int32))) {
	n := len(p.id)
	begin := make([]int32, n+1)
	each(func(tail, _, _ int32) { begin[tail+1]++ })
	for v := range n {
		begin[v+1] += begin[v]
	}
	arcs, next := make([]uint64, begin[n]), slices.Clone(begin) // head and cap, grouped by tail
	each(func(tail, head, cap int32) {
		arcs[next[tail]] = uint64(head)<<32 | uint64(cap)
		next[tail]++
	})
	p.first = make([]int32, n+1)
	p.head, p.cap = make([]int32, 0, len(arcs)), make([]int32, 0, len(arcs))
	for v := range n {
		own := arcs[begin[v]:begin[v+1]]
		slices.Sort(own)
		for i, a := range own {
			if i > 0 && own[i-1]>>32 == a>>32 {
				p.cap[len(p.cap)-1] += int32(a)
				continue
			}
			p.head, p.cap = append(p.head, int32(a>>32)), append(p.cap, int32(a))
		}
		p.first[v+1] = int32(len(p.head))
	}
	p.pair()
}

// pair fills back: since the arcs of a node ascend, those that lead to a node come in the order of its own arcs.
func (p *piece) pair() {
	p.back = make([]int32, len(p.head))
	next := slices.Clone(p.first)
	for a, v := range p.head {
		p.back[a] = next[v]
		next[v]++
	}
}

// contract makes a piece in which the nodes of a group are one node; group has the number of each node's group. The nodes of the
// result are numbered as the groups are, and so are its members.
func (p *piece) contract(group []int32, groups int, m members) (*piece, members) {
	c := &piece{
		id: make([]int32, groups), x: make([]int32, groups), y: make([]int32, groups), size: make([]int32, groups), total: p.total,
	}
	for v, g := range group {
		if c.size[g] == 0 {
			c.id[g], c.x[g], c.y[g] = g, p.x[v], p.y[v]
		}
		c.size[g] += p.size[v]
	}
	c.fill(func(add func(tail, head, cap int32)) {
		for v, g := range group {
			for a := p.first[v]; a < p.first[v+1]; a++ {
				if h := group[p.head[a]]; h != g {
					add(g, h, p.cap[a])
				}
			}
		}
	})
	return c, m.merge(p.id, group, c.size)
}

// merge returns the members of groups of nodes. id has the number of each node in m, size the number of members of each group.
func (m members) merge(id, group, size []int32) members {
	r := members{first: make([]int32, len(size)+1), junctions: make([]uint32, len(m.junctions))}
	for g, s := range size {
		r.first[g+1] = r.first[g] + s
	}
	next := slices.Clone(r.first)
	for v, g := range group {
		next[g] += int32(copy(r.junctions[next[g]:], m.of(id[v])))
	}
	return r
}

// singles are the members of the nodes of a network that is not contracted: node j stands for junction j.
func singles(junctions int) members {
	m := members{first: make([]int32, junctions+1), junctions: make([]uint32, junctions)}
	for j := range junctions {
		m.first[j+1], m.junctions[j] = int32(j+1), uint32(j)
	}
	return m
}

// emptyPiece makes the columns of a piece.
func emptyPiece(nodes, arcs int) *piece {
	columns := make([]int32, 5*nodes+1+3*arcs)
	next := func(n int) []int32 {
		column := columns[:n:n]
		columns = columns[n:]
		return column
	}
	return &piece{
		id: next(nodes), x: next(nodes), y: next(nodes), size: next(nodes), first: next(nodes + 1),
		head: next(arcs), cap: next(arcs), back: next(arcs),
	}
}

// part makes a piece of the nodes on one side. place is scratch memory for a number per node, renumbered for one per arc.
func (p *piece) part(side []bool, want bool, place, renumbered []int32) *piece {
	nodes, arcs := 0, 0
	for v := range p.id {
		if side[v] != want {
			continue
		}
		place[v] = int32(nodes)
		nodes++
		for a := p.first[v]; a < p.first[v+1]; a++ {
			if side[p.head[a]] == want {
				renumbered[a] = int32(arcs)
				arcs++
			}
		}
	}
	c := emptyPiece(nodes, arcs)
	at := int32(0)
	for v := range p.id {
		if side[v] != want {
			continue
		}
		w := place[v]
		c.id[w], c.x[w], c.y[w], c.size[w] = p.id[v], p.x[v], p.y[v], p.size[v]
		c.total += int(p.size[v])
		for a := p.first[v]; a < p.first[v+1]; a++ {
			if side[p.head[a]] == want {
				c.head[at], c.cap[at], c.back[at] = place[p.head[a]], p.cap[a], renumbered[p.back[a]]
				at++
			}
		}
		c.first[w+1] = at
	}
	return c
}
