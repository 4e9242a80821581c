package tour

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// trial is a trip that local search improves. Positions go round: position i + n is position i.
type trial struct {
	*problem
	n        int
	trip     []int   // by position, over two rounds
	position []int   // of each node, below n
	near     [][]int // for each node, the nodes that it can go to, the cheapest first
	ahead    []int64 // for each position, the cost of the trip from position 0 to it, over two rounds
	back     []int64 // the same for travel from it to position 0
	next     []int   // the trip that a move makes
	turned   []int   // the part of it that a move reverses
	steps    int     // moves tried so far
}

// stepsFor is the number of moves that are tried for a number of nodes.
func stepsFor(nodes int) int { return 24_000 * nodes * min(nodes, MaxStops+1) }

// improve finds a good trip. It searches starts times, the first time from the trip that always continues to the nearest node, then
// from random ones, and takes the best, because a search sometimes ends where no small change helps.
func (p *problem) improve(steps int, yield Yield) ([]int, error) {
	const starts = 3
	t := newTrial(p)
	r := rand.New(rand.NewPCG(uint64(t.n), 1))
	first := p.nearestFirst()
	var best []int
	for i := range starts {
		trip, err := t.search(first, steps*(i+1)/starts, r, yield)
		if err != nil {
			return nil, err
		}
		if best == nil || p.length(trip) < p.length(best) {
			best = trip
		}
		r.Shuffle(len(first), func(i, j int) { first[i], first[j] = first[j], first[i] })
	}
	return best, nil
}

// stepWork is about how long a step of the search takes.
const stepWork = 2 * time.Nanosecond

// search improves a trip until no move helps, then changes the best so far at random and improves it again, until the steps are
// spent.
func (t *trial) search(first []int, steps int, r *rand.Rand, yield Yield) ([]int, error) {
	const stepsToYield = 1 << 17
	t.set(first)
	t.descend()
	best, length := slices.Clone(t.trip[:t.n]), t.ahead[t.n]
	for yielded := t.steps; t.steps < steps; {
		if done := t.steps - yielded; done >= stepsToYield {
			if err := yield(time.Duration(done) * stepWork); err != nil {
				return nil, err
			}
			yielded = t.steps
		}
		t.set(best)
		t.kick(r)
		t.descend()
		if l := t.ahead[t.n]; l <= length {
			length = l
			copy(best, t.trip)
		}
	}
	return best, nil
}

func newTrial(p *problem) *trial {
	n := len(p.cost)
	t := &trial{
		problem: p, n: n, trip: make([]int, 2*n), position: make([]int, n), next: make([]int, 0, n), turned: make([]int, 0, n),
		near: make([][]int, n), ahead: make([]int64, 2*n), back: make([]int64, 2*n),
	}
	for v := range n {
		for u := range n {
			if u != v && p.cost[v][u] < p.forbidden {
				t.near[v] = append(t.near[v], u)
			}
		}
		slices.SortStableFunc(t.near[v], func(a, b int) int { return cmp.Compare(p.cost[v][a], p.cost[v][b]) })
	}
	return t
}

// nearestFirst is the trip that always continues to the nearest node that is left.
func (p *problem) nearestFirst() []int {
	n := len(p.cost)
	trip, used := []int{0}, make([]bool, n)
	used[0] = true
	for v := 0; len(trip) < n; trip = append(trip, v) {
		best := -1
		for u := range n {
			if !used[u] && (best < 0 || p.cost[v][u] < p.cost[v][best]) {
				best = u
			}
		}
		v, used[best] = best, true
	}
	return trip
}

// set replaces the trip to improve.
func (t *trial) set(trip []int) {
	copy(t.trip, trip)
	copy(t.trip[t.n:], trip)
	for i, v := range trip {
		t.position[v] = i
	}
	for i := 1; i < 2*t.n; i++ {
		v, w := t.trip[i-1], t.trip[i]
		t.ahead[i] = t.ahead[i-1] + t.cost[v][w]
		t.back[i] = t.back[i-1] + t.cost[w][v]
	}
}

// kick parts the trip into four and puts them together in another order, which no single move can undo. Three of the parts are
// short, so that most of a good trip stays.
func (t *trial) kick(r *rand.Rand) {
	longest := min(maxKick, (t.n-1)/3)
	a := r.IntN(t.n)
	b := a + 1 + r.IntN(longest)
	c := b + 1 + r.IntN(longest)
	d := c + 1 + r.IntN(longest)
	t.join(t.part(c, d), t.part(b, c), t.part(a, b), t.part(d, a+t.n))
}

// maxKick is the length of the longest of the short parts.
const maxKick = 10

