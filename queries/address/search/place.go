package search

import (
	"cmp"
	"slices"
	"strings"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

const (
	maxPlaces    = 64 // named places in which a question is searched for
	fewCommunes  = 24 // communes of a filter that are all searched if there are no more
	maxNamesakes = 40 // places of one name that are searched
	maxShortened = 12 // places that the words at the end of a line may shorten: Boissy for Boissy-Saint-Léger

	maxPrefixNames = 24   // communes whose name begins as typed that are searched
	maxScanned     = 1000 // names that are read to find the most important of them

	untypedWordCost = 5  // taken from the likeness of a name for each word that was not typed
	confirmedSim    = 98 // least likeness at which a name confirms the place
	boundSim        = 70 // least likeness at which a name binds the address to the place
)

// place is a commune that a question may be about, and why.
type place struct {
	commune      uint32
	name         uint32     // the place whose name was typed, or vintage.None
	at           parse.Mask // the terms that name it and its department, region or district
	departmentAt parse.Mask // of these, the terms that name its department, its region, or the chief town of its district
	sim          int32      // how well they do, in hundredths; 0 if only the postcode points to it
	hasTypedCode bool       // the typed postcode is one of the commune's, or its INSEE code
	isLate       bool       // the name stands where a commune is expected: after the postcode or at the end

	isContradicted bool // another department follows in parentheses
}

// rank orders places by the evidence for them.
func (p place) rank() int32 {
	r := p.sim * int32(2+min(p.at.Count(), 3))
	if p.hasTypedCode {
		r += 300
	}
	if p.isLate {
		r += 120
	}
	return r
}

// recognizer finds the communes that a question may mean.
type recognizer struct{ *query }

// recognition is the communes that the words of a question name.
type recognition struct {
	*query
	places   []place // that the words may mean, the likeliest first
	mentions []communeMention
}

// recognize finds the communes that the question may mean, the likeliest first, and the mentions of communes in
// it. Mentions include communes that the vintage does not have, since an address in one of those must not be found
// elsewhere.
func (r recognizer) recognize() recognition {
	var all []place
	for i := range r.q.Terms {
		if mayName(r.q, i) {
			all = r.readPlaceName(all, r.v.Gazetteer(), i, nameReading{from: i, to: i, sim: 100})
		}
	}
	for i := range all {
		all[i].isLate = isLate(r.q, all[i].at)
	}
	mentions := r.findMentions(all)
	all = r.withoutRepeatedNames(all)
	return recognition{r.query, r.orderPlaces(r.addUnnamed(r.addCoded(all))), mentions}
}

// withoutRepeatedNames drops looser readings of a commune that is named in full where communes stand. In route du
// Bourg 26300 Bourg-de-Péage the first word does not name it again, nor in avenue de Mende 48000 Mende.
func (r recognizer) withoutRepeatedNames(all []place) []place {
	var named []uint32
	for i := range all {
		if p := &all[i]; p.sim >= literalSim && p.at&^r.q.PlaceOnly&^p.departmentAt == 0 {
			named = append(named, p.commune)
		}
	}
	if len(named) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(p place) bool {
		return p.at != 0 && p.at&r.q.PlaceOnly == 0 && (p.sim < literalSim || isJoined(r.q, p.at.First())) && slices.Contains(named, p.commune)
	})
}

// isJoined reports whether a link or a kind of street stands before a word. The word then belongs to the name of a
// street.
func isJoined(q *parse.Question, i int) bool {
	return i > 0 && (q.IsLink(i-1) || q.HasStreetType(parse.Bit(i-1))) && q.Terms[i].Before&text.Break == 0
}

// mayName reports whether a term may belong to the name of a commune.
func mayName(q *parse.Question, i int) bool {
	return (q.Words() &^ q.StreetOnly &^ q.Complement &^ q.Reps).Has(i)
}

// isBegun reports whether the unfinished word only begins the name of a place or one of its words.
func isBegun(q *parse.Question, p place) bool {
	return p.at&unfinishedWord(q) != 0 && p.sim < literalSim
}

