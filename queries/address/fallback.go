package address

import (
	"slices"
	"strings"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/parse"
	"lieudit/queries/address/search"
	"lieudit/queries/address/text"
)

// typedParts are the parts, as typed, of an address of which only the commune was found.
type typedParts struct {
	line, postcode, city, complement string

	isStrange bool // the city is not a name of a commune
}

// fallback finds the commune that answers if the address is missing.
type fallback struct{ *Engine }

// match returns the typed commune if the address is missing: the commune of a code; the one that the
// search recognised; one that only the table knows by name; the only one that a postcode or a filter names. It has no
// answer if several communes were typed.
func (e fallback) match(query *Query, q *parse.Question, found *search.Result) (Match, bool) {
	if len(query.Types) > 0 && !slices.Contains(query.Types, Municipality) {
		return Match{}, false
	}
	code := e.codeOf(query, q)
	r, typed, ok := e.coded(code, q)
	if !ok && code == "" {
		r, typed, ok = e.recognized(query, found)
	}
	if !ok && code == "" {
		r, typed, ok = e.namedInTable(query, q)
	}
	if !ok {
		r, typed, ok = e.onlyCommune(query, q)
	}
	if !ok || !e.AcceptsPostcode(typed.postcode, &r) || !e.setPostcodeFor(&r, query, typed.postcode) || !e.passes(query.Filter, &r) {
		return Match{}, false
	}
	return e.communeMatch(r, &typed), true
}

// coded is the commune of a typed code, which outweighs the name next to it.
func (e fallback) coded(code string, q *parse.Question) (r Record, typed typedParts, ok bool) {
	if code == "" {
		return r, typed, false
	}
	r, ok = e.viewCommune(code)
	typed = partsOf(q, q.PlaceOnly)
	if typed.postcode == code {
		typed.postcode = ""
	}
	if typed.city == "" {
		typed.city = code
	}
	return r, typed, ok
}

// partsOf are the parts of a question of which some words name the commune.
func partsOf(q *parse.Question, city parse.Mask) typedParts {
	typed := typedParts{line: q.Typed(q.Words() &^ city &^ q.Complement), city: q.Typed(city), complement: q.Typed(q.Complement | q.Postal)}
	if q.Postcode.Code != 0 {
		typed.postcode = q.Typed(q.Postcode.At)
	}
	return typed
}

// recognized is the commune that the search recognised by its name.
func (e fallback) recognized(query *Query, found *search.Result) (r Record, typed typedParts, ok bool) {
	c, ok := found.NamedCommune()
	if !ok {
		return r, typed, false
	}
	x := found.Explain(&c)
	if x.City == "" || x.Postcode == "" && len(e.namesakes(x.City, query.Filter)) > 1 {
		return r, typed, false
	}
	return e.record(&c), typedParts{line: x.Street, postcode: x.Postcode, city: x.City, complement: x.Complement}, true
}

// namedInTable is the commune of which the vintage has no row and that the words name where communes stand: in their field,
// after the postcode, or at the end of the line.
func (e fallback) namedInTable(query *Query, q *parse.Question) (r Record, typed typedParts, ok bool) {
	f := query.Filter
	if q.Postcode.Code != 0 {
		f.Postcodes = []string{search.PostcodeText(q.Postcode.Code)}
	}
	behind := departmentAt(q)
	if behind != 0 && len(f.Departments) == 0 {
		f.Departments = []string{q.Typed(behind)}
	}
	for _, at := range placeSpans(q, behind) {
		if all := e.namesakes(q.Typed(at), f); len(all) == 1 {
			r, ok = e.viewCommune(all[0].Code)
			typed = partsOf(q, at|behind)
			typed.city = q.Typed(at)
			return r, typed, ok
		}
	}
	return r, typed, false
}

// departmentAt is the code of a department that ends the line after the name of a commune: Lyon (69).
func departmentAt(q *parse.Question) parse.Mask {
	words := q.Words() &^ q.Complement
	if words.Count() < 2 || q.Postcode.Code != 0 {
		return 0
	}
	last := words.Last()
	if _, ok := commune.Department(q.Terms[last].Typed); !ok || !q.Terms[last].Digits {
		return 0
	}
	return parse.Bit(last)
}

// placeSpans are the runs of words that may name a commune before its department, the longest first. The only word that could
// name a street is not one of them: route de Strasbourg.
func placeSpans(q *parse.Question, department parse.Mask) (spans []parse.Mask) {
	if q.PlaceOnly != 0 {
		for to := q.PlaceOnly.Last() + 1; to > q.PlaceOnly.First(); to-- {
			spans = append(spans, q.PlaceOnly&parse.Span(0, to))
		}
		return spans
	}
	words := q.Words() &^ q.Complement &^ q.StreetOnly &^ q.Reps &^ department
	for from := 0; words != 0 && from <= words.Last(); from++ {
		span, before := parse.Span(from, words.Last()+1), words&parse.Span(0, from)
		if words.Has(from) && span&^words&^q.Postcode.At == 0 && (!q.HasStreetType(before) || q.Distinctive(before) != 0) {
			spans = append(spans, span&words)
		}
	}
	return spans
}

// mostNamesakes bounds the names that are read: words with which more names begin do not identify a commune.
const mostNamesakes = 64

