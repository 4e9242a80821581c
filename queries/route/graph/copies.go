package graph

import (
	"cmp"
	"slices"
)

// Copies are the edges that have copies: a list for each, with the edge and all its copies. The zero value is empty. It is a column
// rather than a map, because a country has a million of them.
type Copies struct {
	Lists []uint32 // for each list its length, then its edges, the original first
	edges []uint32 // of all lists, ascending
	first []uint32 // for each of edges, where its list begins in Lists
	known []uint64 // a bit for each edge up to the last in edges: most have no copies, and need no search
}

// NewCopies indexes lists of a graph with a number of edges. It returns false if a list runs past the end, or an edge does not
// exist.
func NewCopies(lists []uint32, edges int) (Copies, bool) {
	c := Copies{Lists: lists}
	type place struct{ edge, first uint32 }
	var places []place
	for at := 0; at < len(lists); at += int(lists[at]) + 1 {
		if uint64(lists[at]) >= uint64(len(lists)-at) {
			return Copies{}, false
		}
		for _, edge := range lists[at+1 : at+1+int(lists[at])] {
			places = append(places, place{edge, uint32(at)})
		}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.edge, b.edge) })
	c.edges, c.first = make([]uint32, len(places)), make([]uint32, len(places))
	for i, p := range places {
		c.edges[i], c.first[i] = p.edge, p.first
	}
	if n := len(places); n > 0 {
		if int64(places[n-1].edge) >= int64(edges) {
			return Copies{}, false
		}
		c.known = make([]uint64, places[n-1].edge/64+1)
	}
	for _, edge := range c.edges {
		c.known[edge/64] |= 1 << (edge % 64)
	}
	return c, true
}

// Of returns the list that an edge belongs to; nil if it has no copies. The caller must not change it.
func (c *Copies) Of(edge uint32) []uint32 {
	if word := int(edge / 64); word >= len(c.known) || c.known[word]>>(edge%64)&1 == 0 {
		return nil
	}
	i, _ := slices.BinarySearch(c.edges, edge)
	first := c.first[i] + 1
	return c.Lists[first : first+c.Lists[c.first[i]]]
}

// Edges are the edges that have copies, and the copies, ascending. The caller must not change the list.
func (c *Copies) Edges() []uint32 { return c.edges }