// orderPlaces returns each place that the scope admits once, the likeliest first. Those whose name the unfinished word only
// begins come last, because they are many and say little. Only named places are
// limited in number, since the others are few.
func (r recognizer) orderPlaces(all []place) []place {
	all = slices.DeleteFunc(all, func(p place) bool { return !r.scope.Communes.Has(p.commune) })
	slices.SortFunc(all, func(x, y place) int {
		return cmp.Or(compareBools(!isBegun(r.q, x), !isBegun(r.q, y)), cmp.Compare(y.rank(), x.rank()), cmp.Compare(x.commune, y.commune), cmp.Compare(x.name, y.name), cmp.Compare(x.at, y.at))
	})
	all = slices.Compact(all)
	named := 0
	return slices.DeleteFunc(all, func(p place) bool {
		if p.name == vintage.None {
			return false
		}
		named++
		r.budget.isCut = r.budget.isCut || named > maxPlaces
		return named > maxPlaces
	})
}

// addUnnamed adds communes that no word names: those of the given code, those around the point, those of a narrow
// filter, those of a misspelt postcode and those of one that was begun.
func (r recognizer) addUnnamed(all []place) []place {
	narrow := r.scope.Communes
	if len(narrow) > fewCommunes {
		narrow = nil
	}
	var prefixed Area
	if r.q.Postcode.PrefixAt == r.q.All {
		prefixed = r.postcode.begunCommunes
	}
	for _, communes := range [...]Area{r.scope.Cited, r.scope.Around, narrow, r.postcode.nearCommunes, prefixed} {
		for _, c := range communes[:min(len(communes), fewCommunes)] {
			all = append(all, r.unnamedPlace(c, r.postcode.isOf(c)))
		}
	}
	return all
}

// addCoded adds the communes of the postcode.
func (r recognizer) addCoded(all []place) []place {
	if r.postcode.code == 0 {
		return all
	}
	communes := r.v.PostcodeCommunes(r.postcode.code)
	for i := range communes.Len() {
		all = append(all, r.unnamedPlace(communes.At(i), true))
	}
	if communes.Len() == 0 {
		for _, c := range r.table.ByPostcode(PostcodeText(r.postcode.code)) {
			if ordinal, ok := r.v.CommuneOf(c.Code); ok && r.postcode.isOf(ordinal) {
				all = append(all, r.unnamedPlace(ordinal, true))
			}
		}
	}
	return all
}

// unnamedPlace is a commune that no word names, with the words that name its department or region.
func (r recognizer) unnamedPlace(c uint32, hasTypedCode bool) place {
	p := place{commune: c, name: vintage.None, hasTypedCode: hasTypedCode}
	if r.division.at != 0 && r.division.has(r.v.Commune(c).String()) {
		p.at, p.departmentAt, p.sim, p.isLate = r.division.at, r.division.at, confirmedSim, true
	}
	return p
}

// division is a department or region named by the last words of a line if none of them names a commune: 12 rue du Soubeyran, Lozère.
type division struct {
	at          parse.Mask
	departments []string // its own code, or those of the region
}

// has reports whether a commune lies in the division.
func (d *division) has(code string) bool {
	return slices.Contains(d.departments, commune.DepartmentOf(code))
}

