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
	maxPlaces    = 64 // named places that a question is tried in
	fewCommunes  = 24 // communes of a filter, if no more, that are all tried
	maxNamesakes = 40 // places of one name that are tried
	maxShortened = 12 // places that the words at the end of a line may shorten: Boissy for Boissy-Saint-Léger

	maxPrefixNames = 24   // communes that are tried of those whose name begins as typed
	maxScanned     = 1000 // names that are read to find the most important of those

	untypedWordCost = 5  // what each word of a name that was not typed takes from its likeness
	confirmedSim    = 98 // least likeness at which a name confirms the place
	boundSim        = 70 // least likeness at which a name binds the address to the place
)

// place is a commune that a question may be about, and why.
type place struct {
	commune      uint32
	name         uint32     // the place whose name was typed, or vintage.None
	at           parse.Mask // the terms that name it, with those of what it lies in
	departmentAt parse.Mask // of these, the terms that name its department, its region, or the chief town of its district
	sim          int32      // how well they do, in hundredths; 0 when only the postcode speaks for it
	hasTypedCode bool       // the typed postcode is one of the commune's, or its INSEE code
	isLate       bool       // the name stands where a commune is expected: after the postcode or at the end

	isContradicted bool // another department stands in parentheses behind it
}

// rank orders places by how much speaks for them.
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

// recognize finds the communes that the question may mean, the likeliest first, and the mentions of communes in
// it. Mentions include communes that the vintage does not have, since an address in one of those must not be found
// elsewhere.
func (s *searcher) recognize() (places []place, mentions []mention) {
	var all []place
	for i := range s.q.Terms {
		if s.mayName(i) {
			all = s.readPlaceName(all, s.v.Gazetteer(), i, reading{from: i, to: i, sim: 100})
		}
	}
	for i := range all {
		all[i].isLate = s.isLate(all[i].at)
	}
	mentions = s.findMentions(all)
	all = s.withoutRepeatedNames(all)
	return s.orderPlaces(s.addUnnamed(s.addCoded(all))), mentions
}

// withoutRepeatedNames drops looser readings of a commune that is named in full where communes stand. In route du
// Bourg 26300 Bourg-de-Péage the first word does not name it again, nor in avenue de Mende 48000 Mende.
func (s *searcher) withoutRepeatedNames(all []place) []place {
	var named []uint32
	for i := range all {
		if p := &all[i]; p.sim >= literalSim && p.at&^s.q.PlaceOnly&^p.departmentAt == 0 {
			named = append(named, p.commune)
		}
	}
	if len(named) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(p place) bool {
		return p.at != 0 && p.at&s.q.PlaceOnly == 0 && (p.sim < literalSim || s.isJoined(p.at.First())) && slices.Contains(named, p.commune)
	})
}

// isJoined says whether a link or a kind of street stands before a word. The word then belongs to the name of a
// street.
func (s *searcher) isJoined(i int) bool {
	return i > 0 && (s.q.IsLink(i-1) || s.q.HasStreetType(parse.Bit(i-1))) && s.q.Terms[i].Before&text.Break == 0
}

// mayName says whether a term may belong to the name of a commune.
func (s *searcher) mayName(i int) bool {
	return (s.q.Words() &^ s.q.StreetOnly &^ s.q.Complement &^ s.q.Reps).Has(i)
}

// compareBegun puts places whose name the unfinished word only begins behind all others. They are many, and say little.
func (s *searcher) compareBegun(x, y place) int { return compareBools(!s.isBegun(x), !s.isBegun(y)) }

// isBegun reports whether the unfinished word only begins the name of a place, or a word of it.
func (s *searcher) isBegun(p place) bool { return p.at&s.unfinishedWord() != 0 && p.sim < literalSim }

