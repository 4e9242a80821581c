package search

import (
	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// People write more than an address on its line: the name of a building, of a company, of what stands there. Such words
// have no sign of their own. They are taken for a complement only next to an address that needs none of them: its street
// and number are confirmed and its place holds. The name of a street that is not in the base also begins like another
// one, so that words that may belong to the name are not taken: a kind of street, a qualifier, a word tied by "de", and
// one that some street of the base has next to the last word of the name.

// complementReader reads the words next to an address that no reading explains.
type complementReader struct {
	*query
	words wordMatcher
}

// findUnknown are the words that nothing explains and that stand next to a confirmed address. There are none if one of
// them may belong to the name of the street.
func (r complementReader) findUnknown(c *Candidate, words parse.Mask) (unknown parse.Mask) {
	left := c.unreadIn(words) &^ r.q.Complement &^ r.q.PlaceOnly
	if r.q.Distinctive(left)|left&r.q.Digits() == 0 || r.q.Completing || !r.isSelfSufficient(c) {
		return 0
	}
	left &^= r.words.lightWords(c)
	for i := 0; i < len(r.q.Terms); {
		to := i
		for to < len(r.q.Terms) && left.Has(to) {
			to++
		}
		if to > i && !r.isAside(c, i, to) {
			return 0
		}
		i = to + 1
	}
	return left
}

// typoSim is the least likeness of a misspelt word of a street next to which unknown words may stand: one letter of five.
const typoSim = 77

// isSelfSufficient reports whether a candidate is an address that needs no other word: each word of its street is confirmed, but for
// a letter of one that the base lacks, and they stand together; the street has the number, or none was typed and its kind
// was; and the place is certain.
func (r complementReader) isSelfSufficient(c *Candidate) bool {
	if !c.isWhole || c.used != c.contiguous || c.fuzzy != 0 && (c.fuzzySim < typoSim || r.hasExactWord(c.fuzzy)) {
		return false
	}
	isNumberRight := c.Type == HouseNumber && !c.IsAmbiguous && !c.lacksRep || c.Type == Street && !c.IsTyped() && opensWithType(r.q, c)
	isPlaceRight := r.isPlaced(c) || r.scope.Cited != nil && r.scope.Cited.Has(c.Commune)
	return isNumberRight && isPlaceRight && r.q.Distinctive(c.used)|innerTypes(r.q, c.used) != 0
}

// hasExactWord reports whether some term of the base spells a word of a set.
func (r complementReader) hasExactWord(words parse.Mask) bool {
	for i := range r.q.Terms {
		if words.Has(i) && r.lexicon.hasExact(i) {
			return true
		}
	}
	return false
}

// isAside reports whether the terms [from, to) stand next to the name of a candidate's street and are no part of it.
func (r complementReader) isAside(c *Candidate, from, to int) bool {
	switch name := c.contiguous; {
	case from > name.Last():
		return r.isBehindName(c, from, to)
	case to <= name.First():
		return r.isAheadOfName(c, from, to)
	}
	return false
}

// isBehindName reports whether terms behind the name of a street are no part of it. An article ends a name, since names
// are not joined to what follows by an article alone.
func (r complementReader) isBehindName(c *Candidate, from, to int) bool {
	first := from
	for first < to && r.q.IsStopWord(first) {
		if !isArticle(r.q.Terms[first]) {
			return r.q.Distinctive(parse.Span(from, to)) == 0 || first+1 < to && saysWhere(r.q.Terms[first+1].Text)
		}
		first++
	}
	if first == to {
		return true
	}
	if r.q.IsStreetType(first) || r.q.Terms[first].Digits || extendsName(r.q.Terms[first].Text) || isRegionalLink(r.q.Terms[first].Typed) {
		return false
	}
	isNext := from == c.contiguous.Last()+1
	return !isNext || first > from || !r.mayFollow(c, first)
}

// isAheadOfName reports whether terms between the house number and the name of a street are no part of the name. The
// name must begin with its kind.
func (r complementReader) isAheadOfName(c *Candidate, from, to int) bool {
	if !opensWithType(r.q, c) || c.At.Last() > from || r.q.IsStopWord(to-1) || r.q.HasStreetType(parse.Span(from, to)) {
		return false
	}
	for i := from; i < to; i++ {
		if r.q.Terms[i].Digits || extendsName(r.q.Terms[i].Text) {
			return false
		}
	}
	first := r.v.NameTerms(r.v.StreetName(c.Street)).At(0)
	for _, a := range r.lexicon.alternatives[to-1] {
		if a.sim >= literalSim && r.standTogether(a.term, first) {
			return false
		}
	}
	return true
}

// saysWhere reports whether a word behind a preposition says where something stands: à côté de, en face de.
func saysWhere(word string) bool {
	switch word {
	case "cote", "face", "dessus", "dessous", "fond", "droite", "gauche", "angle", "bord", "niveau", "bout", "pied", "entree", "hauteur":
		return true
	}
	return false
}

// isArticle reports whether a term is an article without a preposition.
func isArticle(t text.Term) bool {
	switch t.Typed {
	case "le", "la", "les", "l":
		return true
	}
	return false
}

// isRegionalLink reports whether a word means "de" or "du" in the names of a region: mas del fesc, hent ar feunteun.
func isRegionalLink(word string) bool {
	switch word {
	case "del", "dels", "dal", "dou", "di", "ar", "an", "er":
		return true
	}
	return false
}

// extendsName reports whether a term next to the name of a street makes another name of it.
func extendsName(term string) bool {
	switch term {
	case "prolonge", "prolongee", "superieur", "superieure", "inferieur", "inferieure", "nord", "sud", "est", "ouest", "annexe", "bis", "ter", "i", "ii", "iii", "iv",
		"droit", "droite", "gauche", "centre", "central", "centrale", "interieur", "interieure", "exterieur", "exterieure":
		return true
	}
	return text.IsQualifier(term)
}

// mayFollow reports whether a word may continue the name of a street: some street of the base has it next to the last
// word of the name.
func (r complementReader) mayFollow(c *Candidate, word int) bool {
	name := r.v.NameTerms(r.v.StreetName(c.Street))
	if c.lastWord != parse.Bit(c.contiguous.Last()) {
		return true // the words stand in another order
	}
	for _, a := range r.lexicon.alternatives[word] {
		if r.standTogether(name.At(name.Len()-1), a.term) {
			return true
		}
	}
	return false
}

// maxNeighbours bounds the streets that are looked at for two terms side by side.
const maxNeighbours = 8_192

// standTogether reports whether a street of the base has one term right before another. Links between them do not count.
// It also reports true where too many streets would have to be looked at.
func (r complementReader) standTogether(before, behind uint32) bool {
	few, many := r.v.StreetsWith(before), r.v.StreetsWith(behind)
	if few.Len() > many.Len() {
		few, many = many, few
	}
	c := cursor{column: many}
	for j := range few.Len() {
		r.budget.left--
		if j == maxNeighbours || r.budget.left <= 0 {
			return true
		}
		if street := few.At(j); c.seek(street) && hasPair(r.v, r.v.StreetName(street), before, behind) {
			return true
		}
	}
	return false
}

// hasPair reports whether a name has one term right before another, but for links.
func hasPair(v *vintage.Vintage, name, before, behind uint32) bool {
	last := uint32(vintage.None)
	for terms, k := v.NameTerms(name), 0; k < terms.Len(); k++ {
		t := terms.At(k)
		if t == behind && last == before {
			return true
		}
		if text.ClassOf(viewString(v.Term(t))) != text.StopWord {
			last = t
		}
	}
	return false
}

// strangeWords are the words of a candidate's complement that no reading explains: the unknown ones, and those that signs
// set off from an address with a number. A second street is not a complement.
func (r complementReader) strangeWords(c *Candidate) parse.Mask {
	out := c.unknown
	if c.Type != HouseNumber {
		return out
	}
	apart := r.words.lightWords(c) & c.unread &^ c.unknown &^ r.q.Phrases &^ beforeNumber(r.q, c) &^ r.q.Corner
	if c.name != vintage.None && c.sim >= literalSim {
		apart |= c.unread & r.q.PlaceOnly &^ r.q.Phrases // a part of town, or what stands there
	}
	for i := 0; i < len(r.q.Terms); {
		to := i
		for to < len(r.q.Terms) && apart.Has(to) {
			to++
		}
		run := parse.Span(i, to)
		isOwned := i > 0 && c.unknown.Has(i-1) && r.q.Distinctive(run)|r.q.StreetTypes(run) == 0 // module 022375
		if to > i && (isOwned || !r.q.IsStreetType(i) && !r.q.Terms[i].Digits && r.q.Distinctive(run) != 0) {
			out |= run
		}
		i = to + 1
	}
	return out
}

// hasBareTail reports whether words are left unread behind or within the name of a street that neither a sign nor a word of a
// complement sets off from it. They may belong to the name of another street, and so may a second street.
func (r complementReader) hasBareTail(c *Candidate) bool {
	if c.Street == vintage.None || c.contiguous == 0 || c.unknown != 0 {
		return c.unknown != 0
	}
	bare := c.unread &^ r.q.Complement &^ r.q.PlaceOnly &^ r.q.Corner &^ parse.Span(0, c.used.First())
	second := r.words.secondStreet(c) & bare &^ r.q.Phrases
	if second != 0 && r.q.Terms[second.First()].Before&(text.Break|text.Open) != 0 {
		bare &^= second
	}
	return r.q.Distinctive(bare&^(r.words.lightWords(c)&^second)) != 0
}
