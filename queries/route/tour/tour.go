// Package tour finds the cheapest order of stops. The same costs give the same order, so the work is bounded by steps and never by
// a clock.
//
//	costs, Options ── newProblem ──► problem (a round trip with forbidden arcs) ── exact | improve ──► trip ── order
//
// Every question is reduced to the cheapest round trip. If the tour does not return to its first stop, a node is added that costs
// nothing to reach and to leave, and the trip is cut open there; a fixed end forbids all other arcs. Few stops are solved exactly
// (Held and Karp), more by local search with random restarts near the best trip found so far.
package tour

import (
	"math"
	"slices"
	"time"
)

// MaxStops is the number of stops up to which an order is found in well under a second. More are accepted.
const MaxStops = 48

// MaxExactStops is the number of stops up to which the best order is proven. Stops that stay first or last do not count.
const MaxExactStops = 15

// Options say which orders are allowed.
type Options struct {
	FixedStart bool // the first stop stays first
	FixedEnd   bool // the last stop stays last
	RoundTrip  bool // the tour returns to its first stop, which costs too; the first stop stays first
}

// Yield is called about every half millisecond with the amount of work done since, so that the caller can give way to others. Its
// error ends the work.
type Yield func(done time.Duration) error

// Solve returns the cheapest order of the stops. cost[i][j] is the cost from stop i to stop j; a negative cost, such as
// route.Unreachable, means that there is no way. The diagonal is ignored. The order is nil if every order tried uses a pair without
// a way. optimal reports that the result is proven: that no order is cheaper, or that there is no order. Up to MaxExactStops stops
// it is always true; beyond, an order may be the cheapest without being proven so. The error is that of yield.
func Solve(cost [][]float64, o Options, yield Yield) (order []int, optimal bool, err error) {
	switch len(cost) {
	case 0:
		return nil, true, nil
	case 1:
		return []int{0}, true, nil
	}
	p := newProblem(cost, o)
	var trip []int
	if optimal = p.free() <= MaxExactStops; optimal {
		trip, err = p.exact(yield)
	} else {
		trip, err = p.improve(stepsFor(len(p.cost)), yield)
	}
	if err != nil {
		return nil, false, err
	}
	if given := p.givenTrip(); p.length(given) <= p.length(trip) {
		trip = given // the caller's own order wins a tie
	}
	if p.length(trip) >= p.forbidden {
		return nil, optimal || p.hasLonelyNode(), nil
	}
	return p.order(trip), optimal, nil
}

// problem is to find the cheapest round trip through all nodes. Node 0 is the first stop of a round trip, otherwise the added
// node; the stops follow in their order.
type problem struct {
	cost      [][]int64
	forbidden int64 // cost of a forbidden arc: more than any trip without one
	added     int   // nodes before the first stop

	isStartFixed, isEndFixed bool // node 1 follows node 0; the last node precedes node 0
}

// newProblem turns the costs into integers: the largest has costBits bits, so that sums are exact in any order.
func newProblem(cost [][]float64, o Options) *problem {
	const costBits = 40
	n, p := len(cost), &problem{forbidden: 1 << (costBits + 7)}
	if !o.RoundTrip {
		p.added = 1
	}
	for p.forbidden <= int64(n+2)<<costBits {
		p.forbidden <<= 1
	}
	_, exponent := math.Frexp(largest(cost))
	p.cost = make([][]int64, n+p.added)
	for i := range p.cost {
		p.cost[i] = make([]int64, n+p.added)
		for j := range p.cost {
			if i >= p.added && j >= p.added {
				p.cost[i][j] = p.forbidden
				if c := cost[i-p.added][j-p.added]; c >= 0 && !math.IsInf(c, 1) {
					p.cost[i][j] = int64(math.RoundToEven(math.Ldexp(c, costBits-exponent)))
				}
			}
		}
	}
	p.fixEnds(o)
	return p
}

// largest is the largest finite cost.
func largest(cost [][]float64) float64 {
	most := 0.0
	for _, row := range cost {
		for _, c := range row {
			if !math.IsInf(c, 1) {
				most = max(most, c)
			}
		}
	}
	return most
}

// fixEnds forbids the arcs that the options exclude.
func (p *problem) fixEnds(o Options) {
	last := len(p.cost) - 1
	for v := range p.cost {
		if o.FixedStart && p.added > 0 && v != 1 {
			p.cost[0][v] = p.forbidden
		}
		if o.FixedEnd && v != last {
			p.cost[v][0] = p.forbidden
		}
	}
	p.isStartFixed, p.isEndFixed = o.FixedStart && p.added > 0, o.FixedEnd
}

// free is the number of nodes whose position is open.
func (p *problem) free() int {
	middle, _, _ := p.middle()
	return len(middle)
}

// length is the cost of a trip; a trip through a forbidden arc has a length of forbidden or more.
func (p *problem) length(trip []int) int64 {
	sum, last := int64(0), trip[len(trip)-1]
	for _, v := range trip {
		sum += p.cost[last][v]
		last = v
	}
	return sum
}

// givenTrip is the trip in the order in which the stops were given.
func (p *problem) givenTrip() []int {
	trip := make([]int, len(p.cost))
	for i := range trip {
		trip[i] = i
	}
	return trip
}

// order turns a trip into an order of the stops.
func (p *problem) order(trip []int) []int {
	at := slices.Index(trip, 0)
	order := slices.Concat(trip[at:], trip[:at])[p.added:]
	for i := range order {
		order[i] -= p.added
	}
	return order
}

// hasLonelyNode reports whether some node cannot be reached, or not be left, at all: then no trip exists.
func (p *problem) hasLonelyNode() bool {
	for v := range p.cost {
		canBeReached, canBeLeft := false, false
		for u := range p.cost {
			if u != v {
				canBeReached = canBeReached || p.cost[u][v] < p.forbidden
				canBeLeft = canBeLeft || p.cost[v][u] < p.forbidden
			}
		}
		if !canBeReached || !canBeLeft {
			return true
		}
	}
	return false
}