// orderPlaces are the places that the scope lets through, the likeliest first, each once. Only named places are
// limited in number, since the others are few.
func (s *searcher) orderPlaces(all []place) []place {
	all = slices.DeleteFunc(all, func(p place) bool { return !s.scope.Communes.Has(p.commune) })
	slices.SortFunc(all, func(x, y place) int {
		return cmp.Or(s.compareBegun(x, y), cmp.Compare(y.rank(), x.rank()), cmp.Compare(x.commune, y.commune), cmp.Compare(x.name, y.name), cmp.Compare(x.at, y.at))
	})
	all = slices.Compact(all)
	named := 0
	return slices.DeleteFunc(all, func(p place) bool {
		if p.name == vintage.None {
			return false
		}
		named++
		s.budget.isCut = s.budget.isCut || named > maxPlaces
		return named > maxPlaces
	})
}

// addUnnamed adds communes that no word names: those of the given code, those around the point, those of a narrow
// filter, those of a misspelt postcode and those of one that was begun.
func (s *searcher) addUnnamed(all []place) []place {
	narrow := s.scope.Communes
	if len(narrow) > fewCommunes {
		narrow = nil
	}
	var prefixed Area
	if s.q.Postcode.PrefixAt == s.q.All {
		prefixed = s.prefixCommunes
	}
	for _, communes := range [...]Area{s.scope.Cited, s.scope.Around, narrow, s.nearCommunes, prefixed} {
		for _, c := range communes[:min(len(communes), fewCommunes)] {
			all = append(all, s.unnamedPlace(c, s.hasPostcode(c)))
		}
	}
	return all
}

// addCoded adds the communes of the postcode.
func (s *searcher) addCoded(all []place) []place {
	if s.postcode == 0 {
		return all
	}
	communes := s.v.PostcodeCommunes(s.postcode)
	for i := range communes.Len() {
		all = append(all, s.unnamedPlace(communes.At(i), true))
	}
	if communes.Len() == 0 {
		for _, c := range s.x.table.ByPostcode(PostcodeText(s.postcode)) {
			if ordinal, ok := s.v.CommuneOf(c.Code); ok && s.hasPostcode(ordinal) {
				all = append(all, s.unnamedPlace(ordinal, true))
			}
		}
	}
	return all
}

// unnamedPlace is a commune that no word names, with the words that name its department or region.
func (s *searcher) unnamedPlace(c uint32, hasTypedCode bool) place {
	p := place{commune: c, name: vintage.None, hasTypedCode: hasTypedCode}
	if s.division.at != 0 && s.division.has(s.v.Commune(c).String()) {
		p.at, p.departmentAt, p.sim, p.isLate = s.division.at, s.division.at, confirmedSim, true
	}
	return p
}

// division is a department or region that the last words name where none of them names a commune: 12 rue du Soubeyran, Lozère.
type division struct {
	at          parse.Mask
	departments []string // its own code, or those of the region
}

// has reports whether a commune lies in the division.
func (d *division) has(code string) bool {
	return slices.Contains(d.departments, commune.DepartmentOf(code))
}

// readDivision finds the department or region that the last words name. A name behind a link or a kind of street is that of a
// street: rue de la Loire.
func (s *searcher) readDivision() {
	words := s.q.Words() &^ s.q.Complement
	if words == 0 {
		return
	}
	for range 2 { // a department and its region
		last := words.Last()
		if !s.x.table.EndsDivision(s.q.Terms[last].Typed) {
			return
		}
		from := max(last-mostDivisionWords+1, 0)
		for from < last && words&parse.Span(from, last+1) != parse.Span(from, last+1) {
			from++
		}
		departments, length := s.x.table.DivisionsAtEnd(s.typedRun(from, last+1))
		from = last + 1 - length
		if length == 0 || words&parse.Span(0, from) == 0 || !s.mayName(from) || s.isOfStreet(from) {
			return
		}
		at := parse.Span(from, last+1)
		isMeant := s.division.at != 0 || s.q.Postcode.Code != 0 && slices.Contains(departments, commune.DepartmentOf(PostcodeText(s.q.Postcode.Code)))
		if !isMeant && len(s.x.table.Named(s.q.Terms[from:last+1])) > 0 {
			return
		}
		for _, code := range departments {
			if s.division.at != 0 && !slices.Contains(s.division.departments, code) {
				return
			}
		}
		s.division = division{s.division.at | at, departments}
		words &^= at
	}
}