// namesakes are the communes within a filter that have a name or, if there are none, whose name begins with it.
func (e fallback) namesakes(name string, f Filter) (all []commune.Match) {
	found := e.table.Search(commune.Query{Text: name, Limit: mostNamesakes, Postcodes: f.Postcodes, Departments: f.Departments})
	for _, m := range found {
		isWhole := m.Score == 1
		if len(all) > 0 && all[0].Score == 1 && !isWhole {
			break
		}
		if isWhole || strings.HasPrefix(text.Fold(m.Name), text.Fold(name)+" ") {
			all = append(all, m)
		}
	}
	return all
}

// onlyCommune is the only commune with the typed postcode, or the only one that the filter names. If the words after the postcode
// are the name of a commune, another one is meant.
func (e fallback) onlyCommune(query *Query, q *parse.Question) (r Record, typed typedParts, ok bool) {
	typed = partsOf(q, q.PlaceOnly)
	typed.isStrange = typed.city != ""
	if typed.isStrange && len(e.namesakes(typed.city, Filter{})) > 0 {
		return r, typed, false
	}
	code := e.onlyServed(query, typed.postcode)
	if len(query.CityCodes) == 1 {
		code = query.CityCodes[0]
	}
	if code != "" {
		r, ok = e.viewCommune(code)
	}
	return r, typed, ok
}

// onlyServed is the code of the only commune that the typed postcode serves, otherwise that of the filter; empty if there are
// several. A city has the postcodes of its arrondissements.
func (e fallback) onlyServed(query *Query, postcode string) (code string) {
	if postcode == "" && len(query.Postcodes) == 1 {
		postcode = query.Postcodes[0]
	}
	for _, c := range e.table.ByPostcode(postcode) {
		switch {
		case code == "" || code == c.Parent:
			code = c.Code
		case c.Code != code && c.Parent != code:
			return ""
		}
	}
	return code
}

// setPostcodeFor gives a commune's record the typed postcode or the one of the filter, if the commune has it. It returns
// false if the filter asks for others.
func (e fallback) setPostcodeFor(r *Record, query *Query, typed string) bool {
	for _, code := range append([]string{typed}, query.Postcodes...) {
		if e.serves(code, r.CityCode) && (len(query.Postcodes) == 0 || slices.Contains(query.Postcodes, code)) {
			r.Postcode, r.CityLine = code, cityLine(code, r.City)
			return true
		}
	}
	return len(query.Postcodes) == 0 || slices.Contains(query.Postcodes, r.Postcode)
}

// passes reports whether a filter admits a commune.
func (e fallback) passes(f Filter, r *Record) bool {
	if len(f.Departments) > 0 && !slices.Contains(f.Departments, r.Department.Code) {
		return false
	}
	known, _ := e.table.ByCode(r.CityCode)
	isOf := func(code string) bool { return code == r.CityCode || known != nil && code == known.Parent }
	return len(f.CityCodes) == 0 || slices.ContainsFunc(f.CityCodes, isOf)
}

// communeMatch is the match of a commune that answers for an address.
func (e fallback) communeMatch(r Record, typed *typedParts) Match {
	m := Match{Record: r, Verdict: CommuneOnly, Precision: Municipality}
	number, rep, street := splitNumber(typed.line)
	c := &m.Components
	c.Number, c.Rep, c.Street = component(number, "", false), component(rep, "", false), component(street, "", false)
	c.Postcode = component(typed.postcode, r.Postcode, typed.postcode == r.Postcode)
	c.City = e.cityComponent(typed, &r)
	c.Complement = complement(typed.complement, &r)
	m.NumberTyped, m.Score = number != "", c.confirmedShare()
	if m.Score == 1 {
		m.Verdict = Exact
	}
	m.IsResolved = m.Verdict == Exact && m.isCommuneAlone()
	m.Reason = reasoner(e).reasonOfCommune(typed, &m)
	return m
}

// cityComponent compares the typed commune with the one that answers.
func (e fallback) cityComponent(typed *typedParts, r *Record) Component {
	known, _ := e.table.ByCode(r.CityCode)
	isNamed := func(m commune.Match) bool { return m.Code == r.CityCode || known != nil && m.Code == known.Parent }
	isSame := typed.city == r.CityCode || text.Fold(typed.city) == text.Fold(r.City) || slices.ContainsFunc(e.namesakes(typed.city, Filter{}), isNamed)
	c := component(typed.city, r.City, isSame)
	if typed.isStrange {
		c.Status = Unconfirmed
	}
	return c
}

// splitNumber splits a street into the house number next to it, the repetition index and the rest.
func splitNumber(line string) (number, rep, street string) {
	q := parse.Line(line, false)
	var name parse.Mask
	for i := range q.Terms {
		if !q.Terms[i].Digits && !q.Reps.Has(i) && !q.IsLink(i) {
			name |= parse.Bit(i)
		}
	}
	n := q.HouseNumber(name, name)
	return q.Typed(n.At &^ q.Reps), q.Typed(n.At & q.Reps), q.Typed(q.All &^ n.At)
}

// confirmedShare is the confirmed share of the typed parts, with the weights of a search.
func (c *Components) confirmedShare() float64 {
	var confirmed, typed float64
	for _, part := range [...]struct {
		Component
		share float64
	}{{c.Street, search.StreetShare}, {c.City, search.CityShare}, {c.Postcode, search.PostcodeShare}, {c.Number, search.NumberShare}} {
		if part.Typed == "" {
			continue
		}
		typed += part.share
		if part.Status == Confirmed {
			confirmed += part.share
		}
	}
	if typed == 0 {
		return 0
	}
	return float64(int(confirmed/typed*10000)) / 10000
}
