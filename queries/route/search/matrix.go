package search

import (
	"context"

	"lieudit/queries/route"
	"lieudit/queries/route/overlay"
)

// Matrix finds the cost from each origin to each destination: Unreachable if no path exists.
//
// It is a many-to-many search with buckets. Consider the best path to a destination, the largest cell around its end that does not
// hold the origin, and the last edge by which the path enters that cell. The search from the origin opens only the cells of the
// origin, so it settles that edge with its exact weight. The rest of the path lies within the cell, so a search back from the
// destination through its own cells, the smallest first, finds it for every entry and stores it in the bucket of the cell. If there
// are more origins than destinations, everything is done in the other direction.
func (s *Searcher) Matrix(ctx context.Context, p route.Profile, from, to [][]Place) ([][]Cost, error) {
	q, err := s.begin(ctx, p, s.Budgets.Matrix)
	if err != nil {
		return nil, err
	}
	defer s.release(q)
	m := newMatrix(q, from, to)
	if err := m.fill(); err != nil {
		return nil, err
	}
	if err := (areaSearch{q}).keepInside(from, to, m.weights); err != nil {
		return nil, err
	}
	costs := make([][]Cost, len(from))
	for i, row := range m.weights {
		costs[i] = make([]Cost, len(to))
		for j, weight := range row {
			costs[i][j] = Unreachable
			if weight.Key < overlay.NoPath {
				costs[i][j] = q.cost(weight)
			}
		}
	}
	return costs, nil
}

// matrix is the state of one Matrix. It searches across the country from the smaller set of ends (usually the origins), and within
// their own cells from the larger set.
type matrix struct {
	*query
	weights      [][]overlay.Weight // by origin and destination
	origins      [][]seed
	destinations [][]seed
	isTransposed bool // the searches across the country begin at destinations

	// The buckets of the cells: the many ends that a cell holds, each with a row of weights, one for each edge by which the
	// search across enters the cell.
	buckets map[uint32][]bucketEntry
	rows    []overlay.Weight
}

// bucketEntry is one of the many ends, in the bucket of a cell that holds it.
type bucketEntry struct {
	index int
	first uint32 // in rows
}

// newMatrix finds the seeds of all ends, and the weights of pairs on one edge.
func newMatrix(q *query, from, to [][]Place) *matrix {
	m := &matrix{query: q, isTransposed: len(from) > len(to), buckets: map[uint32][]bucketEntry{}}
	for _, places := range to {
		m.destinations = append(m.destinations, q.destinations(places))
	}
	for _, places := range from {
		m.origins = append(m.origins, q.origins(places))
		row := make([]overlay.Weight, len(to))
		for j := range to {
			row[j] = q.bestOnEdge(places, to[j]).Weight
		}
		m.weights = append(m.weights, row)
	}
	return m
}

// fill finds all weights.
func (m *matrix) fill() error {
	few, many, across, within := m.origins, m.destinations, &m.forward, &m.backward
	if m.isTransposed {
		few, many, across, within = many, few, within, across
	}
	for i, seeds := range many {
		if err := m.searchWithin(within, i, seeds); err != nil {
			return err
		}
	}
	for i, seeds := range few {
		if err := m.searchAcross(across, i, seeds, many); err != nil {
			return err
		}
	}
	return nil
}

// at is the weight of a pair of one of the few ends and one of the many.
func (m *matrix) at(few, many int) *overlay.Weight {
	if m.isTransposed {
		return &m.weights[many][few]
	}
	return &m.weights[few][many]
}

// searchWithin searches through the own cells of an end, on one level after the other, and keeps for each of these cells the costs
// from the edges that enter it.
func (m *matrix) searchWithin(f *frontier, index int, seeds []seed) error {
	m.closeAll()
	m.openSeeds(seeds)
	f.begin(seeds)
	cells := m.ownCells(seeds, nil, 1)
	for level := 1; ; level++ {
		if err := m.settleWithin(f, level); err != nil {
			return err
		}
		for _, cell := range cells {
			m.fillBucket(f, index, cell, level)
		}
		if level == m.topology.Levels() {
			return nil
		}
		f.heap = f.heap[:0]
		for _, cell := range cells {
			m.seedNext(f, index, cell)
		}
		cells = m.ownCells(seeds, cells[:0], level+1)
	}
}

// ownCells appends the cells of a level that hold seeds, each once.
func (m *matrix) ownCells(seeds []seed, cells []uint32, level int) []uint32 {
next:
	for _, s := range seeds {
		cell := m.topology.AncestorsOf(m.graph.Cells.Of[m.graph.Head[s.edge]])[level-1]
		for _, known := range cells {
			if known == cell {
				continue next
			}
		}
		cells = append(cells, cell)
	}
	return cells
}

