package mapping

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"lieudit/http/sitefile/record"
)

// Given is what the user says about the columns of a file. It overrides every guess.
type Given struct {
	Columns map[string]Target // by ColumnKeys; without regard to case
	Ignore  []string          // patterns of names of columns that are not stored
	ID      string            // a column, or hash: and fields or columns, separated by commas
	CRS     string            // the reference system of x and y, and of a geometry that names none
	IsSaved bool              // Columns are the mapping of an earlier file: this one may lack those without a field
}

// guesser holds the state of one guess: which fields are assigned to which columns.
type guesser struct {
	profile   *Profile
	given     Given
	m         Mapping
	isDecided []bool // by column
	errs      []Error
}

// Guess finds the targets of the columns of a profile. An error does not end it, so that all errors are reported at once.
func Guess(p *Profile, g Given) (Mapping, []Error) {
	s := &guesser{profile: p, given: g, isDecided: make([]bool, len(p.Columns))}
	s.m.Targets = make([]Target, len(p.Columns))
	for _, c := range p.Columns {
		s.m.Columns = append(s.m.Columns, c.Column.Name)
		s.m.IsQuoted = append(s.m.IsQuoted, c.quoted > 0 && c.quoted == c.Filled)
	}
	s.applyGiven()
	if s.m.IsExport = s.isExport(); s.m.IsExport {
		s.mapExport()
	} else {
		s.leaveOutEmpty()
		s.applyRegister()
		s.matchByName(0, patternRank)
		s.matchByName(patternRank, 1<<30)
		s.decideBareNumber()
		s.matchByContent()
	}
	s.choosePositions()
	s.chooseID()
	if !s.m.IsExport {
		s.addFallbacks()
	}
	s.nameProperties()
	s.findMisnamed()
	return s.m, s.errs
}

func (s *guesser) addError(advice, format string, args ...any) {
	s.errs = append(s.errs, Error{fmt.Sprintf(format, args...), advice})
}

// assign gives a column to a field.
func (s *guesser) assign(column int, f Field, by Evidence) {
	s.m.Targets[column], s.isDecided[column] = Target{Field: f, Evidence: by}, true
}

// leaveOut marks a column as not stored, with the reason.
func (s *guesser) leaveOut(column int, reason string) {
	s.m.Targets[column], s.isDecided[column] = Target{LeftOut: reason}, true
}

// unassign frees a column, because another one has its field.
func (s *guesser) unassign(column int) { s.m.Targets[column], s.isDecided[column] = Target{}, false }

