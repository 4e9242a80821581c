package commune

import (
	"math/bits"
	"slices"
	"sort"
	"strings"

	"lieudit/queries/address/text"
)

// Query asks for communes. A zero field does not filter.
type Query struct {
	Text        string // a name, or the beginning of a name or of one of its words
	Limit       int    // at least 1
	Postcodes   []string
	Departments []string
	Regions     []string

	MinPopulation uint32
	MaxPopulation uint32 // 0 means no bound
}

// Match is a commune and how well its name fits, from 0 to 1.
type Match struct {
	*Commune
	Score float64
}

// literalScores are for the whole name, its beginning, the beginning of a later word. fuzzyScores apply when no name fits
// so: one edit, the same sound, two edits.
var (
	literalScores = [...]float64{1, 0.9, 0.7}
	fuzzyScores   = [...]float64{0.7, 0.65, 0.6}
)

// Search returns the communes that fit, the best first, equal ones by population and then by code. The name of a former
// commune finds the one it is part of. A name may differ by one edit from four letters on, by two from eight letters
// on. A text without a letter or digit matches every commune.
func (t *Table) Search(q Query) []Match {
	n := t.names()
	admitted := n.filterRanks(t, &q)
	line := normalizeName(q.Text)
	if line == "" {
		return n.collectMatches([]rankSet{admitted}, literalScores[:], q.Limit)
	}
	tiers := n.literalTiers(line)
	found := n.collectMatches(intersectAll(tiers, admitted), literalScores[:], q.Limit)
	if len(found) > 0 {
		return found
	}
	if within, ok := t.withinDivision(q); ok {
		if found = t.Search(within); len(found) > 0 {
			return found
		}
	}
	return n.collectMatches(intersectAll(n.fuzzyTiers(line), admitted), fuzzyScores[:], q.Limit)
}

// withinDivision turns a query whose last words name a department or region, or are the code of a department, into one for the words
// before them there: Mende Lozère, Lyon (69).
func (t *Table) withinDivision(q Query) (within Query, ok bool) {
	words := strings.Fields(text.Fold(q.Text))
	departments, length := t.DivisionsAtEnd(words)
	if last := len(words) - 1; length == 0 && last > 0 {
		if d, ok := Department(strings.ToUpper(words[last])); ok {
			departments, length = []string{d.Code}, 1
		}
	}
	if length == 0 || length == len(words) || text.ClassOf(words[len(words)-length-1]) == text.StopWord {
		return q, false // Pierrefeu-du-Var
	}
	isOf := func(code string) bool { return len(q.Departments) == 0 || slices.Contains(q.Departments, code) }
	q.Text, q.Departments = strings.Join(words[:len(words)-length], " "), slices.DeleteFunc(slices.Clone(departments), func(code string) bool { return !isOf(code) })
	return q, len(q.Departments) > 0
}

// IsName reports whether a line is the name of a commune, or with isBeginning the beginning of one.
func (t *Table) IsName(line string, isBeginning bool) bool {
	n, name := t.names(), normalizeName(line)
	if name == "" {
		return false
	}
	found, whole := n.findPrefix(name)
	if !isBeginning {
		found = found[:whole]
	}
	return slices.ContainsFunc(found, func(w wordStart) bool { return w.rank&startsName != 0 })
}

// PrepareSearch builds the index of names now instead of in the first search.
func (t *Table) PrepareSearch() { t.names() }

// currentCommune is the index of the commune that answers for the one at i: a former commune's is the one it is part
// of.
func (t *Table) currentCommune(i int) int {
	c := &t.communes[i]
	if c.Kind != Delegated && c.Kind != Associated {
		return i
	}
	if parent, ok := t.indexOf(c.Parent); ok {
		return parent
	}
	return i
}

// rankSet is a bit set of ranks.
type rankSet []uint64

func (n *nameIndex) newRankSet() rankSet { return make(rankSet, (len(n.ranked)+63)/64) }

func (s rankSet) add(rank uint32) { s[rank/64] |= 1 << (rank % 64) }

// intersect removes what is not in the other set.
func (s rankSet) intersect(other rankSet) {
	for i := range s {
		s[i] &= other[i]
	}
}

// intersectAll intersects each set with another one.
func intersectAll(sets []rankSet, admitted rankSet) []rankSet {
	for _, s := range sets {
		s.intersect(admitted)
	}
	return sets
}

// filterRanks is the set of communes that pass the filters of a query.
func (n *nameIndex) filterRanks(t *Table, q *Query) rankSet {
	s := n.withPopulation(q.MinPopulation, q.MaxPopulation)
	if len(q.Postcodes) > 0 {
		s.intersect(n.withPostcodes(t, q.Postcodes))
	}
	if len(q.Departments) > 0 {
		s.intersect(n.inDepartments(func(code string) bool { return slices.Contains(q.Departments, code) }))
	}
	if len(q.Regions) > 0 {
		s.intersect(n.inDepartments(func(code string) bool {
			r, _ := RegionOf(code)
			return slices.Contains(q.Regions, r.Code)
		}))
	}
	return s
}

// withPopulation is the set of communes within bounds of population. Ranks fall as the population grows, so it is a
// range.
func (n *nameIndex) withPopulation(least, most uint32) rankSet {
	s := n.newRankSet()
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

// withPostcodes is the set of communes with one of the postcodes.
func (n *nameIndex) withPostcodes(t *Table, postcodes []string) rankSet {
	s := n.newRankSet()
	for _, code := range postcodes {
		for _, p := range t.findPostcode(code) {
			if rank := n.rankOf[p.commune]; rank != unranked {
				s.add(rank)
			}
		}
	}
	return s
}

// inDepartments is the set of communes in the departments that fit.
func (n *nameIndex) inDepartments(fits func(code string) bool) rankSet {
	s := n.newRankSet()
	for code, members := range n.byDepartment {
		if !fits(code) {
			continue
		}
		for _, rank := range members {
			s.add(rank)
		}
	}
	return s
}

// literalTiers has a set for each of literalScores.
func (n *nameIndex) literalTiers(line string) []rankSet {
	whole, beginning, inside := n.newRankSet(), n.newRankSet(), n.newRankSet()
	found, ended := n.findPrefix(line)
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

// fuzzyTiers has a set for each of fuzzyScores: one edit allowed for every four letters, two at most. Names without an
// edit are left out: literalTiers found them, or the filters exclude them.
func (n *nameIndex) fuzzyTiers(line string) []rankSet {
	oneEdit, sameSound, twoEdits := n.newRankSet(), n.newRankSet(), n.newRankSet()
	n.scanWithin(line, min(len(line)/4, 2), func(rank uint32, edits int) {
		switch edits {
		case 1:
			oneEdit.add(rank)
		case 2:
			twoEdits.add(rank)
		}
	})
	n.scanSounding(line, sameSound.add)
	return []rankSet{oneEdit, sameSound, twoEdits}
}

// collectMatches returns the communes of the sets, the first set first, each commune once. It empties the sets.
func (n *nameIndex) collectMatches(sets []rankSet, scores []float64, limit int) []Match {
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
