package search

import (
	"slices"

	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
)

// hop is a part of a path on the overlay: from an edge to another, across a cell of a level or, on level 0, directly.
type hop struct {
	from, to uint32
	level    uint8
}

// path unpacks the path through the edge at which two searches met.
func (q *question) path(w *workspace, meeting uint32, from, to []Place, cost Cost) Path {
	var hops []hop
	first := meeting
	for {
		n, _ := w.forward.get(first)
		if n.parent == graph.None {
			break
		}
		hops = append(hops, hop{n.parent, first, n.level})
		first = n.parent
	}
	slices.Reverse(hops)
	last := meeting
	for {
		n, _ := w.backward.get(last)
		if n.level == lastHop {
			hops = append(hops, hop{last, n.parent, 0})
			last = n.parent
			break
		}
		hops = append(hops, hop{last, n.parent, n.level})
		last = n.parent
	}
	edges := []uint32{first}
	for _, h := range hops {
		edges = q.unpack(w, edges, h)
	}
	p := Path{Edges: edges, Cost: cost}
	p.Start = q.startOn(first, from)
	p.End = q.endOn(last, to)
	return p
}

// startOn is the place on an edge at which a path begins: of several the one from which least is left.
func (q *question) startOn(edge uint32, from []Place) Place {
	return q.bestPlace(from, func(p Place) (bool, overlay.Label) {
		return p.Edge == edge, q.weigh.PartLabel(edge, p.After.Duration, p.After.Distance)
	})
}

// endOn is the place on an edge, or on one that it is a copy of, at which a path ends.
func (q *question) endOn(edge uint32, to []Place) Place {
	return q.bestPlace(to, func(p Place) (bool, overlay.Label) {
		return slices.Contains(q.g.CopiesOf(p.Edge), edge), q.weigh.PartLabel(edge, p.Before.Duration, p.Before.Distance)
	})
}

func (q *question) bestPlace(places []Place, rate func(Place) (bool, overlay.Label)) (best Place) {
	least := overlay.Label{Weight: overlay.Unreachable}
	for _, p := range places {
		if fits, label := rate(p); fits && label.IsLess(least) {
			best, least = p, label
		}
	}
	return best
}

// unpack appends the edges of a hop but the first.
func (q *question) unpack(w *workspace, edges []uint32, h hop) []uint32 {
	if h.level == 0 {
		return append(edges, h.to)
	}
	for _, part := range q.cross(&w.within, h) {
		edges = q.unpack(w, edges, part)
	}
	return edges
}

// cross finds the best path of a hop across its cell, on the level below: what the table of the cell was computed from.
func (q *question) cross(f *frontier, h hop) []hop {
	f.reset()
	cell := q.g.Cells.At(q.g.Head[h.from], int(h.level))
	f.improve(h.from, overlay.Label{}, graph.None, 0)
	isFirst := true
	for {
		edge, label, ok := f.settle()
		if !ok {
			panic("search: a shortcut has no path") // the metric does not belong to the graph
		}
		if edge == h.to && !isFirst {
			break
		}
		if !isFirst && q.g.Cells.At(q.g.Head[edge], int(h.level)) != cell {
			continue
		}
		isFirst = false
		q.relaxWithin(f, edge, label, int(h.level)-1)
	}
	var hops []hop
	for edge := h.to; edge != h.from; {
		n, _ := f.get(edge)
		hops = append(hops, hop{n.parent, edge, n.level})
		edge = n.parent
	}
	slices.Reverse(hops)
	return hops
}

// relaxWithin looks at what follows an edge on one level.
func (q *question) relaxWithin(f *frontier, edge uint32, label overlay.Label, level int) {
	if level == 0 {
		q.relaxEdges(f, edge, label)
		return
	}
	q.relaxCell(f, edge, label, level, q.g.Cells.At(q.g.Head[edge], level))
}