// part is the trip from a position up to another, that one excluded.
func (t *trial) part(from, to int) []int {
	if from >= t.n {
		from, to = from-t.n, to-t.n
	}
	return t.trip[from:to]
}

// join makes the trip one of these parts.
func (t *trial) join(parts ...[]int) {
	t.next = t.next[:0]
	for _, p := range parts {
		t.next = append(t.next, p...)
	}
	t.set(t.next)
}

// descend makes moves that shorten the trip until no move does.
func (t *trial) descend() {
	for t.exchange() || t.reverse() || t.insertReversed() {
	}
}

// exchange exchanges two neighbouring parts of the trip, of any lengths, if that shortens it: a→b…c→d…e→f becomes a→d…e→b…c→f. One
// of the three new arcs is shorter than the old one from the same node, so it is enough to start there.
func (t *trial) exchange() bool {
	for i := range t.n {
		a, b := t.trip[i], t.trip[i+1]
		for _, d := range t.near[a] {
			saved := t.cost[a][b] - t.cost[a][d]
			if saved <= 0 {
				break
			}
			k := t.position[d]
			if k < i {
				k += t.n
			}
			if j, ok := t.endOfExchange(i, k, saved+t.cost[t.trip[k-1]][d]); ok {
				t.join(t.part(i, i+1), t.part(k, j+1), t.part(i+1, k), t.part(j+1, i+t.n))
				return true
			}
		}
	}
	return false
}

// endOfExchange finds where the second part, which begins at position k, ends best. It returns false if no end shortens the trip:
// saved is what the exchange saves without the arcs around the end.
func (t *trial) endOfExchange(i, k int, saved int64) (end int, ok bool) {
	toB, fromC := t.trip[i+1], t.cost[t.trip[k-1]]
	t.steps += i + t.n - k
	most := int64(0)
	for j := k; j < i+t.n; j++ {
		f, fromE := t.trip[j+1], t.cost[t.trip[j]]
		if s := saved + fromE[f] - fromE[toB] - fromC[f]; s > most {
			most, end = s, j
		}
	}
	return end, most > 0
}

// reverse reverses a part of the trip if that shortens it: a→b…c→d becomes a→c…b→d.
func (t *trial) reverse() bool {
	for i := range t.n {
		a, b := t.trip[i], t.trip[i+1]
		t.steps += t.n - 2
		for k := i + 2; k < i+t.n; k++ {
			c, d := t.trip[k], t.trip[k+1]
			if t.cost[a][c]+t.cost[b][d]+t.costOfTurning(i+1, k) < t.cost[a][b]+t.cost[c][d] {
				t.join(t.part(i, i+1), t.reversed(i+1, k+1), t.part(k+1, i+t.n))
				return true
			}
		}
	}
	return false
}

// costOfTurning is how much more it costs to travel the part between two positions in the other direction.
func (t *trial) costOfTurning(first, last int) int64 {
	return t.back[last] - t.back[first] - t.ahead[last] + t.ahead[first]
}

// reversed is the part of the trip from a position up to another, that one excluded, in reverse order.
func (t *trial) reversed(from, to int) []int {
	t.turned = append(t.turned[:0], t.part(from, to)...)
	slices.Reverse(t.turned)
	return t.turned
}

// maxInserted is the length of the longest part that is moved and reversed at once.
const maxInserted = 5

// insertReversed moves a short part elsewhere in reverse order if that shortens the trip: a→b…c→d…e→f becomes a→d…e→c…b→f.
func (t *trial) insertReversed() bool {
	for i := range t.n {
		a, b := t.trip[i], t.trip[i+1]
		for k := i + 2; k <= i+min(maxInserted, t.n-2); k++ {
			c, d := t.trip[k], t.trip[k+1]
			saved := t.cost[a][b] + t.cost[c][d] - t.cost[a][d] - t.costOfTurning(i+1, k)
			if j, ok := t.placeFor(b, c, k+1, i+t.n, saved); ok {
				t.join(t.part(i, i+1), t.part(k+1, j+1), t.reversed(i+1, k+1), t.part(j+1, i+t.n))
				return true
			}
		}
	}
	return false
}

// placeFor finds where a part that begins with c and ends with b can be inserted between two positions for less than saved.
func (t *trial) placeFor(b, c, from, to int, saved int64) (after int, ok bool) {
	t.steps += to - from
	fromB := t.cost[b]
	for j := from; j < to; j++ {
		f, fromE := t.trip[j+1], t.cost[t.trip[j]]
		if fromE[c]+fromB[f]-fromE[f] < saved {
			return j, true
		}
	}
	return 0, false
}
