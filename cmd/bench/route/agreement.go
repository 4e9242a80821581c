package route

import (
	"context"
	"errors"
	"math"
	"slices"

	"lieudit/cmd/bench/measure"
	"lieudit/queries/route"
	"lieudit/schemas/geo"
)

// compareAnswers reports how far each peer's answers agree with our own.
func compareAnswers(ctx context.Context, routers []namedRouter, q *questions, o Options, out measure.Output) error {
	for _, peer := range routers[1:] {
		var c comparison
		for i := range o.Pairs {
			out.Progress("compare with "+peer.name, i, o.Pairs)
			if err := c.compare(ctx, routers[0], peer, route.Query{Profile: car, Bounds: q.bounds(2)}); err != nil {
				return err
			}
		}
		if err := out.Report(c.figure(peer.name)); err != nil {
			return err
		}
	}
	return nil
}

// comparison counts how far a peer's routes agree with our own.
type comparison struct {
	ratios                []float64 // of durations, ours to theirs
	near, onlyOne, errors int       // pairs with distances within a tenth, with a route from one side only, without an answer
}

// compare asks both routers for one route. That there is no route is an answer too.
func (c *comparison) compare(ctx context.Context, own, peer namedRouter, query route.Query) error {
	ours, ownErr := own.Route(ctx, query)
	theirs, theirErr := peer.Route(ctx, query)
	if err := own.countError(ctx, otherThanNoRoute(ownErr), &c.errors); err != nil {
		return err
	}
	if err := otherThanNoRoute(theirErr); err != nil {
		return peer.countError(ctx, err, &c.errors)
	}
	switch {
	case (ownErr == nil) != (theirErr == nil):
		c.onlyOne++
	case ownErr == nil && theirs.Routes[0].Duration > 0:
		c.ratios = append(c.ratios, ours.Routes[0].Duration/theirs.Routes[0].Duration)
		if math.Abs(ours.Routes[0].Distance-theirs.Routes[0].Distance) <= 0.1*theirs.Routes[0].Distance {
			c.near++
		}
	}
	return nil
}

// figure returns the quantiles of the ratios, and the share of distances within a tenth of each other.
func (c *comparison) figure(peer string) measure.Figure {
	f := measure.Figure{
		Labels: []measure.Label{{Name: "compared with", Value: peer}}, Unit: "median duration, own / theirs",
		Extra: map[string]float64{
			"pairs": float64(len(c.ratios)), "only one has a route": float64(c.onlyOne), "errors": float64(c.errors),
		},
	}
	if len(c.ratios) == 0 {
		return f
	}
	slices.Sort(c.ratios)
	quantile := func(share float64) float64 { return c.ratios[int(share*float64(len(c.ratios)-1))] }
	f.Value, f.Extra["p5"], f.Extra["p95"] = quantile(0.5), quantile(0.05), quantile(0.95)
	f.Extra["distance within 10 %"] = 100 * float64(c.near) / float64(len(c.ratios))
	return f
}

// otherThanNoRoute returns err unless it only means that there is no route.
func otherThanNoRoute(err error) error {
	if _, ok := errors.AsType[*route.OffRoadError](err); ok || errors.Is(err, route.ErrNoRoute) {
		return nil
	}
	return err
}

// compareAlternatives reports how many alternatives, of two requested, each router finds on average for the same routes.
func compareAlternatives(ctx context.Context, routers []namedRouter, q *questions, o Options, out measure.Output) error {
	queries := make([]route.Query, o.Pairs)
	for i := range queries {
		queries[i] = route.Query{Profile: car, Bounds: q.bounds(2), Alternatives: 2}
	}
	for _, r := range routers {
		found, routes, failed := 0, 0, 0
		for i, query := range queries {
			out.Progress("alternatives, "+r.name, i, len(queries))
			a, err := r.Route(ctx, query)
			if err := r.countError(ctx, otherThanNoRoute(err), &failed); err != nil {
				return err
			}
			if err == nil {
				found, routes = found+len(a.Routes)-1, routes+1
			}
		}
		f := measure.Figure{
			Labels: []measure.Label{{Name: "what", Value: "alternatives found, of 2"}, {Name: "router", Value: r.name}}, Unit: "a route",
			Extra: map[string]float64{"routes": float64(routes), "errors": float64(failed)},
		}
		if routes > 0 {
			f.Value = float64(found) / float64(routes)
		}
		if err := out.Report(f); err != nil {
			return err
		}
	}
	return nil
}

