package geocode

import (
	"slices"
	"strings"

	"lieudit/queries/address"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/schemas/locations"
)

// reading holds the ways to read the address of a site, the likeliest first, and every code in its fields.
type reading struct {
	engine      *address.Engine
	queries     []address.Query
	postcodes   []string
	codes       []string // INSEE codes of communes
	departments []string
}

// readSite reads the address of a site. A site abroad has no queries.
func readSite(e *address.Engine, a *locations.SiteAddress) *reading {
	s := &reading{engine: e}
	if a == nil {
		return s
	}
	department, isFrench := departmentOf(a.Country)
	if !isFrench {
		return s
	}
	s.bindDepartment(department)
	place := s.readPlace(a)
	lines := slices.DeleteFunc([]string{a.Line1, a.Line2}, func(line string) bool {
		return strings.TrimSpace(line) == "" || s.readTown(line, &place)
	})
	for _, line := range lines {
		s.readLine(line, place)
	}
	for _, line := range lines {
		s.readWithoutTown(line, place)
	}
	if len(lines) == 0 {
		s.queries = append(s.queries, place)
	}
	return s
}

// readPlace reads the fields that say where the street is.
func (s *reading) readPlace(a *locations.SiteAddress) (place address.Query) {
	q := parse.Line(a.City, false)
	before, after := q.AroundPostcode()
	place.Commune = strings.TrimSpace(before + " " + after)
	place.CityCode = strings.ToUpper(strings.TrimSpace(a.InseeCode))
	if place.CityCode != "" {
		s.codes = append(s.codes, place.CityCode)
	}
	s.bind(digitsOf(a.PostalCode), &place)
	s.bind(codeOf(q), &place)
	return place
}

// bind takes a typed postcode, INSEE code or department for one that binds. The first postcode and the first code are also
// looked for.
func (s *reading) bind(code string, place *address.Query) {
	switch _, isDepartment := commune.Department(code); {
	case isDepartment:
		s.bindDepartment(code)
		place.Departments = []string{code}
	case len(code) != 5:
	case s.engine.IsCodeOf(code, townOf(place.Commune)):
		s.codes = append(s.codes, code)
		if place.CityCode == "" {
			place.CityCode = code
		}
	default:
		s.postcodes = append(s.postcodes, code)
		if place.Postcode == "" {
			place.Postcode = code
		}
	}
}

// bindDepartment restricts matches to a department.
func (s *reading) bindDepartment(code string) {
	if code != "" {
		s.departments = append(s.departments, code)
	}
}

// readTown reads a line that holds nothing but the commune of the address, or a postcode and a commune, and reports whether the line
// is one.
func (s *reading) readTown(line string, place *address.Query) bool {
	q := parse.Line(line, false)
	before, after := q.AroundPostcode()
	town := townOf(before + " " + after)
	isNamed := town != "" && town == townOf(place.Commune)
	isTown := q.Postcode.Code != 0 && strings.TrimSpace(before) == "" && (town == "" || s.engine.IsCommune(town))
	if !isNamed && !isTown {
		return false
	}
	if place.Commune == "" {
		place.Commune = after
	}
	s.bind(codeOf(q), place)
	return true
}

// readLine reads a line as the street. If no field names a commune or a code, the search reads the line as a whole.
func (s *reading) readLine(line string, place address.Query) {
	q := parse.Line(line, false)
	hasPlace := place.Postcode != "" || place.Commune != "" || place.CityCode != ""
	switch {
	case q.Postcode.Code == 0 || hasPlace && isHouseNumber(q):
		place.Street = line
	case hasPlace:
		place.Street = s.cutPlace(q, &place)
	default:
		place.Street = line
		_, town := q.AroundPostcode()
		s.bind(codeOf(q), &address.Query{Commune: town})
	}
	s.queries = append(s.queries, place)
}

