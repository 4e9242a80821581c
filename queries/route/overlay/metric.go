package overlay

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
)

// Metric holds the tables of all cells for one profile. Its columns are read-only and may lie in a mapped file.
type Metric struct {
	First   [][]uint32 // of each level and cell: where its table begins in Weights; with sharedBit in Base's Weights
	Weights []Weight
	Real    []uint32 // the primary cost of each of Weights without the factor of avoided roads; nil where nothing is avoided
	Base    *Metric  // of the same mode and optimization with nothing avoided; nil for that one itself
}

// sharedBit marks a table that equals that of the metric with nothing avoided.
const sharedBit = 1 << 31

// Costs are the table of one cell: rows of entries, columns of exits. Real is nil where it is the primary cost itself.
type Costs struct {
	Weights []Weight
	Real    []uint32
}

// Costs returns the table of a cell of so many entries × exits.
func (m *Metric) Costs(level int, cell uint32, size int) Costs {
	first := m.First[level-1][cell]
	if first&sharedBit != 0 {
		first &^= sharedBit
		return Costs{Weights: m.Base.Weights[first : int(first)+size]}
	}
	c := Costs{Weights: m.Weights[first : int(first)+size]}
	if m.Real != nil {
		c.Real = m.Real[first : int(first)+size]
	}
	return c
}

// Customize computes the tables of all cells for a profile, on all processors. The same graph and profile make the same bytes.
// base is the metric of the same mode and optimization with nothing avoided, nil when p avoids nothing.
func Customize(ctx context.Context, t *Topology, g *graph.Graph, p route.Profile, base *Metric) (*Metric, error) {
	m := &Metric{First: make([][]uint32, len(t.Levels)), Base: base}
	for l := range t.Levels {
		tables := make([]Costs, g.Cells.Count[l])
		if err := forEachCell(ctx, len(tables), func() func(cell int) {
			c := newCustomizer(g, t, p, m, l+1)
			return func(cell int) { tables[cell] = c.table(uint32(cell)) }
		}); err != nil {
			return nil, err
		}
		m.appendTables(l, tables)
	}
	return m, nil
}

// forEachCell calls a function of each worker for all cells, in any order.
func forEachCell(ctx context.Context, cells int, newWorker func() func(cell int)) error {
	const batch = 16
	var next atomic.Int64
	work, ctx := errgroup.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) {
		work.Go(func() error {
			do := newWorker()
			for {
				first := int(next.Add(batch)) - batch
				if first >= cells || ctx.Err() != nil {
					return ctx.Err()
				}
				for cell := first; cell < min(first+batch, cells); cell++ {
					do(cell)
				}
			}
		})
	}
	return work.Wait()
}

// appendTables appends the tables of a level. Those that the base has too are shared.
func (m *Metric) appendTables(level int, tables []Costs) {
	m.First[level] = make([]uint32, len(tables))
	for cell, table := range tables {
		if m.Base != nil {
			if first := m.Base.First[level][cell]; slices.Equal(table.Weights, m.Base.Weights[first:int(first)+len(table.Weights)]) {
				m.First[level][cell] = first | sharedBit
				continue
			}
		}
		m.First[level][cell] = uint32(len(m.Weights))
		m.Weights = append(m.Weights, table.Weights...)
		m.Real = append(m.Real, table.Real...)
	}
}
