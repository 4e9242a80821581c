package mapping

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lieudit/http/sitefile/record"
)

// ID is how a file identifies its sites.
type ID struct {
	Column int      // -1 if there is none
	Hash   []string // fields or columns from whose values an id is made; "*" is all columns
	Reason string   // why there is no Column, if one is named like an id

	IsUnknown bool // the user named a column that the file does not have, which is reported already

	Candidates []int // columns named like ids that are not unique, the best first, if there is no Column

	IsLikeOne bool // Column was chosen because its name is like that of an id and its values are unique, which is reported to the user

	HasFewGaps bool // a few rows have no value in Column, and are left out

	HasDecimalSuffix bool // every value of Column ends in .0, as programs write whole numbers that they took for decimals
}

// hashPrefix begins an --id that names the parts of ids.
const hashPrefix = "hash:"

// chooseID chooses the column of ids: the user's; otherwise the first of a known name that is unique; otherwise the id of a feature; otherwise one
// that is unique and named like an id. Up to one row in a hundred may lack it and is left out. Row numbers are not ids: the next export
// gives them to other sites. Without an id, ID.Column is -1 and the caller offers a hash.
func (s *guesser) chooseID() {
	s.m.ID.Column = -1
	s.findID()
	if c := s.m.ID.Column; c >= 0 && !s.m.IsExport {
		s.m.ID.HasDecimalSuffix = s.profile.Columns[c].hasDecimalSuffix()
		s.m.ID.HasFewGaps = s.profile.Rows-s.profile.Columns[c].Filled <= fewRows(s.profile.Rows)
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
			rank, _ := s.profile.Columns[i].rankFor(ExternalID)
			s.m.ID = ID{Column: i, IsLikeOne: rank >= placeNumberRank && s.profile.Columns[i].Column.Kind != record.FeatureID}
			s.assign(i, ExternalID, ByName)
			return
		}
	}
	s.m.ID.Candidates = candidates[:min(3, len(candidates))]
	if len(candidates) > 0 {
		s.reportUnusableID(candidates[0])
	}
}

// applyGivenID applies the column or the hash that the user named.
func (s *guesser) applyGivenID() {
	if list, isHash := strings.CutPrefix(s.given.ID, hashPrefix); isHash {
		for part := range strings.SplitSeq(list, ",") {
			part = strings.TrimSpace(part)
			if !s.canHash(part) {
				s.addError("fields are "+strings.Join(hashFields(), ", ")+"; columns are "+strings.Join(s.m.Columns, ", "), "--id names %q, which is no field that ids can be made of and no column", part)
			}
			s.m.ID.Hash = append(s.m.ID.Hash, part)
		}
		return
	}
	for i, c := range s.m.Columns {
		if strings.EqualFold(strings.TrimSpace(c), strings.TrimSpace(s.given.ID)) {
			if s.m.ID.Column = i; s.m.Targets[i].Evidence != ByUser { // otherwise it is a field too
				s.assign(i, ExternalID, ByUser)
			}
			return
		}
	}
	s.addError("its columns are "+strings.Join(s.m.Columns, ", "), "the file has no column %q, which --id names", s.given.ID)
	s.m.ID.IsUnknown = true
}

// hashFields are the fields from which ids can be made.
func hashFields() []string {
	return []string{"nom", "ligne_1", "ligne_2", "code_postal", "commune", "code_insee", "lat", "lon", "telephone", "email", "site_web"}
}

// canHash reports whether ids can be made from a field, a column or, with *, all cells.
func (s *guesser) canHash(part string) bool {
	return part == "*" || slices.Contains(hashFields(), part) ||
		slices.ContainsFunc(s.m.Columns, func(c string) bool { return foldKey(c) == foldKey(part) })
}

// idCandidates are the columns that may hold ids, the best name first. The id of a feature stands between known names and those
// that only resemble one.
func (s *guesser) idCandidates() []int {
	ranks := map[int]int{}
	for i, c := range s.profile.Columns {
		switch rank, ok := c.rankFor(ExternalID); {
		case s.isDecided[i] || !ok || c.Filled == 0 || isRowNumber(c.Column.Name):
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
func (c *Stats) isSequence() bool { return c.isCounting && c.Filled > 2 }

// hasDecimalSuffix reports whether every sample is a whole number followed by .0.
func (c *Stats) hasDecimalSuffix() bool {
	return c.share(func(v sample) bool {
		digits, ok := strings.CutSuffix(v.text, ".0")
		return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
	}) == 1
}

// reportUnusableID reports why the best known column of ids cannot be used.
func (s *guesser) reportUnusableID(i int) {
	c := s.profile.Columns[i]
	if missing := s.profile.Rows - c.Filled; missing > 0 {
		s.m.ID.Reason = fmt.Sprintf("the column %q is empty in %s", s.m.Columns[i], describeEmpty(c.firstEmpty, missing))
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

// describeEmpty describes how many cells are empty, and where the first one is.
func describeEmpty(line, count int) string {
	if count == 1 {
		return fmt.Sprintf("line %d", line)
	}
	return fmt.Sprintf("%d rows, the first in line %d", count, line)
}
