package tour

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

// exactWork is about how long a step of exact takes.
const exactWork = 7 * time.Nanosecond

// exact finds the best trip by the method of Held and Karp: the cheapest way from node 0 through each set of the others, for each
// node that it can end at. It takes 2^free × free² / 4 steps.
func (p *problem) exact(yield Yield) ([]int, error) {
	middle, first, last := p.middle()
	n := len(middle)
	if n == 0 {
		return slices.Concat(first, last), nil
	}
	cost := make([]int64, n<<n) // of set s and end e at s*n+e
	for i := range cost {
		cost[i] = math.MaxInt64
	}
	for e, v := range middle {
		cost[n<<e+e] = p.cost[first[len(first)-1]][v]
	}
	const setsToYield = 1024
	for s := 1; s < 1<<n; s++ {
		if s%setsToYield == 0 {
			if err := yield(time.Duration(setsToYield*n*n/4) * exactWork); err != nil {
				return nil, err
			}
		}
		for ends := s; ends != 0; ends &= ends - 1 {
			e := bits.TrailingZeros(uint(ends))
			soFar, row := cost[s*n+e], p.cost[middle[e]]
			for rest := 1<<n - 1 - s; rest != 0; rest &= rest - 1 {
				next := bits.TrailingZeros(uint(rest))
				at := (s|1<<next)*n + next
				cost[at] = min(cost[at], soFar+row[middle[next]])
			}
		}
	}
	return slices.Concat(first, p.walkBack(cost, middle, last), last), nil
}

// middle returns the nodes whose position is open, those known to come first (at least node 0) and those known to come last.
func (p *problem) middle() (middle, first, last []int) {
	low, high := 1, len(p.cost)
	first = []int{0}
	if p.isStartFixed {
		first, low = append(first, 1), 2
	}
	if p.isEndFixed {
		last, high = []int{high - 1}, high-1
	}
	for v := low; v < high; v++ {
		middle = append(middle, v)
	}
	return middle, first, last
}

// walkBack finds the way through all nodes from the costs of the sets, end first.
func (p *problem) walkBack(cost []int64, middle, last []int) []int {
	n := len(middle)
	after := 0
	if len(last) > 0 {
		after = last[0]
	}
	way := make([]int, n)
	for s, i := 1<<n-1, n-1; i >= 0; i-- {
		best := -1
		for e, v := range middle {
			if s>>e&1 == 1 && (best < 0 || cost[s*n+e]+p.cost[v][after] <= cost[s*n+best]+p.cost[middle[best]][after]) {
				best = e
			}
		}
		way[i], after = middle[best], middle[best]
		s &^= 1 << best
	}
	return way
}