// settleWithin settles all states in the open cells of a level, across the cells of the level below. A state outside them keeps its
// label and is not followed.
func (m *matrix) settleWithin(f *frontier, level int) error {
	for {
		label, ok := f.settle()
		if !ok {
			return nil
		}
		if err := m.budget.spend(); err != nil {
			return err
		}
		s := side{id: f.nodes[label].id}
		s.cell1 = m.cellOf(s.id, f.isBackward)
		if over := m.topology.AncestorsOf(s.cell1); m.open[over[level-1]] == m.opening {
			if s.level = level - 1; level > 1 {
				s.cell = over[level-2]
			}
			f.relax(label, s)
		}
	}
}

// fillBucket adds an end to the bucket of one of its cells, with the weights of its search at the edges that enter the cell.
func (m *matrix) fillBucket(f *frontier, index int, cell uint32, level int) {
	first := uint32(len(m.rows))
	isReached := false
	for _, cut := range f.cutsOf(cell) {
		s := side{id: cut | isCut, level: level - 1}
		s.cell1 = m.cellOf(s.id, !f.isBackward)
		if level > 1 {
			s.cell = m.topology.AncestorsOf(s.cell1)[level-2]
		}
		weight := overlay.Weight{Key: overlay.NoPath}
		if label, ok := f.find(s); ok {
			weight, isReached = f.weight(label), true
		}
		m.rows = append(m.rows, weight)
	}
	if isReached {
		m.buckets[cell] = append(m.buckets[cell], bucketEntry{index, first})
	}
}

// seedNext begins the search on the next level at the edges that enter a cell, with the weights in its bucket. The seeds need no
// place, because a matrix has no paths.
func (m *matrix) seedNext(f *frontier, index int, cell uint32) {
	all := m.buckets[cell]
	if len(all) == 0 || all[len(all)-1].index != index {
		return
	}
	first, row := f.blockOf(cell), all[len(all)-1].first
	for i := range uint32(len(f.cutsOf(cell))) {
		f.improve(first+i, m.rows[row+i], isSeed)
	}
}

// searchAcross searches from one of the few ends until all of the many are found.
func (m *matrix) searchAcross(f *frontier, index int, seeds []seed, many [][]seed) error {
	m.closeAll()
	m.openSeeds(seeds)
	f.begin(seeds)
	local := m.listLocalSeeds(many)
	const stepsBetweenChecks = 64
	for steps := 1; ; steps++ {
		label, ok := f.settle()
		if !ok {
			break
		}
		if err := m.budget.spend(); err != nil {
			return err
		}
		if steps%stepsBetweenChecks == 0 && m.isFound(f, index, local, len(many), f.keys[label]) {
			return nil
		}
		s := f.nextSide(f.nodes[label].id)
		if s.level > 0 {
			m.scanBucket(f, index, label, s)
		}
		f.relax(label, s)
	}
	m.improveLocal(f, index, local)
	return nil
}

// scanBucket improves the weights of the ends in the bucket of a cell that the search enters.
func (m *matrix) scanBucket(f *frontier, index int, label uint32, s side) {
	all := m.buckets[s.cell]
	if len(all) == 0 {
		return
	}
	at, row := f.weight(label), m.topology.Cut(s.id&^isCut).Row(s.level)
	if f.isBackward {
		row = m.topology.Cut(s.id &^ isCut).Column(s.level)
	}
	for _, h := range all {
		if sum, known := at.Plus(m.rows[h.first+row]), m.at(index, h.index); sum.IsLess(*known) {
			*known = sum
		}
	}
}

// localSeed is a seed of one of the many ends in an open cell of level 1.
type localSeed struct {
	index int
	seed
}

// listLocalSeeds returns the seeds in the cells from which the search begins.
func (m *matrix) listLocalSeeds(many [][]seed) (local []localSeed) {
	for i, seeds := range many {
		for _, s := range seeds {
			if m.open[m.graph.Cells.Of[m.graph.Head[s.edge]]] == m.opening {
				local = append(local, localSeed{i, s})
			}
		}
	}
	return local
}

// improveLocal improves the weights of the ends that share a cell of level 1 with the one from which the search came.
func (m *matrix) improveLocal(f *frontier, index int, local []localSeed) {
	for _, n := range local {
		if label, ok := f.find(f.labelSide(n.edge)); ok {
			if sum, known := f.weight(label).Plus(n.weight), m.at(index, n.index); sum.IsLess(*known) {
				*known = sum
			}
		}
	}
}

// isFound reports whether nothing that is still to be settled can improve a weight: all weights known are less than key, that of
// the state settled last. A destination without a path keeps it false, and the search continues until no state is left.
func (m *matrix) isFound(f *frontier, index int, local []localSeed, many int, key uint64) bool {
	m.improveLocal(f, index, local)
	for i := range many {
		if m.at(index, i).Key >= key {
			return false
		}
	}
	return true
}