// The parameters of the comparison of areas.
const (
	areaCenters   = 10
	areaPositions = 100    // on roads, for each centre
	areaLimit     = 600    // seconds
	areaMargin    = 0.1    // of the limit: positions this close to it are not counted
	areaRadius    = 15_000 // metres around the centre in which positions are drawn: beyond them nothing is within the limit
)

// areaQuestion is a centre and the positions that are tested against the area around it.
type areaQuestion struct {
	center    route.Bound
	positions []route.Bound
}

// compareAreas reports, for each router that draws areas, how often a position is inside an area exactly if the router's own matrix has it
// within the limit.
func compareAreas(ctx context.Context, routers []namedRouter, q *questions, out measure.Output) error {
	asked := make([]areaQuestion, areaCenters)
	for i := range asked {
		asked[i].center = q.bound()
		asked[i].positions = q.boundsNear(asked[i].center.Point, areaPositions)
	}
	for _, r := range routers {
		var c areaComparison
		for i, a := range asked {
			out.Progress("compare areas, "+r.name, i, len(asked))
			err := c.compare(ctx, r, a)
			if errors.Is(err, route.ErrUnsupported) {
				break
			}
			if err := r.countError(ctx, err, &c.errors); err != nil {
				return err
			}
		}
		if c == (areaComparison{}) {
			continue // it draws no areas
		}
		if err := out.Report(c.figure(r.name)); err != nil {
			return err
		}
	}
	return nil
}

// areaComparison counts how far areas agree with the matrix.
type areaComparison struct{ agree, counted, within, nearLimit, errors int }

// compare asks a router for an area and for the durations to the positions.
func (c *areaComparison) compare(ctx context.Context, r route.Router, a areaQuestion) error {
	drawn, err := r.Isochrone(ctx, route.IsochroneQuery{Profile: car, Center: a.center, Cost: route.ByDuration, Limits: []float64{areaLimit}})
	if err != nil {
		return err
	}
	m, err := r.Matrix(ctx, route.MatrixQuery{Profile: car, Origins: []route.Bound{a.center}, Destinations: a.positions})
	if err != nil {
		return err
	}
	for i, duration := range m.Durations[0] {
		if math.Abs(duration-areaLimit) <= areaMargin*areaLimit {
			c.nearLimit++
			continue
		}
		isWithin := duration != route.Unreachable && duration <= areaLimit
		c.counted++
		if isWithin {
			c.within++
		}
		if isWithin == contains(drawn.Areas[0], a.positions[i].Point) {
			c.agree++
		}
	}
	return nil
}

func (c *areaComparison) figure(router string) measure.Figure {
	f := measure.Figure{
		Labels: []measure.Label{
			{Name: "what", Value: "isochrone 10 min agrees with the matrix, without positions within 10 % of the limit"},
			{Name: "router", Value: router},
		},
		Unit: "% of positions",
		Extra: map[string]float64{
			"positions": float64(c.counted), "within the limit": float64(c.within), "left out": float64(c.nearLimit), "errors": float64(c.errors),
		},
	}
	if c.counted > 0 {
		f.Value = 100 * float64(c.agree) / float64(c.counted)
	}
	return f
}

// boundsNear draws positions on roads around a centre. If roads are rare there, some are farther away than areaRadius.
func (q *questions) boundsNear(center geo.Point, n int) []route.Bound {
	const tries = 2_000 // one road of France in 700 is within areaRadius
	all := make([]route.Bound, n)
	for i := range all {
		for range tries {
			if all[i] = q.bound(); geo.Distance(center, all[i].Point) <= areaRadius {
				break
			}
		}
	}
	return all
}

// contains reports whether a position is inside an area: an odd number of borders lie west of it.
func contains(area route.Area, p geo.Point) bool {
	isInside := false
	for _, polygon := range area {
		for _, ring := range polygon {
			for i := 1; i < len(ring); i++ {
				a, b := ring[i-1], ring[i]
				if (a.Lat > p.Lat) != (b.Lat > p.Lat) && p.Lon > a.Lon+(p.Lat-a.Lat)/(b.Lat-a.Lat)*(b.Lon-a.Lon) {
					isInside = !isInside
				}
			}
		}
	}
	return isInside
}
