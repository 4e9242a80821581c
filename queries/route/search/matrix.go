package search

import (
	"context"

	"lieudit/queries/route"
	"lieudit/queries/route/overlay"
)

// bucket says that from the head of an edge a destination costs so much.
type bucket struct {
	destination int
	label       overlay.Label
}

// Matrix finds the cost from each origin to each destination; Unreachable where there is no path.
//
// Of a path to a destination, look at the highest level whose cell around the destination holds no end of the origin, and at the
// last cut edge through which the path enters that cell. The search from the origin, which keeps out of the origin's cells
// alone, gives that edge its exact label. What follows lies within the cell, so a search backwards from the destination that
// never leaves its cells gives the rest: it puts the destination into a bucket on each edge that enters one of its cells.
func (s *Searcher) Matrix(ctx context.Context, p route.Profile, from, to [][]Place) ([][]Cost, error) {
	labels, err := s.labels(ctx, p, from, to)
	rows := make([][]Cost, len(labels))
	for i, row := range labels {
		rows[i] = make([]Cost, len(row))
		for j, label := range row {
			rows[i][j] = costOf(label, p)
		}
	}
	return rows, err
}

// labels are the labels of the best paths from each origin to each destination.
func (s *Searcher) labels(ctx context.Context, p route.Profile, from, to [][]Place) ([][]overlay.Label, error) {
	w := s.work.Get().(*workspace)
	defer s.work.Put(w)
	buckets, err := s.fillBuckets(ctx, w, p, to)
	if err != nil {
		return nil, err
	}
	rows := make([][]overlay.Label, len(from))
	for i, places := range from {
		if rows[i], err = s.labelsFrom(ctx, w, p, places, to, buckets); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// labelsFrom are the labels of the best paths from one origin.
func (s *Searcher) labelsFrom(ctx context.Context, w *workspace, p route.Profile, from []Place, to [][]Place, buckets map[uint32][]bucket) ([]overlay.Label, error) {
	q, err := s.newQuestion(p, s.heads(from))
	if err != nil {
		return nil, err
	}
	best := make([]overlay.Label, len(to))
	for j := range best {
		best[j] = direct(&q.weigh, from, to[j]).label
	}
	return best, q.scan(ctx, &w.forward, from, func(edge uint32, label overlay.Label) {
		for _, b := range buckets[edge] {
			if total := label.Add(b.label); total.IsLess(best[b.destination]) {
				best[b.destination] = total
			}
		}
	})
}

// scan searches from places and visits each edge with its label, the least first.
func (q *question) scan(ctx context.Context, f *frontier, from []Place, visit func(uint32, overlay.Label)) error {
	q.seedForward(f, from)
	for step := 0; ; step++ {
		if step%stepsBetweenChecks == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		edge, label, ok := f.settle()
		if !ok {
			return nil
		}
		visit(edge, label)
		q.relaxForward(f, edge, label)
	}
}

// fillBuckets searches backwards from each destination.
func (s *Searcher) fillBuckets(ctx context.Context, w *workspace, p route.Profile, to [][]Place) (map[uint32][]bucket, error) {
	buckets := map[uint32][]bucket{}
	for i, places := range to {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, place := range places {
			for _, copied := range s.g.CopiesOf(place.Edge) {
				place.Edge = copied
				if err := s.fillBucketsOf(&w.backward, p, place, func(edge uint32, label overlay.Label) {
					buckets[edge] = append(buckets[edge], bucket{i, label})
				}); err != nil {
					return nil, err
				}
			}
		}
	}
	return buckets, nil
}

// fillBucketsOf searches backwards from one place, through its cells from the smallest to the largest.
func (s *Searcher) fillBucketsOf(f *frontier, p route.Profile, place Place, put func(uint32, overlay.Label)) error {
	tail := s.g.Tail[place.Edge]
	q, err := s.newQuestion(p, []uint32{tail})
	if err != nil {
		return err
	}
	q.seedBackwardOn(f, place)
	top := len(s.t.Levels)
	for {
		edge, label, ok := f.settle()
		if !ok {
			return nil
		}
		n, _ := f.get(edge)
		from := s.g.Tail[edge]
		outer, _ := q.level(from)
		inner, _ := q.level(s.g.Head[edge])
		if n.level == lastHop || outer > inner { // it enters a cell of the place
			put(edge, label)
		}
		if s.g.Cells.At(from, top) == s.g.Cells.At(tail, top) {
			q.relaxBackward(f, edge, label)
		}
	}
}