// readDivision finds the department or region that the last words name. A name after a link or a kind of street is that of a
// street: rue de la Loire.
func readDivision(table *commune.Table, q *parse.Question) (d division) {
	words := q.Words() &^ q.Complement
	if words == 0 {
		return d
	}
	for range 2 { // a department and its region
		last := words.Last()
		if !table.EndsDivision(q.Terms[last].Typed) {
			return d
		}
		from := max(last-mostDivisionWords+1, 0)
		for from < last && words&parse.Span(from, last+1) != parse.Span(from, last+1) {
			from++
		}
		departments, length := table.DivisionsAtEnd(typedRun(q, from, last+1))
		from = last + 1 - length
		if length == 0 || words&parse.Span(0, from) == 0 || !mayName(q, from) || isOfStreet(q, from) {
			return d
		}
		at := parse.Span(from, last+1)
		isMeant := d.at != 0 || q.Postcode.Code != 0 && slices.Contains(departments, commune.DepartmentOf(PostcodeText(q.Postcode.Code)))
		if !isMeant && len(table.Named(q.Terms[from:last+1])) > 0 {
			return d
		}
		isOther := func(code string) bool { return !slices.Contains(d.departments, code) }
		if d.at != 0 && slices.ContainsFunc(departments, isOther) {
			return d
		}
		d = division{d.at | at, departments}
		words &^= at
	}
	return d
}

// isOfStreet reports whether an article, a link or a kind of street stands before a word, which then belongs to the name of
// the street. A second kind of street is a name: rue de la Traverse.
func isOfStreet(q *parse.Question, i int) bool {
	if i == 0 || q.Terms[i].Before&text.Break != 0 {
		return false
	}
	return q.IsStopWord(i-1) || q.IsStreetType(i-1) && !innerTypes(q, q.Words()).Has(i-1)
}

// mostDivisionWords is the most words that the name of a department or region has.
const mostDivisionWords = 6

// reading is a name of a place as far as it has been read: terms [from, to), and how well they fit.
type nameReading struct {
	from, to int
	sim      int32 // the worst of its words
}

// readPlaceName adds the places whose name continues at term i. It skips links, and single letters at a cost,
// because the gazetteer holds names without stop words.
func (r recognizer) readPlaceName(all []place, g vintage.Gazetteer, i int, read nameReading) []place {
	if i >= len(r.q.Terms) || !mayName(r.q, i) || r.budget.left <= 0 {
		return all
	}
	if i > read.from && r.lexicon.isLink(i) {
		all = r.readPlaceName(all, g, i+1, read)
		if r.q.IsStopWord(i) {
			return all
		}
	} else if i > read.from && len(r.q.Terms[i].Typed) == 1 && !r.q.Terms[i].Digits {
		all = r.readPlaceName(all, g, i+1, nameReading{read.from, read.to, min(read.sim, literalSim-1)})
	}
	if i > read.from && r.q.Terms[i].Digits && r.q.Terms[i].Before&(text.Break|text.Open) != 0 {
		return all // a department, not an arrondissement
	}
	for _, a := range r.lexicon.alternatives[i] {
		all = r.extendPlaceName(all, g.Narrow(a.term, a.term+1), i, nameReading{read.from, i + 1, min(read.sim, a.sim)})
	}
	if i == r.q.Unfinished && r.lexicon.prefixes.Has(i) {
		all = r.extendPlaceName(all, g.Narrow(r.lexicon.low[i], r.lexicon.high[i]), i, nameReading{read.from, i + 1, min(read.sim, unfinishedSim)})
	}
	return all
}

