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

// recognizer finds the communes that a question may mean.
type recognizer struct{ *query }

// recognition is the communes that the words of a question name.
type recognition struct {
	*query
	places   []place // that the words may mean, the likeliest first
	mentions []mention
}

// recognize finds the communes that the question may mean, the likeliest first, and the mentions of communes in
// it. Mentions include communes that the vintage does not have, since an address in one of those must not be found
// elsewhere.
func (r recognizer) recognize() recognition {
	var all []place
	for i := range r.q.Terms {
		if mayName(r.q, i) {
			all = r.readPlaceName(all, r.v.Gazetteer(), i, reading{from: i, to: i, sim: 100})
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

// isJoined says whether a link or a kind of street stands before a word. The word then belongs to the name of a
// street.
func isJoined(q *parse.Question, i int) bool {
	return i > 0 && (q.IsLink(i-1) || q.HasStreetType(parse.Bit(i-1))) && q.Terms[i].Before&text.Break == 0
}

// mayName says whether a term may belong to the name of a commune.
func mayName(q *parse.Question, i int) bool {
	return (q.Words() &^ q.StreetOnly &^ q.Complement &^ q.Reps).Has(i)
}

// isBegun reports whether the unfinished word only begins the name of a place, or a word of it.
func isBegun(q *parse.Question, p place) bool {
	return p.at&unfinishedWord(q) != 0 && p.sim < literalSim
}

// orderPlaces are the places that the scope lets through, the likeliest first, each once. Those whose name the unfinished word only
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

// isOfStreet reports whether an article, a link or the kind of a street stands before a word, which then belongs to the name of
// the street. A second kind of street is a name: rue de la Traverse.
func isOfStreet(q *parse.Question, i int) bool {
	if i == 0 || q.Terms[i].Before&text.Break != 0 {
		return false
	}
	return q.IsStopWord(i-1) || q.IsStreetType(i-1) && !innerTypes(q, q.Words()).Has(i-1)
}

// mostDivisionWords is how many words the name of a department or region has at most.
const mostDivisionWords = 6

// typedRun are terms [from, to) as typed.
func typedRun(q *parse.Question, from, to int) (words []string) {
	for _, t := range q.Terms[from:to] {
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
func (r recognizer) readPlaceName(all []place, g vintage.Gazetteer, i int, read reading) []place {
	if i >= len(r.q.Terms) || !mayName(r.q, i) || r.budget.left <= 0 {
		return all
	}
	if i > read.from && r.lexicon.isLink(i) {
		all = r.readPlaceName(all, g, i+1, read)
		if r.q.IsStopWord(i) {
			return all
		}
	} else if i > read.from && len(r.q.Terms[i].Typed) == 1 && !r.q.Terms[i].Digits {
		all = r.readPlaceName(all, g, i+1, reading{read.from, read.to, min(read.sim, literalSim-1)})
	}
	if i > read.from && r.q.Terms[i].Digits && r.q.Terms[i].Before&(text.Break|text.Open) != 0 {
		return all // a department, no arrondissement
	}
	for _, a := range r.lexicon.alternatives[i] {
		all = r.extendPlaceName(all, g.Narrow(a.term, a.term+1), i, reading{read.from, i + 1, min(read.sim, a.sim)})
	}
	if i == r.q.Unfinished && r.lexicon.prefixes.Has(i) {
		all = r.extendPlaceName(all, g.Narrow(r.lexicon.low[i], r.lexicon.high[i]), i, reading{read.from, i + 1, min(read.sim, unfinishedSim)})
	}
	return all
}

// extendPlaceName adds the places whose names are read to their end with term i, and reads on for longer names. A
// name that is typed in part is added where the line may go on, where the commune has the typed postcode, or where
// few names begin so at the end of a line.
func (r recognizer) extendPlaceName(all []place, g vintage.Gazetteer, i int, read reading) []place {
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

// mayContinue says whether the name read up to term i may go on. That term is the unfinished one, or only links
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

// higherBehind are the terms behind the name of a commune, terms [from, to), that name what it lies in: its department, by code
// or by name, its region, and in the forms in which maps show an address the chief town of its district. The postcode may
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

// maxHigher is how many names may stand behind that of a commune: of a new commune, a district, a department, a region.
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
// one before them, terms [from, …). In such a line each name lies in the next one: Badaroux, Mende, Lozère. A name right
// behind the postcode is the commune itself.
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

// isDepartmentInParens says whether digits in parentheses are the code of a department.
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

// sameWords are the terms from one on that spell the words of a name, or none. The unfinished term may be the beginning of the rest of it.
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

// isLate says whether words stand where a commune does: the postcode stands just before them, or nothing follows
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

// isNamed says whether a commune has the name that a mention says. Former communes and arrondissements count as
// the commune they belong to, and the other way round.
func (r recognition) isNamed(c uint32, m mention) bool {
	code := r.v.Commune(c).String()
	for _, known := range m.known {
		if known.Code == code || known.Parent == code {
			return true
		}
		if of, ok := r.table.ByCode(code); ok && of.Parent != "" && of.Parent == known.Code {
			return true
		}
	}
	for p, to := r.v.CommunePlaces(c); p < to; p++ {
		if r.saysName(m.at, r.v.Place(p).Name, min(m.sim, literalSim)) {
			return true
		}
	}
	return false
}

// saysName says whether words spell all terms of a name but links, with at least the given likeness, and nothing
// else. The unfinished word may stand for the rest of the name.
func (r recognition) saysName(words parse.Mask, name uint32, least int32) bool {
	terms := r.v.BareTerms(name)
	k := 0
	for i := range r.q.Terms {
		if !words.Has(i) || r.q.IsStopWord(i) {
			continue
		}
		if k < len(terms) && r.lexicon.sim(i, terms[k]) >= least {
			k++
		} else {
			return false
		}
	}
	return k == len(terms) || k > 0 && r.q.Unfinished >= 0 && words.Has(r.q.Unfinished)
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
func (r recognizer) findMentions(all []place) (mentions []mention) {
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
	for i := range r.q.Terms {
		if !mayName(r.q, i) {
			continue
		}
		for to := i + 1; to <= min(len(r.q.Terms), i+6) && mayName(r.q, to-1); to++ {
			at := parse.Span(i, to)
			if !isLate(r.q, at) || isMentioned(mentions, at) {
				continue
			}
			if known := r.namedInTable(i, to); len(known) > 0 {
				add(mention{at: at, sim: 100, isLate: true, known: known})
			}
		}
	}
	for i := range mentions {
		if mentions[i].sim >= literalSim && r.q.Postcode.Code != 0 && !r.isInDepartment(mentions[i], all) {
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
func (r recognizer) isInDepartment(part mention, all []place) bool {
	typed := PostcodeText(r.q.Postcode.Code)
	agrees := func(code string) bool {
		return commune.DepartmentOf(code) == commune.DepartmentOf(typed) || typed[:2] == "20" && isCorsican(code)
	}
	for i := range all {
		if p := &all[i]; p.name != vintage.None && p.at&^p.departmentAt == part.at && p.sim >= literalSim && agrees(r.v.Commune(p.commune).String()) {
			return true
		}
	}
	if len(part.known) == 0 {
		part.known = r.namedInTable(part.at.First(), part.at.Last()+1)
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
func (r recognizer) namedInTable(from, to int) []*commune.Commune {
	first, last := r.q.Terms[from], r.q.Terms[to-1]
	if first.Part || text.ClassOf(first.Text) == text.StopWord || text.ClassOf(last.Text) == text.StopWord || parse.Span(from, to)&^r.q.Digits() == 0 {
		return nil
	}
	return r.table.Named(r.q.Terms[from:to])
}