// isOfStreet reports whether an article, a link or the kind of a street stands before a word, which then belongs to the name of
// the street. A second kind of street is a name: rue de la Traverse.
func (s *searcher) isOfStreet(i int) bool {
	if i == 0 || s.q.Terms[i].Before&text.Break != 0 {
		return false
	}
	return s.q.IsStopWord(i-1) || s.q.IsStreetType(i-1) && !s.innerTypes(s.q.Words()).Has(i-1)
}

// mostDivisionWords is how many words the name of a department or region has at most.
const mostDivisionWords = 6

// typedRun are terms [from, to) as typed.
func (s *searcher) typedRun(from, to int) (words []string) {
	for _, t := range s.q.Terms[from:to] {
		words = append(words, t.Typed)
	}
	return words
}

// reading is a name of a place as far as it has been read: terms [from, to), and how well they fit.
type reading struct {
	from, to int
	sim      int32 // the worst of its words
}

// readPlaceName adds the places whose name goes on at term i. It skips links, and single letters at a cost,
// because the gazetteer holds names without stop words.
func (s *searcher) readPlaceName(all []place, g vintage.Gazetteer, i int, r reading) []place {
	if i >= len(s.q.Terms) || !s.mayName(i) || s.budget.left <= 0 {
		return all
	}
	if i > r.from && s.lexicon.isLink(i) {
		all = s.readPlaceName(all, g, i+1, r)
		if s.q.IsStopWord(i) {
			return all
		}
	} else if i > r.from && len(s.q.Terms[i].Typed) == 1 && !s.q.Terms[i].Digits {
		all = s.readPlaceName(all, g, i+1, reading{r.from, r.to, min(r.sim, literalSim-1)})
	}
	if i > r.from && s.q.Terms[i].Digits && s.q.Terms[i].Before&(text.Break|text.Open) != 0 {
		return all // a department, no arrondissement
	}
	for _, a := range s.lexicon.alternatives[i] {
		all = s.extendPlaceName(all, g.Narrow(a.term, a.term+1), i, reading{r.from, i + 1, min(r.sim, a.sim)})
	}
	if i == s.q.Unfinished && s.lexicon.prefixes.Has(i) {
		all = s.extendPlaceName(all, g.Narrow(s.lexicon.low[i], s.lexicon.high[i]), i, reading{r.from, i + 1, min(r.sim, unfinishedSim)})
	}
	return all
}

// extendPlaceName adds the places whose names are read to their end with term i, and reads on for longer names. A
// name that is typed in part is added where the line may go on, where the commune has the typed postcode, or where
// few names begin so at the end of a line.
func (s *searcher) extendPlaceName(all []place, g vintage.Gazetteer, i int, r reading) []place {
	s.budget.left -= 4
	if g.Len() == 0 {
		return all
	}
	limit, prefixed := g.CountComplete(), s.mayContinue(i)
	s.budget.isCut = s.budget.isCut || limit > maxNamesakes && s.postcode == 0 && !prefixed
	isShort := limit == 0 && !prefixed && g.Len() <= maxShortened && s.isLate(parse.Span(r.from, r.to))
	if prefixed || isShort || s.postcode != 0 && g.Len() <= maxNamesakes {
		limit = g.Len()
	}
	if parse.Span(r.from, r.to)&^s.q.Digits() == 0 {
		limit = 0 // digits alone are a number: 12 is not La Douze
	}
	for _, j := range s.selectPlaces(g, limit, prefixed) {
		name, unnamed := g.Place(int(j))
		c := s.v.Place(name).Commune
		coded := s.hasPostcode(c)
		if unnamed > 0 && !prefixed && !coded && !isShort {
			continue
		}
		s.budget.left--
		at := parse.Span(r.from, r.to)
		if prefixed && unnamed > 0 {
			at = parse.Span(r.from, s.q.Unfinished+1) // with the links before the rest of the name
		}
		p := place{commune: c, name: name, at: at, sim: r.sim - int32(min(unnamed, 3))*untypedWordCost, hasTypedCode: coded || s.isCode(c)}
		p.departmentAt = s.higherBehind(c, r.from, r.to)
		p.isContradicted = p.departmentAt == 0 && s.isDepartmentInParens(r.to)
		p.at |= p.departmentAt
		all = append(all, p)
	}
	return s.readPlaceName(all, g, i+1, r)
}

