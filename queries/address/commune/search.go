package commune

import (
	"math/bits"
	"slices"
	"sort"
)

// Query asks for communes. What is zero asks nothing.
type Query struct {
	Text        string // a name, or the beginning of one or of one of its words
	Limit       int    // at least 1
	Postcodes   []string
	Departments []string
	Regions     []string

	MinPopulation uint32
	MaxPopulation uint32 // 0 is no bound
}

// Match is a commune and how well its name fits, from 0 to 1.
type Match struct {
	*Commune
	Score float64
}

// The scores: the whole name, its beginning, the beginning of another of its words; and where no name fits so, one letter
// wrong, another spelling of the same sound, two letters wrong.
var (
	literalScores = [...]float64{1, 0.9, 0.7}
	looseScores   = [...]float64{0.7, 0.65, 0.6}
)

// Search is the communes that fit, the best first; of as good ones the most populous, then by code. A former commune's name
// finds the one it is part of now. One letter of a name may be wrong where it has four, two where it has eight. A text
// without a letter or digit asks for no name.
func (t *Table) Search(q Query) []Match {
	n := t.names()
	admitted := n.admitted(t, &q)
	line := bareName(q.Text)
	if line == "" {
		return n.matches([]rankSet{admitted}, literalScores[:], q.Limit)
	}
	tiers := n.literal(line)
	found := n.matches(intersected(tiers, admitted), literalScores[:], q.Limit)
	if len(found) == 0 {
		found = n.matches(intersected(n.loose(line), admitted), looseScores[:], q.Limit)
	}
	return found
}

// IsName says whether a line is the name of a commune, or the beginning of one where that is enough.
func (t *Table) IsName(line string, isBeginning bool) bool {
	n, name := t.names(), bareName(line)
	if name == "" {
		return false
	}
	found, whole := n.begunBy(name)
	if !isBeginning {
		found = found[:whole]
	}
	return slices.ContainsFunc(found, func(w wordStart) bool { return w.rank&startsName != 0 })
}

// PrepareSearch does now what the first search would else wait for.
func (t *Table) PrepareSearch() { t.names() }

// answerFor is the commune that is the answer where the name of one fits: a former commune's is the one it is part of.
func (t *Table) answerFor(i int) int {
	c := &t.communes[i]
	if c.Kind != Delegated && c.Kind != Associated {
		return i
	}
	if parent, ok := t.at(c.Parent); ok {
		return parent
	}
	return i
}

// rankSet is a set of ranks, a bit each.
type rankSet []uint64

func (n *names) newSet() rankSet { return make(rankSet, (len(n.ranked)+63)/64) }

func (s rankSet) add(rank uint32) { s[rank/64] |= 1 << (rank % 64) }

// and keeps what is in both sets.
func (s rankSet) and(other rankSet) {
	for i := range s {
		s[i] &= other[i]
	}
}

// intersected keeps of each set what is admitted.
func intersected(sets []rankSet, admitted rankSet) []rankSet {
	for _, s := range sets {
		s.and(admitted)
	}
	return sets
}

// admitted is what the filters of a query let through.
func (n *names) admitted(t *Table, q *Query) rankSet {
	s := n.populated(q.MinPopulation, q.MaxPopulation)
	if len(q.Postcodes) > 0 {
		s.and(n.served(t, q.Postcodes))
	}
	if len(q.Departments) > 0 {
		s.and(n.inDepartments(func(code string) bool { return slices.Contains(q.Departments, code) }))
	}
	if len(q.Regions) > 0 {
		s.and(n.inDepartments(func(code string) bool {
			r, _ := RegionOf(code)
			return slices.Contains(q.Regions, r.Code)
		}))
	}
	return s
}

// populated is the set of those with so many people; the rank falls as the population grows.
func (n *names) populated(least, most uint32) rankSet {
	s := n.newSet()
	from := 0
	if most > 0 {
		from = sort.Search(len(n.ranked), func(i int) bool { return n.population[i] <= most })
	}
	to := sort.Search(len(n.ranked), func(i int) bool { return n.population[i] < least })
	for rank := from; rank < to; rank++ {
		if rank%64 == 0 && rank+64 <= to {
			s[rank/64] = ^uint64(0)
			rank += 63
			continue
		}
		s.add(uint32(rank))
	}
	return s
}

// served is the set of those with one of some postcodes.
func (n *names) served(t *Table, postcodes []string) rankSet {
	s := n.newSet()
	for _, code := range postcodes {
		for _, p := range t.postsOf(code) {
			if rank := n.rankOf[p.commune]; rank != unranked {
				s.add(rank)
			}
		}
	}
	return s
}

// inDepartments is the set of those whose department fits.
func (n *names) inDepartments(fits func(code string) bool) rankSet {
	s := n.newSet()
	for code, members := range n.members {
		if !fits(code) {
			continue
		}
		for _, rank := range members {
			s.add(rank)
		}
	}
	return s
}

// literal is a set for each of literalScores.
func (n *names) literal(line string) []rankSet {
	whole, beginning, inside := n.newSet(), n.newSet(), n.newSet()
	found, ended := n.begunBy(line)
	for i, w := range found {
		switch {
		case w.rank&startsName == 0:
			inside.add(w.rank)
		case i < ended:
			whole.add(w.rank &^ startsName)
		default:
			beginning.add(w.rank &^ startsName)
		}
	}
	return []rankSet{whole, beginning, inside}
}

// loose is a set for each of looseScores. One letter may be wrong of four, or two of eight. What is no edit away is left
// out: it was found by its letters, or the filters do not let it through.
func (n *names) loose(line string) []rankSet {
	oneEdit, sameSound, twoEdits := n.newSet(), n.newSet(), n.newSet()
	n.within(line, min(len(line)/4, 2), func(rank uint32, edits int) {
		switch edits {
		case 1:
			oneEdit.add(rank)
		case 2:
			twoEdits.add(rank)
		}
	})
	n.sounding(line, sameSound.add)
	return []rankSet{oneEdit, sameSound, twoEdits}
}

// matches is the communes of some sets, the first set first, each commune once. The sets are used up.
func (n *names) matches(sets []rankSet, scores []float64, limit int) []Match {
	var found []Match
	for i, s := range sets {
		for w := range s {
			for ; s[w] != 0; s[w] &= s[w] - 1 {
				if len(found) >= limit {
					return found
				}
				rank := w*64 + bits.TrailingZeros64(s[w])
				found = append(found, Match{n.ranked[rank], scores[i]})
				for _, later := range sets[i+1:] {
					later[w] &^= s[w] & -s[w]
				}
			}
		}
	}
	return found
}