// extendPlaceName adds the places whose names are read to their end with term i, and reads on for longer names. A
// name that is typed in part is added if the line may continue, if the commune has the typed postcode, or if
// few names begin so at the end of a line.
func (r recognizer) extendPlaceName(all []place, g vintage.Gazetteer, i int, read nameReading) []place {
	r.budget.left -= 4
	if g.Len() == 0 {
		return all
	}
	limit, prefixed := g.CountComplete(), mayContinue(r.q, i)
	r.budget.isCut = r.budget.isCut || limit > maxNamesakes && r.postcode.code == 0 && !prefixed
	isShort := limit == 0 && !prefixed && g.Len() <= maxShortened && isLate(r.q, parse.Span(read.from, read.to))
	if prefixed || isShort || r.postcode.code != 0 && g.Len() <= maxNamesakes {
		limit = g.Len()
	}
	if parse.Span(read.from, read.to)&^r.q.Digits() == 0 {
		limit = 0 // digits alone are a number: 12 is not La Douze
	}
	for _, j := range r.selectPlaces(g, limit, prefixed) {
		name, unnamed := g.Place(int(j))
		c := r.v.Place(name).Commune
		coded := r.postcode.isOf(c)
		if unnamed > 0 && !prefixed && !coded && !isShort {
			continue
		}
		r.budget.left--
		at := parse.Span(read.from, read.to)
		if prefixed && unnamed > 0 {
			at = parse.Span(read.from, r.q.Unfinished+1) // with the links before the rest of the name
		}
		p := place{commune: c, name: name, at: at, sim: read.sim - int32(min(unnamed, 3))*untypedWordCost, hasTypedCode: coded || r.postcode.isCode(c)}
		p.departmentAt = r.higherBehind(c, read.from, read.to)
		p.isContradicted = p.departmentAt == 0 && isDepartmentInParens(r.q, read.to)
		p.at |= p.departmentAt
		all = append(all, p)
	}
	return r.readPlaceName(all, g, i+1, read)
}

// mayContinue reports whether the name read up to term i may continue. That term is the unfinished one, or only links
// follow it up to the unfinished one, which may be the beginning of a link.
func mayContinue(q *parse.Question, i int) bool {
	for ; i < q.Unfinished; i++ {
		isLink := q.IsStopWord(i+1) || i+1 == q.Unfinished && text.BeginsStopWord(q.Terms[i+1].Typed)
		if !isLink {
			return false
		}
	}
	return i == q.Unfinished
}

// selectPlaces are the positions in a range of the places to try. Names that end there come first. Of names that
// were typed in part it takes those of the most important communes, each commune once, because the range holds
// more than can be tried.
func (r recognizer) selectPlaces(g vintage.Gazetteer, limit int, prefixed bool) []uint64 {
	all := make([]uint64, min(limit, maxScanned))
	for j := range all {
		all[j] = uint64(j)
	}
	if !prefixed || limit <= maxPrefixNames {
		return all[:min(len(all), maxNamesakes)]
	}
	whole := min(g.CountComplete(), maxNamesakes, len(all))
	rest := all[whole:]
	for j := range rest {
		rest[j] |= uint64(g.PlaceAt(whole+j)) << 32
	}
	slices.Sort(rest)
	r.budget.left -= len(all) / 4
	var seen []uint32
	for _, packed := range rest {
		if c := r.v.Place(uint32(packed >> 32)).Commune; len(seen) < maxPrefixNames && !slices.Contains(seen, c) {
			all[whole+len(seen)] = packed & (1<<32 - 1)
			seen = append(seen, c)
		}
	}
	return all[:whole+len(seen)]
}

// higherBehind are the terms after the name of a commune, terms [from, to), that name a larger area around it: its department, by code
// or by name, its region, or, as maps write addresses, the chief town of its district. The postcode may
// stand between them.
func (r recognizer) higherBehind(c uint32, from, to int) (out parse.Mask) {
	if to >= len(r.q.Terms) {
		return 0
	}
	department := commune.DepartmentOf(r.v.Commune(c).String())
	if !postcodeIsNext(r.q, to) {
		if at := departmentCode(r.q, department, to); at != 0 {
			return at
		}
	}
	for range maxHigher {
		to = behindPostal(r.q, to)
		at := r.divisionAt(department, to)
		if at == 0 {
			at = r.chiefTownAt(department, from, to)
		}
		if at == 0 {
			return out
		}
		out |= at
		to = at.Last() + 1
	}
	return out
}

// maxHigher is how many names may follow that of a commune: of a new commune, a district, a department, a region.
const maxHigher = 4

// behindPostal is the first term from one on that belongs neither to the postcode nor to the country.
func behindPostal(q *parse.Question, i int) int {
	for i < len(q.Terms) && (q.Postcode.At | q.Postal).Has(i) {
		i++
	}
	return i
}

