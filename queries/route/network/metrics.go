package network

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lieudit/queries/mappedfile"
	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
)

// MetricCounts are the sizes of a metric in the file, where the metrics of a mode follow each other.
type MetricCounts struct {
	Optimization route.Optimization `json:"optimisation"`
	Avoid        route.Avoid        `json:"evite"`
	Weights      int                `json:"poids"`
	Penalties    int                `json:"poids_evites"`
}

// metricKey names a metric of a mode.
type metricKey struct {
	optimization route.Optimization
	avoid        route.Avoid
}

// Metric returns the metric of a profile of the layer's mode; false if it has no metric. It implements search.Metrics. Kinds of
// roads that the layer does not have need no avoiding, so profiles that differ only in those have the same metric.
func (l *Layer) Metric(p route.Profile) (*overlay.Metric, bool) {
	m, ok := l.metrics[metricKey{p.Optimization, p.Avoid & l.avoidable}]
	return m, ok
}

// avoidableIn returns the kinds of roads that a graph has.
func avoidableIn(flags []graph.Flags) (kinds route.Avoid) {
	for _, f := range flags {
		kinds |= route.Avoid(f &^ graph.Leaving)
	}
	return kinds
}

// The metrics of a mode follow each other in three sections: the offsets of the cells' matrices, the weights, and the penalties in
// them. Meta holds the length of each. A matrix equal to that of the metric that avoids nothing is shared with it, so that the
// metric of a rare kind of road takes a tenth of the space.

// customize computes and writes the shortcuts of a mode, one metric after the other.
func (b *builder) customize(ctx context.Context, w *layerWriter, g *graph.Graph, counts *Counts) error {
	topology, err := overlay.NewTopology(g)
	if err != nil {
		return err
	}
	w.writeTopology(topology)
	kinds := avoidableIn(g.Flags)
	for _, o := range []route.Optimization{route.Fastest, route.Shortest} {
		var base *overlay.Metric
		for avoid := route.Avoid(0); avoid <= kinds; avoid++ { // nothing first, as the base of the others
			if avoid&^kinds != 0 {
				continue
			}
			m, err := overlay.Customize(ctx, topology, g, route.Profile{Mode: counts.Mode, Optimization: o, Avoid: avoid}, base)
			if err != nil {
				return err
			}
			if base == nil {
				base = m
			}
			w.writeMetric(m)
			counts.Metrics = append(counts.Metrics, MetricCounts{o, avoid, len(m.Weights), len(m.Penalties)})
		}
	}
	return w.w.Err()
}

// writeTopology writes the topology of the overlay.
func (w *layerWriter) writeTopology(t *overlay.Topology) {
	for _, column := range topologyColumns(t) {
		w.writeList(secTopology, *column)
	}
}

// writeMetric appends a metric to those written before.
func (w *layerWriter) writeMetric(m *overlay.Metric) {
	w.writeList(secMatrices, m.First)
	w.writeList(secMatrices, m.IsShared)
	writeColumn(w, secWeights, m.Weights)
	writeColumn(w, secWeightPenalties, m.Penalties)
}

// writeList appends a list to a section: its length and its numbers.
func (w *layerWriter) writeList(s mappedfile.Section, list []uint32) {
	w.w.AppendU32(layerSection(w.mode, s), uint32(len(list)))
	writeColumn(w, s, list)
}

// topologyColumns are the columns of a topology, in the order in which they lie in the file.
func topologyColumns(t *overlay.Topology) []*[]uint32 {
	return []*[]uint32{
		&t.LevelFirst, &t.Ancestors, &t.FirstJunction, &t.FirstEntry, &t.FirstExit, &t.FirstWeight, &t.Entries, &t.Exits, &t.Cuts,
	}
}

// cutList takes a list off the lists of a section.
func (b *binder) cutList(lists *[]uint32) []uint32 {
	if len(*lists) == 0 || uint64((*lists)[0]) >= uint64(len(*lists)) {
		b.err = errors.Join(b.err, fmt.Errorf("%w: lists of the %s layer", ErrDamaged, b.mode.Route()))
		*lists = nil
		return nil
	}
	end := 1 + int((*lists)[0])
	list := (*lists)[1:end:end]
	*lists = (*lists)[end:]
	return list
}

// checkLevels compares the numbers of cells in the topology with the counted ones: searches allocate memory by them.
func (b *binder) checkLevels(levelFirst []uint32, counts []int) {
	sums := []uint32{0}
	for i, count := range counts {
		sums = append(sums, sums[i]+uint32(count))
	}
	if !slices.Equal(levelFirst, sums) {
		b.err = errors.Join(b.err, fmt.Errorf("%w: levels of cells", ErrDamaged))
	}
}

// bindOverlay lays the topology and the metrics over their sections.
func (b *binder) bindOverlay(l *Layer, counts Counts) {
	l.Topology = &overlay.Topology{}
	lists := layerColumn[uint32](b, secTopology, -1)
	for _, column := range topologyColumns(l.Topology) {
		*column = b.cutList(&lists)
	}
	b.checkLevels(l.Topology.LevelFirst, counts.Cells)
	matrices := layerColumn[uint32](b, secMatrices, -1)
	weights, penalties := layerColumn[uint64](b, secWeights, -1), layerColumn[uint32](b, secWeightPenalties, -1)
	l.metrics = map[metricKey]*overlay.Metric{}
	for _, c := range counts.Metrics {
		if c.Weights < 0 || c.Weights > len(weights) || c.Penalties < 0 || c.Penalties > len(penalties) || b.err != nil {
			b.err = errors.Join(b.err, fmt.Errorf("%w: weights of the %s layer", ErrDamaged, counts.Mode))
			return
		}
		m := &overlay.Metric{Weights: slices.Clip(weights[:c.Weights]), Penalties: slices.Clip(penalties[:c.Penalties])}
		weights, penalties = weights[c.Weights:], penalties[c.Penalties:]
		if b.network.Version() == 1 {
			m.Penalties = slices.Clone(m.Penalties)
			for i := range m.Penalties {
				m.Penalties[i] *= route.AvoidFactor - 1
			}
		}
		m.First, m.IsShared = b.cutList(&matrices), b.cutList(&matrices)
		if c.Avoid != 0 {
			m.Base = l.metrics[metricKey{c.Optimization, 0}]
		}
		l.metrics[metricKey{c.Optimization, c.Avoid}] = m
		l.avoidable |= c.Avoid
	}
}