// applyGiven assigns the columns that the user named. A field of a column that the file does not have is an error, and so are two
// columns for one field.
func (s *guesser) applyGiven() {
	given := make(map[string]Target, len(s.given.Columns))
	for key, t := range s.given.Columns {
		given[foldKey(key)] = t
	}
	keys := s.m.ColumnKeys()
	for i, c := range s.m.Columns {
		key := foldKey(keys[i])
		t, isGiven := given[key]
		delete(given, key)
		switch {
		case slices.ContainsFunc(s.given.Ignore, func(p string) bool { return MatchGlob(p, c) }):
			s.leaveOut(i, "ignored")
		case isGiven:
			s.applyTarget(i, t)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if t := given[key]; t.Field != "" || !s.given.IsSaved {
			s.addError("its columns are "+strings.Join(s.m.Columns, ", "), "the file has no column %q, which should hold %s", key, t)
		}
	}
	for _, pattern := range s.given.Ignore {
		if !slices.ContainsFunc(s.m.Columns, func(c string) bool { return MatchGlob(pattern, c) }) && !s.given.IsSaved {
			s.addError("its columns are "+strings.Join(s.m.Columns, ", "), "no column of the file is called like %q, which --ignore names", pattern)
		}
	}
}

// severalColumns are the fields that several columns may have.
var severalColumns = []Field{Line2, Pair, Shape}

func (s *guesser) applyTarget(column int, t Target) {
	if other, isTaken := s.m.Find(t.Field); t.Field != "" && isTaken && !slices.Contains(severalColumns, t.Field) {
		s.addError("say proprietes of one of them", "the columns %q and %q should both hold %s", s.m.Columns[other], s.m.Columns[column], t.Field)
		return
	}
	if t == (Target{}) && foldKey(s.m.Columns[column]) == string(Properties) {
		t.Field = Properties // the column of an export
	}
	t.Property, t.Evidence = "", ByUser // nameProperties gives the key
	s.m.Targets[column], s.isDecided[column] = t, true
}

func foldKey(key string) string { return strings.ToLower(strings.TrimSpace(key)) }

// isExport reports whether lieudit exported the file: it has the members of a site that only the service sets, or the columns that
// only an export has. Case does not matter.
func (s *guesser) isExport() bool {
	has := func(name string) bool {
		return slices.ContainsFunc(s.m.Columns, func(c string) bool { return foldKey(c) == name })
	}
	isResource := has("referentiel") && has("version") && has("actif")
	if isResource && !has("external_id") {
		s.addError("export again, or name a column with --id", "the file is an export of lieudit without the column external_id, what each place is called")
	}
	return has("external_id") && (has("position_source") || isResource || has("ligne_1") && has("id_ban"))
}

// mapExport maps the columns of an exported file by the exact names of their members. Others are properties that someone added, except for
// the numbers of rows that programs add.
func (s *guesser) mapExport() {
	for i, c := range s.profile.Columns {
		name := strings.TrimPrefix(foldKey(c.Column.Name), "adresse.")
		s.m.IsFlatExport = s.m.IsFlatExport || foldKey(c.Column.Name) == string(Line1)
		switch {
		case s.isDecided[i]:
		case c.Column.Kind == record.Geometry:
			s.assign(i, Shape, ByName)
		case name == string(PositionSource), name == string(Address):
			s.assign(i, Field(name), ByName)
		case slices.Contains(readOnlyMembers, name):
			s.leaveOut(i, "set by the service")
		case isSiteField(Field(name)):
			s.assign(i, Field(name), ByName)
		case isRowNumber(name) || name == "" && c.isSequence():
			s.leaveOut(i, "numbers of rows")
		}
	}
}

func isSiteField(f Field) bool {
	return slices.Contains([]Field{ExternalID, Name, Line1, Line2, PostalCode, City, InseeCode, Country, IDBan, Lat, Lon, Hours, Phone, Email, Website, Tags, Properties}, f)
}

// leaveOutEmpty leaves out columns without a value, and those that a geocoder wrote.
func (s *guesser) leaveOutEmpty() {
	for i, c := range s.profile.Columns {
		switch {
		case s.isDecided[i]:
		case c.Filled == 0:
			s.leaveOut(i, "empty")
		case c.Column.Name == "" && c.isSequence():
			s.leaveOut(i, "numbers of rows")
		case slices.ContainsFunc(geocoderPrefixes, func(p string) bool { return strings.HasPrefix(strings.ToLower(c.Column.Name), p) }):
			s.leaveOut(i, "written by a geocoder")
		}
	}
}

// fieldOrder is the order in which fields choose their columns. Fields that few columns fit come first.
var fieldOrder = []Field{
	IDBan, Lat, Lon, Pair, Shape, X, Y, Email, HouseNumber, Suffix, StreetType, PostalTown, PostalCode, InseeCode, City, Country, Line2, Line1, StreetName,
	Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday, Hours, Phone, Website, Tags, Properties, Active, bareNumber, Name,
}

// matchByName gives each field the best of the columns that are named after it, with a rank within [low, high), and whose content
// agrees. If there are several, the one that is fuller by a twentieth of the rows wins, otherwise the one with the better name.
func (s *guesser) matchByName(low, high int) {
	for _, field := range fieldOrder {
		best, bestRank := -1, 0
		for i, c := range s.profile.Columns {
			rank, ok := c.rankFor(field)
			isWeak := rank >= patternRank
			if s.isDecided[i] || !ok || rank < low || rank >= high || !fits(field, c, isWeak) || isWeak && c.hasExactField() {
				continue
			}
			if field == Line2 {
				s.assign(i, Line2, ByName)
				continue
			}
			if best < 0 || s.isBetter(c.Filled, rank, s.profile.Columns[best].Filled, bestRank) {
				best, bestRank = i, rank
			}
		}
		s.assignIfFuller(field, best)
	}
}

// fallbackFields are the fields that a row may have in another column than most rows: contact:city instead of addr:city.
var fallbackFields = []Field{HouseNumber, StreetName, Line1, PostalCode, City, Phone, Email, Website, Hours}

// addFallbacks marks the properties that are named exactly after a field, and whose content agrees: a row without the field's own
// column takes it from there. A column of the very same name is about something else: the operator of the site.
func (s *guesser) addFallbacks() {
	found := map[Field]int{}
	for _, f := range fallbackFields {
		if own, ok := s.m.Find(f); ok {
			found[f] = own
		}
	}
	for i, c := range s.profile.Columns {
		for _, f := range fallbackFields {
			rank, ok := c.rankFor(f)
			if own, isFound := found[f]; !s.isDecided[i] && isFound && ok && rank < patternRank && s.m.Columns[own] != s.m.Columns[i] && fits(f, c, false) {
				s.m.Targets[i].Fallback = f
				break
			}
		}
	}
}

// expectedFields are the fields whose columns people expect an import to store.
var expectedFields = []Field{Name, Line1, PostalCode, City, InseeCode, Lat, Lon, Phone, Email, Website, Hours}

// findMisnamed finds the columns that are named exactly after a field but do not hold it. If another column holds the field, nothing is
// missing.
func (s *guesser) findMisnamed() {
	for _, f := range expectedFields {
		_, isFound := s.m.Find(f)
		_, isParted := s.m.Find(PostalTown)
		if isFound || s.m.IsExport || isParted && (f == PostalCode || f == City) || len(s.m.Positions) > 0 && (f == Lat || f == Lon) {
			continue
		}
		for i, c := range s.profile.Columns {
			if rank, ok := c.rankFor(f); ok && rank < variantPenalty && s.m.Targets[i].Property != "" && s.m.Targets[i].Evidence != ByUser && !fits(f, c, false) {
				s.m.Misnamed = append(s.m.Misnamed, Misnamed{i, f})
			}
		}
	}
}

// hasExactField reports whether a column is named exactly after a field, and its content agrees. Another column may have that
// field already; this one holds no other.
func (c *Stats) hasExactField() bool {
	return slices.ContainsFunc(c.matches, func(m nameMatch) bool {
		return m.rank < patternRank && m.field != ExternalID && fits(m.field, c, false)
	})
}

// isBetter compares two columns of one field by how full they are, then by their names.
func (s *guesser) isBetter(filled, rank, otherFilled, otherRank int) bool {
	if margin := s.profile.Rows / 20; filled > otherFilled+margin || otherFilled > filled+margin {
		return filled > otherFilled
	}
	return rank < otherRank
}

// assignIfFuller gives a column to a field, unless a column with a better name that is at least half as full has it.
func (s *guesser) assignIfFuller(f Field, column int) {
	if column < 0 {
		return
	}
	if current, ok := s.m.Find(f); ok {
		if s.m.Targets[current].Evidence == ByUser || s.profile.Columns[current].Filled*2 >= s.profile.Columns[column].Filled {
			return
		}
		s.unassign(current)
	}
	s.assign(column, f, ByName)
}

// decideBareNumber makes a column called only "number" the house number if there is a street whose lines rarely begin with one, unless the
// numbers rise from row to row, as row numbers do, and no suffix or type of street stands next to them.
func (s *guesser) decideBareNumber() {
	column, ok := s.m.Find(bareNumber)
	if !ok {
		return
	}
	s.unassign(column)
	if _, hasNumber := s.m.Find(HouseNumber); hasNumber {
		return
	}
	c := s.profile.Columns[column]
	if rank, ok := c.rankFor(bareNumber); !ok || rank >= variantPenalty {
		return // the number of an establishment
	}
	street, hasStreet := s.m.Find(StreetName)
	if !hasStreet {
		street, hasStreet = s.m.Find(Line1)
	}
	_, hasSuffix := s.m.Find(Suffix)
	_, hasType := s.m.Find(StreetType)
	isOfRows := c.isRising && c.Filled > 2 && !hasSuffix && !hasType
	if hasStreet && !isOfRows && s.profile.Columns[street].share(isHouseNumberBefore) < 0.3 {
		s.assign(column, HouseNumber, ByName)
	}
}

// nameProperties gives every unassigned column a key in proprietes: its own name. A column without a name, or with one that
// another has, gets a number.
func (s *guesser) nameProperties() {
	used, next := map[string]bool{}, map[string]int{}
	for i, c := range s.m.Columns {
		t := &s.m.Targets[i]
		if t.Field != "" || t.LeftOut != "" {
			continue
		}
		name := strings.TrimSpace(c)
		if name == "" {
			name = fmt.Sprintf("colonne_%d", i+1)
		}
		t.Property = name
		for used[t.Property] {
			next[name] = max(next[name], 1) + 1
			t.Property = fmt.Sprintf("%s_%d", name, next[name])
		}
		used[t.Property] = true
	}
}
