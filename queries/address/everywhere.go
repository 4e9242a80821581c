package address

import (
	"sort"

	"lieudit/queries/address/vintage"
)

const (
	maxTogether = 10_000 // streets with the rarest word that are asked for the others
	maxPivots   = 500    // streets that are looked at
	fewOfEach   = 64     // streets looked at for each term an unfinished word may become
	pivotedMore = 4      // readings of a word
	fewBegun    = 256    // terms an unfinished word may become before streets are looked at instead
)

// everywhere considers the streets of the whole vintage that the words may name, when nothing says in which commune.
// Streets are looked at in the order of importance, so that a name the country over is found where most people live.
func (q *question) everywhere() {
	if q.stem.communes != nil && q.area == nil {
		q.area = q.stem.communes
		q.throughout()
		q.area = nil
		if q.list.top() >= placed {
			return
		}
	}
	q.throughout()
}

// throughout does so in the question's area.
func (q *question) throughout() {
	words := q.words()
	pivot := q.rarest(q.telling(words) &^ q.growing())
	if pivot < 0 {
		pivot = q.rarest(q.telling(words))
	}
	if pivot < 0 {
		pivot = q.rarest(words)
	}
	if pivot < 0 {
		return
	}
	all := q.together(pivot, words)
	if len(all) == 0 {
		all = q.pivoted(pivot, words)
	}
	for i := range q.terms {
		if words.has(i) && i != pivot {
			q.share(all, i)
		}
	}
	for _, h := range q.best(all, words) {
		q.judge(guess{commune: q.v.StreetCommune(h.street), place: vintage.None}, h.street, words)
	}
}

// rarest is the word that the fewest streets hold, or -1.
func (q *question) rarest(words mask) int {
	least, pivot := 0, -1
	for i := range q.terms {
		if !words.has(i) {
			continue
		}
		n := 0
		for _, a := range q.alts[i] {
			n += q.v.StreetsWith(a.term).Len()
		}
		if i == q.prefix && n == 0 && q.high > q.low {
			n = 1 << 20
		}
		if n > 0 && (pivot < 0 || n < least) {
			least, pivot = n, i
		}
	}
	return pivot
}

// pivoted are the streets that hold one word, and how much of the others.
func (q *question) pivoted(pivot int, words mask) []rough {
	all := q.scratch[:0]
	weight := q.weight[pivot]
	for _, a := range q.alts[pivot][:min(len(q.alts[pivot]), pivotedMore)] {
		all = q.takeSome(all, q.v.StreetsWith(a.term), rough{weight: weight * a.sim}, maxPivots)
	}
	switch {
	case pivot != q.prefix:
	case q.high-q.low > fewBegun:
		all = q.scanArea(all, weight*begunSim)
	default:
		for t := q.low; t < q.high && q.steps > 0; t++ {
			all = q.takeSome(all, q.v.StreetsWith(t), rough{weight: weight * begunSim}, fewOfEach)
		}
	}
	all = once(all)
	q.scratch = all
	return all
}

// together are the streets that hold all the words that tell streets apart, if there are several; each is given what
// the rarest is worth.
func (q *question) together(pivot int, words mask) []rough {
	all := q.scratch[:0]
	var others []cursor
	for i := range q.terms {
		if !(q.telling(words) &^ q.growing()).has(i) || i == pivot {
			continue
		}
		if len(q.alts[i]) == 0 {
			return nil
		}
		others = append(others, cursor{column: q.v.StreetsWith(q.alts[i][0].term)})
	}
	if len(others) == 0 || len(q.alts[pivot]) == 0 {
		return nil
	}
	streets := q.v.StreetsWith(q.alts[pivot][0].term)
	q.cut = q.cut || streets.Len() > maxTogether
	for j := range min(streets.Len(), maxTogether) {
		s := streets.At(j)
		if len(all) == maxPivots || q.steps <= 0 {
			q.cut = true
			break
		}
		if q.steps--; inAll(others, s) && q.area.has(q.v.StreetCommune(s)) {
			all = append(all, rough{s, q.weight[pivot] * q.alts[pivot][0].sim})
		}
	}
	q.scratch = all
	return all
}

func inAll(cursors []cursor, street uint32) bool {
	for i := range cursors {
		if !cursors[i].seek(street) {
			return false
		}
	}
	return true
}

// takeSome adds the first streets of a posting that lie in the question's area.
func (q *question) takeSome(all []rough, streets vintage.Column, r rough, most int) []rough {
	begun := len(all)
	for from, to := range q.area.ranges(q.v) {
		streets = streets.From(from)
		for j := 0; j < streets.Len() && streets.At(j) < to; j++ {
			if len(all)-begun == most {
				q.cut = true
				return all
			}
			q.steps--
			all = append(all, rough{streets.At(j), r.weight})
		}
		if q.steps -= 2; q.steps <= 0 || streets.Len() == 0 {
			break
		}
	}
	return all
}

// scanArea looks at the first streets of the area, name by name.
func (q *question) scanArea(all []rough, weight int32) []rough {
	left := uint32(maxBegun)
	for from, to := range q.area.ranges(q.v) {
		n := min(to-from, left)
		all = q.scan(all, rough{from, weight}, from+n)
		if left -= n; left == 0 {
			break
		}
	}
	return all
}

// share adds what one more word is worth to the streets that hold it.
func (q *question) share(all []rough, i int) {
	if i == q.prefix {
		q.shareBegun(all, i)
		return
	}
	for k, a := range q.alts[i] {
		if k == pivotedMore || q.steps <= 0 {
			return
		}
		q.shareTerm(all, q.v.StreetsWith(a.term), q.weight[i]*a.sim)
	}
}

// shareBegun does so for the word that may still grow.
func (q *question) shareBegun(all []rough, i int) {
	for j := range all {
		if q.begins(all[j].street) {
			all[j].weight += q.weight[i] * begunSim
		}
	}
	q.steps -= 2 * len(all)
}

// cursor finds growing numbers in a sorted column.
type cursor struct {
	column vintage.Column
	at     int
}

// seek moves to the first number that is no less, and says whether it is the one.
func (c *cursor) seek(n uint32) bool {
	step := 1
	for c.at+step < c.column.Len() && c.column.At(c.at+step) < n {
		c.at += step
		step *= 2
	}
	width := min(step, c.column.Len()-c.at)
	c.at += sort.Search(width, func(i int) bool { return c.column.At(c.at+i) >= n })
	return c.at < c.column.Len() && c.column.At(c.at) == n
}