// mayContinue says whether the name read up to term i may go on. That term is the unfinished one, or only links
// follow it up to the unfinished one, which may be the beginning of a link.
func (s *searcher) mayContinue(i int) bool {
	for ; i < s.q.Unfinished; i++ {
		isLink := s.q.IsStopWord(i+1) || i+1 == s.q.Unfinished && text.BeginsStopWord(s.q.Terms[i+1].Typed)
		if !isLink {
			return false
		}
	}
	return i == s.q.Unfinished
}

// selectPlaces are the positions in a range of the places to try. Names that end there come first. Of names that
// were typed in part it takes those of the most important communes, each commune once, because the range holds
// more than can be tried.
func (s *searcher) selectPlaces(g vintage.Gazetteer, limit int, prefixed bool) []uint64 {
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
	s.budget.left -= len(all) / 4
	var seen []uint32
	for _, packed := range rest {
		if c := s.v.Place(uint32(packed >> 32)).Commune; len(seen) < maxPrefixNames && !slices.Contains(seen, c) {
			all[whole+len(seen)] = packed & (1<<32 - 1)
			seen = append(seen, c)
		}
	}
	return all[:whole+len(seen)]
}

// higherBehind are the terms behind the name of a commune, terms [from, to), that name what it lies in: its department, by code
// or by name, its region, and in the forms in which maps show an address the chief town of its district. The postcode may
// stand between them.
func (s *searcher) higherBehind(c uint32, from, to int) (out parse.Mask) {
	if to >= len(s.q.Terms) {
		return 0
	}
	department := commune.DepartmentOf(s.v.Commune(c).String())
	if !s.postcodeIsNext(to) {
		if at := s.departmentCode(department, to); at != 0 {
			return at
		}
	}
	for range maxHigher {
		to = s.behindPostal(to)
		at := s.divisionAt(department, to)
		if at == 0 {
			at = s.chiefTownAt(department, from, to)
		}
		if at == 0 {
			return out
		}
		out |= at
		to = at.Last() + 1
	}
	return out
}

// maxHigher is how many names may stand behind that of a commune: of a new commune, a district, a department, a region.
const maxHigher = 4

// behindPostal is the first term from one on that belongs neither to the postcode nor to the country.
func (s *searcher) behindPostal(i int) int {
	for i < len(s.q.Terms) && (s.q.Postcode.At | s.q.Postal).Has(i) {
		i++
	}
	return i
}

// divisionAt are the terms from one on that name a department or its region.
func (s *searcher) divisionAt(department string, i int) parse.Mask {
	for _, name := range s.x.table.DivisionWords(department) {
		if at := s.sameWords(name, i); at != 0 {
			return at
		}
	}
	return 0
}

// chiefTownAt are the terms from one on that name a commune of the department, if commas set them off from the name of another
// one before them, terms [from, …). In such a line each name lies in the next one: Badaroux, Mende, Lozère. A name right
// behind the postcode is the commune itself.
func (s *searcher) chiefTownAt(department string, from, i int) parse.Mask {
	for from > 0 && s.q.Terms[from].Before&text.Break == 0 && s.q.IsStopWord(from-1) {
		from--
	}
	if i >= len(s.q.Terms) || s.q.Terms[i].Before&text.Break == 0 || s.postcodeIsNext(i-1) || from > 0 && s.q.Terms[from].Before&text.Break == 0 && !s.postcodeIsNext(from-1) {
		return 0
	}
	to := i + 1
	for to < len(s.q.Terms) && s.q.Terms[to].Before&text.Break == 0 && s.mayName(to) {
		to++
	}
	isOf := func(c *commune.Commune) bool { return c.Department() == department }
	if !s.mayName(i) || to < len(s.q.Terms) && s.q.Terms[to].Before&text.Break == 0 && !s.postcodeIsNext(to) || !slices.ContainsFunc(s.namedInTable(i, to), isOf) {
		return 0
	}
	return parse.Span(i, to)
}