// divisionAt are the terms from one on that name a department or its region.
func (r recognizer) divisionAt(department string, i int) parse.Mask {
	for _, name := range r.table.DivisionWords(department) {
		if at := sameWords(r.q, name, i); at != 0 {
			return at
		}
	}
	return 0
}

// chiefTownAt are the terms from one on that name a commune of the department, if commas set them off from the name of another
// one before them, terms [from, …). In such a line each area lies in the next one: Badaroux, Mende, Lozère. A name right
// after the postcode is the commune itself.
func (r recognizer) chiefTownAt(department string, from, i int) parse.Mask {
	for from > 0 && r.q.Terms[from].Before&text.Break == 0 && r.q.IsStopWord(from-1) {
		from--
	}
	if i >= len(r.q.Terms) || r.q.Terms[i].Before&text.Break == 0 || postcodeIsNext(r.q, i-1) || from > 0 && r.q.Terms[from].Before&text.Break == 0 && !postcodeIsNext(r.q, from-1) {
		return 0
	}
	to := i + 1
	for to < len(r.q.Terms) && r.q.Terms[to].Before&text.Break == 0 && mayName(r.q, to) {
		to++
	}
	isOf := func(c *commune.Commune) bool { return c.Department() == department }
	if !mayName(r.q, i) || to < len(r.q.Terms) && r.q.Terms[to].Before&text.Break == 0 && !postcodeIsNext(r.q, to) || !slices.ContainsFunc(r.namedInTable(i, to), isOf) {
		return 0
	}
	return parse.Span(i, to)
}

// isDepartmentInParens reports whether digits in parentheses are the code of a department.
func isDepartmentInParens(q *parse.Question, i int) bool {
	if i >= len(q.Terms) || q.Terms[i].Before&text.Open == 0 || !q.Terms[i].Digits {
		return false
	}
	_, ok := commune.Department(q.Terms[i].Typed)
	return ok
}

// departmentCode are the terms that spell the code of a department: digits at the end of a part of the line, or in
// parentheses. The codes of Corsica (2A, 2B) are two terms.
func departmentCode(q *parse.Question, code string, i int) parse.Mask {
	t := q.Terms[i]
	switch {
	case t.Digits && t.Typed == code && (i+1 == len(q.Terms) || t.Before&text.Open != 0 || q.Terms[i+1].Before&text.Break != 0):
		return parse.Bit(i)
	case t.Digits && t.Typed == "2" && i+1 < len(q.Terms) && "2"+strings.ToUpper(q.Terms[i+1].Typed) == code:
		return parse.Bit(i) | parse.Bit(i+1)
	}
	return 0
}

// sameWords are the terms from one on that spell the words of a name. It is empty if they do not spell all of them. The unfinished
// term may be the beginning of the rest.
func sameWords(q *parse.Question, words []string, from int) parse.Mask {
	if len(words) == 0 {
		return 0
	}
	for k, w := range words {
		i := from + k
		switch {
		case i >= len(q.Terms) || !q.Words().Has(i):
			return 0
		case i == q.Unfinished && strings.HasPrefix(w, q.Terms[i].Typed):
			return parse.Span(from, i+1)
		case q.Terms[i].Typed != w:
			return 0
		}
	}
	return parse.Span(from, from+len(words))
}

// isLate reports whether words stand where a commune does: the postcode stands just before them, or nothing follows
// but complements, phrases and numbers. Words within a phrase do not stand at its end: Azur in résidence Azur Mende.
func isLate(q *parse.Question, at parse.Mask) bool {
	if at == 0 {
		return false
	}
	phrases := q.Phrases
	for i := at.Last(); i < len(q.Terms) && phrases.Has(i); i++ {
		phrases &^= parse.Bit(i)
	}
	rest := q.Words() &^ q.Complement &^ phrases &^ q.Digits() &^ q.Reps &^ parse.Span(0, at.Last()+1)
	first := at.First()
	return rest == 0 || first > 0 && q.Postcode.At.Has(first-1) || at&q.PlaceOnly != 0 && q.PlaceOnly.First() >= first-1
}