// cutPlace returns a line without its postcode and the commune after it, which is used if the commune field is empty. Text after a
// postcode that is not a commune may be a building.
func (s *reading) cutPlace(q *parse.Question, place *address.Query) (street string) {
	before, after := q.AroundPostcode()
	switch town := townOf(after); {
	case town == "" || town == townOf(place.Commune):
	case !s.engine.IsCommune(town):
		before += ", " + after
	case place.Commune == "":
		place.Commune = after
	}
	s.bind(codeOf(q), place)
	return trimSigns(before)
}

// readWithoutTown reads a line without the commune with which it ends: 3 rue Haute Mende. After a linking word the commune is part of
// the street: place de Mende.
func (s *reading) readWithoutTown(line string, place address.Query) {
	town, words := townOf(place.Commune), strings.Fields(line)
	for n := 1; n < len(words) && town != ""; n++ {
		before := text.Terms(words[n-1])
		if townOf(strings.Join(words[n:], " ")) != town || len(before) == 0 || text.ClassOf(before[len(before)-1].Text) == text.StopWord {
			continue
		}
		place.Street = trimSigns(strings.Join(words[:n], " "))
		s.queries = append(s.queries, place)
		return
	}
}

// accepts reports whether a match for the address may be stored. Beyond the rule for all texts, it must satisfy every code. Without a
// code it must lie in a commune whose name was typed exactly and is unambiguous. A street or a lieu-dit must be named word for word,
// because no number confirms that a merely similar one is meant.
func (s *reading) accepts(m *address.Match) bool {
	c := &m.Components
	isCityNamed := c.City.Typed != "" && c.City.Status == address.Confirmed
	hasPlace := len(s.postcodes)+len(s.codes) > 0 || c.Postcode.Typed != "" || isCityNamed && !s.engine.IsAmbiguous(c.City.Typed, &m.Record)
	isNamed := true
	switch m.Type {
	case address.StreetType, address.LocalityType:
		isNamed = isSameStreet(c.Street)
	case address.Municipality:
		isNamed = c.City.Typed == "" || isCityNamed
	}
	return hasPlace && isNamed && s.matchesCodes(&m.Record)
}

// isSameStreet reports whether a street or a lieu-dit has the name that was typed, word for word and in that order: Rue du Champ Grand
// is not Grandchamp. Other words may precede the kind of street: bar place du 14 Juillet.
func isSameStreet(c address.Component) bool {
	kept := keyOf(text.Terms(c.Kept))
	typed := text.Terms(c.Typed)
	for i := range typed {
		if isStart := i == 0 || text.ClassOf(typed[i].Text) == text.StreetType; isStart && slices.Equal(keyOf(typed[i:]), kept) {
			return true
		}
	}
	return false
}

// keyOf returns the words of a street's name without linking words and articles.
func keyOf(terms []text.Term) (words []string) {
	for _, t := range terms {
		if text.ClassOf(t.Text) != text.StopWord {
			words = append(words, t.Text)
		}
	}
	return words
}

// matchesPostcodes reports whether a record agrees with every postcode.
func (s *reading) matchesPostcodes(r *address.Record) bool {
	for _, code := range s.postcodes {
		if !s.engine.AcceptsPostcode(code, r) {
			return false
		}
	}
	return true
}

// matchesCodes reports whether a record agrees with every code.
func (s *reading) matchesCodes(r *address.Record) bool {
	if !s.matchesPostcodes(r) {
		return false
	}
	for _, code := range s.codes {
		if !s.engine.AdmitsCode(code, r) {
			return false
		}
	}
	for _, code := range s.departments {
		if code != r.Department.Code {
			return false
		}
	}
	return true
}

// isHouseNumber reports whether the five digits of a line are a house number: 10250 route de Mende.
func isHouseNumber(q *parse.Question) bool {
	next := q.Postcode.At.Last() + 1
	return q.Postcode.At.Has(0) && next < len(q.Terms) && q.IsStreetType(next)
}

// trimSigns removes blanks and punctuation from both ends of a text.
func trimSigns(s string) string { return strings.Trim(s, " ,;-–(") }

// townOf returns the name of a commune for comparisons: without CEDEX, country and accents.
func townOf(name string) string {
	q := parse.Line(name, false)
	return q.Typed(q.Words())
}
