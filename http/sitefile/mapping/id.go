package mapping

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ID is what a file calls its sites.
type ID struct {
	Column int      // -1: none
	Hash   []string // fields or columns whose values an id is made of; "*" is all columns
	Reason string   // why this column, where it was guessed; or why none

	Candidates []int // columns called like ids that are not unique, the best first, where there is no Column

	IsNumeric bool // every value of Column ends in .0, as programs write whole numbers that they took for decimals
}

// hashPrefix begins an --id that names what ids are made of.
const hashPrefix = "hash:"

// chooseID chooses the column of ids: the user's; else the first of a known name that is unique; else the id of a feature; else one
// that is unique and called like an id. Row numbers are none. Without any, ID.Column is -1: the caller offers a hash.
func (s *guesser) chooseID() {
	s.m.ID.Column = -1
	s.findID()
	if c := s.m.ID.Column; c >= 0 {
		s.m.ID.IsNumeric = s.profile.Columns[c].isPointZero()
	}
}

func (s *guesser) findID() {
	if s.given.ID != "" {
		s.applyGivenID()
		return
	}
	if i, ok := s.m.Find(ExternalID); ok {
		s.m.ID = ID{Column: i}
		return
	}
	candidates := s.idCandidates()
	for _, i := range candidates {
		if s.profile.Columns[i].isUnique(s.profile.Rows) {
			s.m.ID = ID{Column: i, Reason: s.explainID(i, candidates[0])}
			s.take(i, ExternalID, ByName)
			return
		}
	}
	s.m.ID.Candidates = candidates[:min(3, len(candidates))]
	if len(candidates) > 0 {
		s.reportUnusableID(candidates[0])
	}
}

// applyGivenID takes the column or the hash that the user names.
func (s *guesser) applyGivenID() {
	if list, isHash := strings.CutPrefix(s.given.ID, hashPrefix); isHash {
		for part := range strings.SplitSeq(list, ",") {
			s.m.ID.Hash = append(s.m.ID.Hash, strings.TrimSpace(part))
		}
		return
	}
	for i, c := range s.m.Columns {
		if strings.EqualFold(strings.TrimSpace(c), strings.TrimSpace(s.given.ID)) {
			if s.m.ID.Column = i; s.m.Targets[i].Witness != ByUser { // else it is a field too
				s.take(i, ExternalID, ByUser)
			}
			return
		}
	}
	s.addObstacle("its columns are "+strings.Join(s.m.Columns, ", "), "the file has no column %q, which --id names", s.given.ID)
}

// idCandidates are the columns that may hold ids, the best name first. The id of a feature stands between known names and those
// that are only like an id.
func (s *guesser) idCandidates() []int {
	ranks := map[int]int{}
	for i, c := range s.profile.Columns {
		switch rank, ok := c.rankFor(ExternalID); {
		case s.taken[i] || !ok || c.Filled == 0:
		case rank >= patternRank && c.isSequence():
		default:
			ranks[i] = rank
		}
	}
	list := make([]int, 0, len(ranks))
	for i := range ranks {
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b int) int { return cmp.Or(ranks[a]-ranks[b], a-b) })
	return list
}

// isSequence reports whether a column counts its rows.
func (c *Stats) isSequence() bool {
	previous, isFirst := 0, true
	for _, v := range c.samples[:min(len(c.samples), maxSamples/2)] {
		var n int
		if _, err := fmt.Sscanf(v.text, "%d", &n); err != nil || !isFirst && n != previous+1 {
			return false
		}
		previous, isFirst = n, false
	}
	return len(c.samples) > 2
}

// isPointZero reports whether every sample is a whole number with .0 behind it.
func (c *Stats) isPointZero() bool {
	return c.share(func(v sample) bool {
		digits, ok := strings.CutSuffix(v.text, ".0")
		return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
	}) == 1
}

// explainID says why a column of ids was chosen, where a better known one is not unique.
func (s *guesser) explainID(chosen, best int) string {
	if chosen == best {
		return ""
	}
	return fmt.Sprintf("%q is not different in every row", s.m.Columns[best])
}

// reportUnusableID says why the best known column of ids cannot be used.
func (s *guesser) reportUnusableID(i int) {
	c := s.profile.Columns[i]
	if missing := s.profile.Rows - c.Filled; missing > 0 {
		s.m.ID.Reason = fmt.Sprintf("the column %q is empty in %s", s.m.Columns[i], describeEmpty(c.emptyLines, missing))
		return
	}
	if len(c.repeated) == 0 {
		s.m.ID.Reason = fmt.Sprintf("the column %q has values of more than %d characters", s.m.Columns[i], maxIDLength)
		return
	}
	var examples []string
	for _, r := range c.repeated[:min(3, len(c.repeated))] {
		examples = append(examples, fmt.Sprintf("%q in lines %d and %d", r.Value, r.First, r.Again))
	}
	s.m.ID.Reason = fmt.Sprintf("the column %q has the same value more than once: %s", s.m.Columns[i], strings.Join(examples, ", "))
}

// describeEmpty names the first lines of some empty cells: "line 6", "3 rows, the first in lines 6, 9 and 12".
func describeEmpty(lines []int, count int) string {
	switch {
	case len(lines) == 0:
		return fmt.Sprintf("%d rows", count)
	case count == 1:
		return fmt.Sprintf("line %d", lines[0])
	}
	return fmt.Sprintf("%d rows, the first in line %d", count, lines[0])
}
