package search

import (
	"cmp"
	"slices"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// fitsFairly is the least fit of a street's name, in thousandths, at which a wrong postcode of the same department
// is forgiven.
const fitsFairly = 700

// placeFilter rejects candidates that lie elsewhere than the question says.
type placeFilter struct {
	*query
	found recognition
}

// accepts reports whether a candidate lies where the question says: in the named commune, or in the postcode.
// An address is never shown in a place that was not typed. One exception is marked as doubted: a house number that
// fits exactly, in another commune of the typed postcode.
func (f *placeFilter) accepts(c *Candidate) bool {
	if f.isElsewhere(c) {
		isConfirmed := c.Type == HouseNumber && c.isCertain && !c.IsAmbiguous && !c.lacksRep
		if !isConfirmed || c.postcode != samePostcode || f.q.Postcode.Code == 0 {
			return false
		}
		c.IsDoubted = true
		return true
	}
	c.IsDoubted = c.isContradicted
	return f.acceptsPostcode(c)
}

// acceptsPostcode reports whether a candidate may be meant despite the typed postcode. Next to the name of a commune a wrong one is
// forgiven, one of another department only if nothing else can be meant. Without a name an existing postcode binds; another one of
// the same commune or city is forgiven if street and number are confirmed.
func (f *placeFilter) acceptsPostcode(c *Candidate) bool {
	isNamed := f.isNamedPlace(c)
	switch {
	case c.postcode == regionPostcode:
		c.IsContradicted = !isInDepartmentOf(f.v, f.q.Postcode.Code, c)
		return isNamed && (c.Street == vintage.None || c.streetFit >= fitsFairly)
	case c.postcode == otherPostcode && c.postcodePrefix != 0 && f.q.Postcode.Code == 0:
		return isNamed
	case c.postcode == otherPostcode:
		c.IsContradicted = true
		return f.q.Postcode.Code != 0 && isNamed && c.sim >= confirmedSim && f.isAddressConfirmed(c) && f.namesOneCommune(c.place)
	case c.postcode == nearPostcode:
		c.IsContradicted = f.q.Postcode.Code != 0 && !isInDepartmentOf(f.v, f.q.Postcode.Code, c) || f.q.Postcode.Code == 0 && !isNamed
	case c.postcode == cityPostcode && !isNamed && c.Street != vintage.None && !f.q.Completing && !f.postcode.isCedex():
		c.IsContradicted = true
		return f.isAddressConfirmed(c) && !c.isMissing
	}
	return true
}

// isAddressConfirmed reports whether the name of a street is confirmed, and the number if the street has it.
func (f *placeFilter) isAddressConfirmed(c *Candidate) bool {
	return c.Street != vintage.None && c.isCertain && !c.IsAmbiguous && !c.lacksRep && !hasUnread(f.q, c)
}

// namesOneCommune reports whether the words of a place are the name of one commune alone, former ones and those of which
// the vintage has no row included.
func (f *placeFilter) namesOneCommune(p place) bool {
	at := p.at &^ p.departmentAt
	if at == 0 {
		return false
	}
	known := f.table.Named(f.q.Terms[at.First() : at.Last()+1])
	for _, c := range known {
		if cmp.Or(c.Parent, c.Code) != cmp.Or(known[0].Parent, known[0].Code) {
			return false
		}
	}
	return len(known) > 0
}

// isElsewhere reports whether words name a commune that the candidate does not lie in. Words name one after a
// postcode, in a field of their own, and at the end or the beginning of the line. They do not name one if the name of
// the street holds them and all other distinctive words are explained.
func (f *placeFilter) isElsewhere(c *Candidate) bool {
	if len(f.scope.Cited) > 0 {
		return !f.scope.Cited.Has(c.Commune) // a code outweighs a name
	}
	if f.isInUnknownPlace(c) || f.isOutsideDivision(c) {
		return true
	}
	if c.place.at != 0 && !c.isLate && c.used != 0 && c.used.First() < c.place.at.First() && c.place.at.Last() < c.used.Last() {
		return true // the name of the commune would stand within that of the street
	}
	if c.holdsAll {
		return false // nothing typed is left that could name another commune
	}
	for _, m := range f.found.mentions {
		if f.contradicts(m, c) {
			return true
		}
	}
	return false
}

// isInUnknownPlace reports whether the field of the commune holds an unknown name, and nothing else says where
// the address lies: no postcode, no code, no filter. After a postcode an unknown name leaves the postcode to bind.
func (f *placeFilter) isInUnknownPlace(c *Candidate) bool {
	if f.q.PlaceOnly == 0 || f.q.Postcode.At != 0 || f.scope.Communes != nil || c.place.at&f.q.PlaceOnly != 0 {
		return false
	}
	return f.q.Distinctive(c.unread&f.q.PlaceOnly&^f.q.InParens) != 0
}

// isOutsideDivision reports whether the last words name a department or region, nothing else names a place, and the candidate
// neither lies there nor holds the words in its own names.
func (f *placeFilter) isOutsideDivision(c *Candidate) bool {
	isLocated := c.name != vintage.None || c.postcode == samePostcode || c.departmentAt != 0
	return !isLocated && f.division.at&^f.q.Complement&c.unread != 0
}

// contradicts reports whether a mention names a commune that the candidate does not lie in. A mention that shares
// words with the candidate's own place counts only if it reads these words better.
func (f *placeFilter) contradicts(m communeMention, c *Candidate) bool {
	if m.at&c.place.at != 0 {
		isApart := m.at&c.used == 0 || hasUnread(f.q, c) || f.q.Distinctive(c.used)&^m.at == 0 && f.found.isBinding(m)
		return f.isBetter(m, c) && isApart && !f.found.isNamed(c.Commune, m)
	}
	hasLate := c.name != vintage.None && c.isLate && c.sim >= boundSim
	if !f.found.isBinding(m) || hasLate && !m.isLate || hasLate && c.sim >= literalSim && opensPhrase(f.q, m.at) {
		return false
	}
	distinctive := f.q.Distinctive(m.at)
	if distinctive == 0 {
		distinctive = m.at
	}
	matched, others := c.used, c.otherNames
	if m.sim >= literalSim {
		others &^= c.fuzzy // it is rather the commune than a misspelt lieu-dit
	}
	if m.sim >= literalSim && (!c.isWhollyTyped || m.at&c.lastWord == 0) {
		matched &^= c.fuzzy // nor is it likely to be a misspelt word of the street
	}
	isExplained := distinctive&^(matched|others) == 0
	switch {
	case isExplained && distinctive&^others == 0:
		return false
	case distinctive&matched != 0 && hasUnread(f.q, c):
		return true
	case isExplained:
		return m.sim >= literalSim && !f.found.isNamed(c.Commune, m) && !f.mayTakePlace(m, c)
	case m.sim < literalSim && distinctive&c.unread == 0:
		return false // a looser reading of a word that the street holds
	}
	return !f.found.isNamed(c.Commune, m)
}

// opensPhrase reports whether words follow one that marks them as the name of a building: résidence Azur.
func opensPhrase(q *parse.Question, words parse.Mask) bool {
	i := words.First() - 1
	for i >= 0 && q.IsStopWord(i) {
		i--
	}
	return i >= 0 && words&^q.Phrases == 0 && parse.IsPhraseWord(q.Terms[i].Typed)
}

// mayTakePlace reports whether the name of a street may hold words that name a commune elsewhere: after a kind of
// street, in a name that was typed in full (Grande Rue, Moulin Rouge), or if nothing else was typed. It sets
// borrowsCommune unless the name explains all that was typed, because any other such answer is never certain.
func (f *placeFilter) mayTakePlace(m communeMention, c *Candidate) bool {
	isAlone, isFull := f.q.Words()&^m.at == 0, c.isWhole && m.at&c.fuzzy == 0
	if m.sim >= literalSim && m.at&c.fuzzy != 0 && !isMisspeltThere(f.q, m.at&c.fuzzy, c) {
		return false
	}
	if !isAlone && !isFull && !opensWithType(f.q, c) && c.Street != vintage.None {
		return false
	}
	c.borrowsCommune = c.borrowsCommune || !isFull || c.unread&^f.q.Complement != 0
	return true
}

// isMisspeltThere reports whether words that name a commune exactly may still be misspelt words of a street: the commune
// of the street was typed elsewhere, or they stand right next to the other words of its name, of which a distinctive one was
// typed exactly.
func isMisspeltThere(q *parse.Question, words parse.Mask, c *Candidate) bool {
	return c.name != vintage.None && c.sim >= literalSim || c.used == c.contiguous && q.Distinctive(c.used&^c.fuzzy&^words) != 0
}

// isBetter reports whether a mention reads the words of the candidate's place better: it has more of them, or the
// same ones exactly. A mention with the unfinished word is not better, since that word may grow into
// another.
func (f *placeFilter) isBetter(m communeMention, c *Candidate) bool {
	if m.sim < literalSim || c.place.at&^m.at != 0 || m.at&unfinishedWord(f.q) != 0 {
		return false
	}
	return m.at != c.place.at || c.sim < literalSim
}

// isOld reports whether a name is that of a former commune.
func isOld(v *vintage.Vintage, name uint32) bool {
	return name != vintage.None && v.Place(name).Kind == vintage.Old
}

// isOtherOffice reports whether the place that was typed is a delivery office, and the address belongs to another one.
func isOtherOffice(v *vintage.Vintage, c *Candidate) bool {
	if c.name == vintage.None || c.facet.Delivery == vintage.None {
		return false
	}
	p := v.Place(c.name)
	return p.Kind == vintage.Delivery && p.Name != c.facet.Delivery && !slices.Equal(v.BareTerms(p.Name), v.BareTerms(c.facet.Delivery))
}

// relatePostcode compares the typed postcode with that of a candidate. The INSEE code of the commune counts
// as its postcode, because people mix the two up.
func (f *placeFilter) relatePostcode(c *Candidate) postcodeRelation {
	p, of := &f.q.Postcode, c.facet.Postcode
	switch {
	case c.postcodePrefix != 0 && of >= p.From && of < p.To:
		return prefixPostcode
	case len(f.postcode.near) > 0 && (p.Code != 0 || f.postcode.shortAt(c.used|c.At) != 0):
		if p.Code == 0 && of == p.Short {
			return zeroPostcode
		}
		if slices.Contains(f.postcode.near, of) {
			return nearPostcode
		}
		if p.Code == 0 {
			return otherPostcode
		}
	case c.postcodePrefix != 0:
		return otherPostcode
	}
	switch {
	case p.Code == 0:
		return noPostcode
	case of == p.Code || f.isCodeOf(c) || f.isCited(c.Commune):
		return samePostcode
	case f.postcode.isOf(c.Commune), f.postcode.city != nil && f.postcode.city.Has(c.Commune), f.postcode.isCedex() && of/1000 == p.Code/1000:
		return cityPostcode
	case of/1000 == p.Code/1000 || isInDepartmentOf(f.v, p.Code, c):
		return regionPostcode
	}
	return otherPostcode
}

// isCodeOf reports whether the typed characters are the code of a candidate's commune. If they are a postcode too, they are the code
// only next to its name.
func (f *placeFilter) isCodeOf(c *Candidate) bool {
	return f.postcode.isCode(c.Commune) && (f.postcode.code == 0 || f.isNamedPlace(c))
}

// isInDepartmentOf reports whether a postcode is one of the department in which a candidate lies, by the candidate's own
// postcode or by its commune.
func isInDepartmentOf(v *vintage.Vintage, postcode uint32, c *Candidate) bool {
	if of := c.facet.Postcode; of/1000 == postcode/1000 && (of/1000 < overseas || of/100 == postcode/100) {
		return true
	}
	typed, code := commune.DepartmentOf(PostcodeText(postcode)), v.Commune(c.Commune).String()
	return typed == commune.DepartmentOf(code) || typed == "20" && isCorsican(code)
}

// postcodeRelation is how the typed postcode relates to that of a candidate.
type postcodeRelation uint8

// worth is what a relation adds to the score, in thousandths of the share of the postcode.
func (r postcodeRelation) worth() int32 {
	switch r {
	case samePostcode, prefixPostcode:
		return 1000
	case zeroPostcode:
		return 950
	case cityPostcode:
		return 800
	case nearPostcode:
		return 600
	case regionPostcode:
		return 300
	}
	return 0
}

const (
	noPostcode     postcodeRelation = iota // none was typed
	samePostcode                           // it is the candidate's, or the INSEE code of its commune
	prefixPostcode                         // the candidate's begins with the digits typed
	zeroPostcode                           // the candidate's without the zero before it, as spreadsheets write it
	cityPostcode                           // another of the same commune, or of its post office (CEDEX)
	nearPostcode                           // no commune has it, and the candidate's is one digit away
	regionPostcode                         // another of the same department, or of one overseas too
	otherPostcode
)

// overseas are the first two digits of the overseas postcodes, in which a department has three.
const overseas = 97

// A street that is not in the base often has a namesake that is: impasse Bellevue and rue Bellevue, rue du Moulin and rue Jean
// Moulin, rue du Pont and rue du Port. The namesake is worth showing, since people confuse the two, but it is not what was
// typed, so nothing resolves to it without human confirmation.

// namesakes distinguishes such streets from misspelt ones.
type namesakes struct{ *query }

// has reports whether what was typed is rather the name of another street than that of a candidate.
func (n namesakes) has(c *Candidate) bool {
	if c.Street == vintage.None || n.q.Completing {
		return false
	}
	return n.isOfOtherKind(c) || n.isTiedOtherwise(c) || n.isAnotherWord(c) || isGuessed(n.q, c)
}

// isOfOtherKind reports whether the kind of street typed before the name of a candidate is neither the candidate's nor a letter
// away from it. A name without a kind is that of a hamlet or an estate, which may be typed with one.
func (n namesakes) isOfOtherKind(c *Candidate) bool {
	i := typedKind(n.q, c)
	if i < 0 || c.used.Has(i) {
		return false
	}
	typed, own := n.q.Terms[i].Text, kindOf(n.v, c)
	if own == "" {
		return !text.IsSettlement(typed)
	}
	return text.Distance(typed, own, 1) > 1
}

// typedKind is the kind of street right before the words of a candidate's name, or -1. Only links may stand between.
func typedKind(q *parse.Question, c *Candidate) int {
	if c.contiguous == 0 {
		return -1
	}
	i := c.contiguous.First()
	if q.IsStreetType(i) {
		return i
	}
	for i--; i >= 0 && q.IsStopWord(i) && q.Terms[i+1].Before&(text.Break|text.Close) == 0; i-- {
	}
	if i > 0 && q.Terms[i-1].Text == "zone" {
		i-- // zone artisanale
	}
	if i < 0 || !q.IsStreetType(i) || (q.Complement | c.at | c.otherNames).Has(i) || q.Terms[i+1].Before&(text.Break|text.Close) != 0 {
		return -1
	}
	return i
}

// kindOf is the kind of street with which the name of a candidate begins, or empty.
func kindOf(v *vintage.Vintage, c *Candidate) string {
	name := v.NameTerms(v.StreetName(c.Street))
	for k := range name.Len() {
		switch term := viewString(v.Term(name.At(k))); text.ClassOf(term) {
		case text.StreetType:
			return term
		case text.Content:
			return ""
		}
	}
	return ""
}

// isTiedOtherwise reports whether links were typed before the first word of a name that the name does not have there, and another
// word of it stands before that one: rue du Moulin is neither rue Jean Moulin nor rue du Champ Moulin. Titles are left out freely.
func (n namesakes) isTiedOtherwise(c *Candidate) bool {
	first := n.q.Distinctive(c.contiguous)
	if first == 0 {
		return false
	}
	i := first.First()
	typed := i
	for typed > 0 && n.q.IsStopWord(typed-1) && !c.at.Has(typed-1) {
		typed--
	}
	name := n.v.NameTerms(n.v.StreetName(c.Street))
	at := n.termOf(c, name, i)
	k := at - 1
	for k >= 0 && text.ClassOf(viewString(n.v.Term(name.At(k)))) == text.StopWord {
		k--
	}
	if typed == i || k < 0 || n.isHeld(c, name.At(k)) {
		return false
	}
	before := viewString(n.v.Term(name.At(k)))
	if k == 0 && text.ClassOf(before) == text.StreetType || text.IsTitle(before) || isSaint(before) || isNumber(before) {
		return false
	}
	return !n.areSameTerms(typed, i, name, k+1, at)
}

// termOf is the place in the name of a candidate of the first term that only this word of it stands for, or -1.
func (n namesakes) termOf(c *Candidate, name vintage.Column, word int) int {
	for k := range name.Len() {
		if n.lexicon.sim(word, name.At(k)) > 0 && !n.isSpelledByOther(c, name.At(k), word) {
			return k
		}
	}
	return -1
}

// isSpelledByOther reports whether another word of a candidate's name than one spells a term.
func (n namesakes) isSpelledByOther(c *Candidate, term uint32, word int) bool {
	for i := range n.q.Terms {
		if i != word && c.used.Has(i) && n.lexicon.sim(i, term) >= literalSim {
			return true
		}
	}
	return false
}

// isHeld reports whether a word of a candidate's name stands for a term.
func (n namesakes) isHeld(c *Candidate, term uint32) bool {
	for i := range n.q.Terms {
		if c.used.Has(i) && n.lexicon.sim(i, term) > 0 {
			return true
		}
	}
	return false
}

// areSameTerms reports whether the words [from, to) are the terms [at, end) of a name.
func (n namesakes) areSameTerms(from, to int, name vintage.Column, at, end int) bool {
	if to-from != end-at {
		return false
	}
	for k := range to - from {
		if n.q.Terms[from+k].Text != viewString(n.v.Term(name.At(at+k))) {
			return false
		}
	}
	return true
}

// commonShare bounds how many times more streets hold a term than hold a word that is taken for a misspelling of it, if that is a
// word of the base itself.
const commonShare = 8

// isAnotherWord reports whether the only typed word of a name is read as misspelt although it is about as common in the
// base itself: pont is not a misspelling of port, nor forge of forges.
func (n namesakes) isAnotherWord(c *Candidate) bool {
	distinctive := n.q.Distinctive(c.used)
	if literal := distinctive &^ c.fuzzy; literal != 0 && !areQualifiers(n.q, literal) {
		return false
	}
	name := n.v.NameTerms(n.v.StreetName(c.Street))
	for i := range n.q.Terms {
		if (distinctive & c.fuzzy).Has(i) && n.lexicon.hasExact(i) && n.isAnotherThan(c, i, name) {
			return true
		}
	}
	return false
}

// isAnotherThan reports whether a word of the base is not a misspelling of the term of a name for which it was taken. In another number
// the link before it decides: rue des Tilleul is rue des Tilleuls, rue du Tilleul is not.
func (n namesakes) isAnotherThan(c *Candidate, i int, name vintage.Column) bool {
	k := n.termOf(c, name, i)
	if k < 0 {
		return false
	}
	typed, term := n.q.Terms[i].Text, viewString(n.v.Term(name.At(k)))
	if i > 0 && n.q.IsStopWord(i-1) && (typed+"s" == term || term+"s" == typed) {
		return !c.used.Has(i - 1)
	}
	return n.v.StreetsWith(n.lexicon.alternatives[i][0].term).Len()*commonShare >= n.v.StreetsWith(name.At(k)).Len()
}

// isGuessed reports whether no distinctive word was typed as the name has it, and a part of the name was not typed at
// all.
func isGuessed(q *parse.Question, c *Candidate) bool {
	distinctive := q.Distinctive(c.used)
	return distinctive != 0 && distinctive&^c.fuzzy == 0 && !c.isWhollyTyped
}

// isDivisionAlone reports whether only the name of a department or region was typed, which no commune shares: no street
// that is named after it is meant.
func (n namesakes) isDivisionAlone() bool {
	words := n.q.Words()
	if words == 0 || words != parse.Span(words.First(), words.Last()+1) || !n.table.EndsDivision(n.q.Terms[words.Last()].Typed) {
		return false
	}
	first, last := words.First(), words.Last()
	_, length := n.table.DivisionsAtEnd(typedRun(n.q, first, last+1))
	for first < last && length < last+1-first && n.q.IsStopWord(first) {
		first++
	}
	return length >= last+1-first && len(n.table.Named(n.q.Terms[first:last+1])) == 0
}