// isDepartmentInParens says whether digits in parentheses are the code of a department.
func (s *searcher) isDepartmentInParens(i int) bool {
	if i >= len(s.q.Terms) || s.q.Terms[i].Before&text.Open == 0 || !s.q.Terms[i].Digits {
		return false
	}
	_, ok := commune.Department(s.q.Terms[i].Typed)
	return ok
}

// departmentCode are the terms that spell the code of a department: digits at the end of a part of the line, or in
// parentheses. The codes of Corsica (2A, 2B) are two terms.
func (s *searcher) departmentCode(code string, i int) parse.Mask {
	t := s.q.Terms[i]
	switch {
	case t.Digits && t.Typed == code && (i+1 == len(s.q.Terms) || t.Before&text.Open != 0 || s.q.Terms[i+1].Before&text.Break != 0):
		return parse.Bit(i)
	case t.Digits && t.Typed == "2" && i+1 < len(s.q.Terms) && "2"+strings.ToUpper(s.q.Terms[i+1].Typed) == code:
		return parse.Bit(i) | parse.Bit(i+1)
	}
	return 0
}

// sameWords are the terms from one on that spell the words of a name, or none. The unfinished term may be the beginning of the rest of it.
func (s *searcher) sameWords(words []string, from int) parse.Mask {
	if len(words) == 0 {
		return 0
	}
	for k, w := range words {
		i := from + k
		switch {
		case i >= len(s.q.Terms) || !s.q.Words().Has(i):
			return 0
		case i == s.q.Unfinished && strings.HasPrefix(w, s.q.Terms[i].Typed):
			return parse.Span(from, i+1)
		case s.q.Terms[i].Typed != w:
			return 0
		}
	}
	return parse.Span(from, from+len(words))
}

// isLate says whether words stand where a commune does: the postcode stands just before them, or nothing follows
// but complements, phrases and numbers. Words within a phrase do not stand at its end: Azur in résidence Azur Mende.
func (s *searcher) isLate(at parse.Mask) bool {
	if at == 0 {
		return false
	}
	phrases := s.q.Phrases
	for i := at.Last(); i < len(s.q.Terms) && phrases.Has(i); i++ {
		phrases &^= parse.Bit(i)
	}
	rest := s.q.Words() &^ s.q.Complement &^ phrases &^ s.q.Digits() &^ s.q.Reps &^ parse.Span(0, at.Last()+1)
	first := at.First()
	return rest == 0 || first > 0 && s.q.Postcode.At.Has(first-1) || at&s.q.PlaceOnly != 0 && s.q.PlaceOnly.First() >= first-1
}

// isNamed says whether a commune has the name that a mention says. Former communes and arrondissements count as
// the commune they belong to, and the other way round.
func (s *searcher) isNamed(c uint32, m mention) bool {
	code := s.v.Commune(c).String()
	for _, known := range m.known {
		if known.Code == code || known.Parent == code {
			return true
		}
		if of, ok := s.x.table.ByCode(code); ok && of.Parent != "" && of.Parent == known.Code {
			return true
		}
	}
	for p, to := s.v.CommunePlaces(c); p < to; p++ {
		if s.saysName(m.at, s.v.Place(p).Name, min(m.sim, literalSim)) {
			return true
		}
	}
	return false
}

