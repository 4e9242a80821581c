package partition

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// directions are those in which pieces are bisected.
var directions = [][2]int64{{1, 0}, {0, 1}, {1, 1}, {1, -1}, {2, 1}, {1, 2}, {2, -1}, {1, -2}}

// outerShare is the share of the junctions that are sources, and of those that are sinks. It was measured on Delaware and Porto:
// above 0.3 there are more shortcuts, below 0.15 the cells become ever smaller.
const outerShare = 0.2

// parallelNodes is the number of nodes from which the directions of one piece are tried on several cores.
const parallelNodes = 10_000

// cut is a way to bisect a piece.
type cut struct {
	direction int
	value     int    // number of edges cut
	small     int    // junctions on the smaller side
	side      []bool // of each node
}

// cost is the measure by which cuts are compared: a cell has a shortcut for each pair of edges cut, hence the square, and a cut far
// from the middle requires more cuts.
func cost(value, small int) float64 { return float64(value) * float64(value) / float64(small) }

// isBetter compares costs. Ties go to the more even cut, then to the earlier direction.
func (c *cut) isBetter(than *cut) bool {
	if than == nil {
		return true
	}
	return cmp.Or(cmp.Compare(cost(c.value, c.small), cost(than.value, than.small)), cmp.Compare(than.small, c.small),
		cmp.Compare(c.direction, than.direction)) < 0
}

// search is the search for the best cut of a piece.
type search struct {
	piece *piece
	mu    sync.Mutex
	best  *cut
}

// bisect divides a piece in two. It releases the memory of the piece.
func (d *divider) bisect(ctx context.Context, p *piece) (a, b *piece, err error) {
	s := &search{piece: p}
	var next atomic.Int32
	try := func() error {
		f := d.borrowFlow()
		defer d.scratch.Put(f)
		for i := int(next.Add(1)) - 1; i < len(directions) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
			s.try(f, i)
		}
		return ctx.Err()
	}
	var helpers sync.WaitGroup
	for range len(directions) - 1 {
		helpers.Add(1)
		if len(p.id) < parallelNodes || !d.group.TryGo(func() error { defer helpers.Done(); return try() }) {
			helpers.Done()
			break
		}
	}
	err = try()
	helpers.Wait()
	if err != nil {
		return nil, nil, err
	}
	f := d.borrowFlow()
	defer d.scratch.Put(f)
	f.level, f.left = resize(f.level, len(p.id)), resize(f.left, len(p.head))
	return p.part(s.best.side, true, f.level, f.left), p.part(s.best.side, false, f.level, f.left), nil
}

func (d *divider) borrowFlow() *flow {
	if f, ok := d.scratch.Get().(*flow); ok {
		return f
	}
	return &flow{}
}

// try looks for a better cut in a direction.
func (s *search) try(f *flow, direction int) {
	f.reset(s.piece)
	f.choose(directions[direction], int(outerShare*float64(s.piece.total)))
	if !f.maximize(s.isUseless) {
		return
	}
	c := &cut{direction: direction, value: f.value}
	c.side, c.small = f.halves()
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.isBetter(s.best) {
		s.best = c
	}
}

// isUseless reports whether a cut of this value is worse than the best even if it divides the piece evenly.
func (s *search) isUseless(value int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.best != nil && cost(value, s.piece.total/2) > cost(s.best.value, s.best.small)
}

// choose makes sources of the nodes farthest back in a direction and sinks of those farthest ahead: at least one of each, and
// enough to stand for want junctions.
func (f *flow) choose(direction [2]int64, want int) {
	p := f.p
	for v := range f.keys {
		f.keys[v] = direction[0]*int64(p.x[v]) + direction[1]*int64(p.y[v])
	}
	f.mark(source, want)
	for v := range f.keys {
		f.keys[v] = -f.keys[v]
	}
	f.mark(sink, want)
}

// mark puts the nodes with the smallest keys on a side; among equal keys, sources are taken from the front and sinks from the back.
func (f *flow) mark(side uint8, want int) {
	const classes = 1 << 12
	var size [classes]int
	lowest, highest := slices.Min(f.keys), slices.Max(f.keys)
	width := (highest-lowest)/classes + 1
	for v, k := range f.keys {
		size[(k-lowest)/width] += int(f.p.size[v])
	}
	class, before := int64(0), 0
	for ; before+size[class] < want; class++ {
		before += size[class]
	}
	edge := f.queue[:0]
	for v, k := range f.keys {
		switch c := (k - lowest) / width; {
		case c < class:
			f.side[v] = side
		case c == class:
			edge = append(edge, int32(v))
		}
	}
	slices.SortFunc(edge, func(a, b int32) int {
		if side == sink {
			return cmp.Or(cmp.Compare(f.keys[a], f.keys[b]), cmp.Compare(b, a))
		}
		return cmp.Or(cmp.Compare(f.keys[a], f.keys[b]), cmp.Compare(a, b))
	})
	for i, v := range edge {
		if i > 0 && before >= want {
			break
		}
		f.side[v] = side
		before += int(f.p.size[v])
	}
	f.queue = edge[:0]
}