// begunNames are the places whose names begin with the words from one on, up to the unfinished one: those that continue with a term which
// that word begins, and, if it may be the beginning of a link, those that continue at all.
func (r recognizer) begunNames(from int) (all []vintage.Gazetteer) {
	g, last := r.v.Gazetteer(), r.q.Unfinished
	for i := from; i < last; i++ {
		if i > from && r.q.IsStopWord(i) {
			continue
		}
		if len(r.lexicon.alternatives[i]) == 0 {
			return nil
		}
		term := r.lexicon.alternatives[i][0].term
		g = g.Narrow(term, term+1)
	}
	add := func(g vintage.Gazetteer) {
		if g.Len() > 0 {
			all = append(all, g)
		}
	}
	if from < last && text.BeginsStopWord(r.q.Terms[last].Typed) {
		add(g)
		return all
	}
	if r.lexicon.prefixes.Has(last) {
		add(g.Narrow(r.lexicon.low[last], r.lexicon.high[last]))
	}
	for _, a := range r.lexicon.alternatives[last] {
		if a.term < r.lexicon.low[last] || a.term >= r.lexicon.high[last] {
			add(g.Narrow(a.term, a.term+1))
		}
	}
	return all
}

// begunPlace is a commune as the place whose name begins with some words, of which the last one is unfinished.
func (r recognizer) begunPlace(commune uint32, at parse.Mask) (p place, ok bool) {
	for name, to := r.v.CommunePlaces(commune); name < to && r.budget.left > 0; name++ {
		terms := r.v.NameTerms(r.v.Place(name).Name)
		r.budget.left--
		for k := range terms.Len() {
			if r.lexicon.sim(r.q.Unfinished, terms.At(k)) > 0 && r.trailingWords(terms, k) == at {
				return place{commune: commune, name: name, at: at, sim: unfinishedSim, isLate: true, hasTypedCode: r.postcode.isOf(commune)}, true
			}
		}
	}
	return p, false
}

// placeByPrefix is a commune as the place whose name the last words of an unfinished line begin.
func (r recognizer) placeByPrefix(commune uint32) (p place, ok bool) {
	last := r.q.Unfinished
	if last < 1 || !r.lexicon.prefixes.Has(last) || !mayName(r.q, last) {
		return p, false
	}
	for name, to := r.v.CommunePlaces(commune); name < to && r.budget.left > 0; name++ {
		terms := r.v.NameTerms(r.v.Place(name).Name)
		r.budget.left--
		for k := range terms.Len() {
			if t := terms.At(k); t < r.lexicon.low[last] || t >= r.lexicon.high[last] {
				continue
			}
			if at := r.trailingWords(terms, k); at != 0 {
				return place{commune: commune, name: name, at: at, sim: unfinishedSim, isLate: true, hasTypedCode: r.postcode.isOf(commune)}, true
			}
		}
	}
	return p, false
}

// trailingWords are the words at the end of the line that spell the first terms of a name, the last of them being
// the unfinished word. Links do not count. It is empty if the words before the unfinished one differ.
func (r recognizer) trailingWords(name vintage.Column, terms int) parse.Mask {
	i := r.q.Unfinished
	for k := terms - 1; k >= 0; k-- {
		if text.ClassOf(viewString(r.v.Term(name.At(k)))) == text.StopWord {
			continue
		}
		for i--; i > 0 && r.q.IsStopWord(i); i-- {
		}
		if i < 1 || !mayName(r.q, i) || r.lexicon.sim(i, name.At(k)) < literalSim {
			return 0
		}
	}
	return parse.Span(i, r.q.Unfinished+1)
}

// communesOf are the communes of the places of a range.
func communesOf(g vintage.Gazetteer, v *vintage.Vintage) Area {
	all := make([]uint32, g.Len())
	for i := range all {
		all[i] = v.Place(g.PlaceAt(i)).Commune
	}
	return NewArea(all)
}