// saysName says whether words spell all terms of a name but links, with at least the given likeness, and nothing
// else. The unfinished word may stand for the rest of the name.
func (s *searcher) saysName(words parse.Mask, name uint32, least int32) bool {
	terms := s.v.BareTerms(name)
	k := 0
	for i := range s.q.Terms {
		if !words.Has(i) || s.q.IsStopWord(i) {
			continue
		}
		if k < len(terms) && s.lexicon.sim(i, terms[k]) >= least {
			k++
		} else {
			return false
		}
	}
	return k == len(terms) || k > 0 && s.q.Unfinished >= 0 && words.Has(s.q.Unfinished)
}

// mention is a run of words that name a commune, of the vintage or of the table.
type mention struct {
	at     parse.Mask
	sim    int32
	isLate bool
	isAway bool               // no commune of the name lies in the department of the typed postcode
	ownSim int32              // how well it names a commune of the vintage; 0: none
	known  []*commune.Commune // of the table; none where the vintage alone has the name
}

// findMentions finds the runs of words that name a commune, of the places that were read and of the table. A name
// that no commune of the typed department has is taken for a misspelt one of that department.
func (s *searcher) findMentions(all []place) (mentions []mention) {
	add := func(n mention) {
		for i := range mentions {
			if mentions[i].at == n.at {
				mentions[i].sim = max(mentions[i].sim, n.sim)
				mentions[i].known = append(mentions[i].known, n.known...)
				mentions[i].ownSim = max(mentions[i].ownSim, n.ownSim)
				return
			}
		}
		mentions = append(mentions, n)
	}
	for i := range all {
		if all[i].name != vintage.None && all[i].sim >= boundSim {
			add(mention{at: all[i].at &^ all[i].departmentAt, sim: all[i].sim, isLate: all[i].isLate, ownSim: all[i].sim})
		}
	}
	for i := range s.q.Terms {
		if !s.mayName(i) {
			continue
		}
		for to := i + 1; to <= min(len(s.q.Terms), i+6) && s.mayName(to-1); to++ {
			at := parse.Span(i, to)
			if !s.isLate(at) || isMentioned(mentions, at) {
				continue
			}
			if known := s.namedInTable(i, to); len(known) > 0 {
				add(mention{at: at, sim: 100, isLate: true, known: known})
			}
		}
	}
	for i := range mentions {
		if mentions[i].sim >= literalSim && s.q.Postcode.Code != 0 && !s.isInDepartment(mentions[i], all) {
			mentions[i].isAway = true
			mentions[i].sim = literalSim - 1 // rather a misspelt name of one in the department of the postcode
		}
	}
	return mentions
}

// isMentioned says whether words name a commune of the vintage letter for letter. Then the table is not asked.
func isMentioned(parts []mention, at parse.Mask) bool {
	for i := range parts {
		if parts[i].at == at && parts[i].sim >= confirmedSim {
			return true
		}
	}
	return false
}

// isInDepartment says whether one of the communes that words name lies in the department of the typed postcode.
func (s *searcher) isInDepartment(part mention, all []place) bool {
	typed := PostcodeText(s.q.Postcode.Code)
	agrees := func(code string) bool {
		return commune.DepartmentOf(code) == commune.DepartmentOf(typed) || typed[:2] == "20" && isCorsican(code)
	}
	for i := range all {
		if p := &all[i]; p.name != vintage.None && p.at&^p.departmentAt == part.at && p.sim >= literalSim && agrees(s.v.Commune(p.commune).String()) {
			return true
		}
	}
	if len(part.known) == 0 {
		part.known = s.namedInTable(part.at.First(), part.at.Last()+1)
	}
	for _, known := range part.known {
		if agrees(known.Code) {
			return true
		}
	}
	return false
}

// namedInTable are the communes of the table whose whole name is terms [from, to). A name neither begins nor ends
// with a link.
func (s *searcher) namedInTable(from, to int) []*commune.Commune {
	first, last := s.q.Terms[from], s.q.Terms[to-1]
	if first.Part || text.ClassOf(first.Text) == text.StopWord || text.ClassOf(last.Text) == text.StopWord || parse.Span(from, to)&^s.q.Digits() == 0 {
		return nil
	}
	return s.x.table.Named(s.q.Terms[from:to])
}
