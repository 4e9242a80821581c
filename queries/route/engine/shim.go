package engine

import (
	"context"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
)

type shim map[route.Profile]*overlay.Metric

func (s shim) Metric(p route.Profile) (*overlay.Metric, bool) { m, ok := s[p]; return m, ok }

func shimOf(mode route.Mode, g *graph.Graph) (*overlay.Topology, shim) {
	t, err := overlay.NewTopology(g)
	if err != nil {
		panic(err)
	}
	s := shim{}
	for _, o := range []route.Optimization{route.Fastest, route.Shortest} {
		var base *overlay.Metric
		for a := route.Avoid(0); a < 8; a++ {
			p := route.Profile{Mode: mode, Optimization: o, Avoid: a}
			m, err := overlay.Customize(context.Background(), t, g, p, base)
			if err != nil {
				panic(err)
			}
			if a == 0 {
				base = m
			}
			s[p] = m
		}
	}
	return t, s
}
