package search

import (
	"cmp"
	"slices"
	"sort"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/vintage"
)

// Type is what a record is.
type Type string

// The types, from the most to the least precise.
const (
	HouseNumber  Type = "housenumber"
	Street       Type = "street"
	Locality     Type = "locality"
	Municipality Type = "municipality"
)

// maxShortlisted is how many candidates are kept: as many as the longest answer has, and rivals that show whether
// the best one is unique.
const maxShortlisted = 32

// usuallyShortlisted is how many candidates most questions have at most.
const usuallyShortlisted = 2

// Candidate is an answer under consideration: a street, a row of it, or a commune.
type Candidate struct {
	Type    Type
	Commune uint32
	Street  uint32 // vintage.None for a commune
	Row     uint32 // vintage.None except for a house number
	IsCity  bool   // Paris, Lyon or Marseille as a whole; Commune is one of its arrondissements

	Score       int32 // of 10,000
	Bonus       int32 // for lying near the point of the scope
	IsConfirmed bool  // every typed word is confirmed exactly
	IsDoubted   bool  // a user must confirm it: it lies in another commune, or a reading is open

	IsContradicted bool // a user must confirm it: it contradicts the postcode, whose department is another or which binds without a commune

	place
	alignment
	number
	postcode       postcodeRelation
	facet          vintage.Facet
	otherNames     parse.Mask // words that name a place within the commune: lieu-dit, former commune, delivery office
	unread         parse.Mask // words that nothing of the candidate explains
	unknown        parse.Mask // of these, the ones that stand next to the address without a sign that sets them off
	postcodePrefix parse.Mask // a word read as the beginning of a postcode
	streetFit      int32      // how well the name of the street fits, in thousandths
	borrowsCommune bool       // words of its street name a commune that it does not lie in
	holdsAll       bool       // it holds every word of an unfinished line, the last one as the beginning of a word
	beginsSo       bool       // it does, and its name begins with these words in their order
}

// number is the house number as one street has it.
type number struct {
	parse.HouseNumber
	chosen      int        // the choice that the street has, or 0
	repAt       parse.Mask // a letter that is the repetition index, since the street has it
	rep         string     // the repetition index, as typed
	hasOtherRep bool       // the street writes it otherwise
	lacksRep    bool       // the street has the number, without that index
	isMissing   bool       // the street has none of the numbers
}

// terms are the words that say the number.
func (n *number) terms() parse.Mask { return n.At | n.repAt }

// isComplete reports whether a candidate holds every word of an unfinished line and has the typed number.
func (c *Candidate) isComplete() bool { return c.holdsAll && !c.isMissing && !c.lacksRep }

// compareBools sorts true first.
func compareBools(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}

// compareCandidates is the order of answers: of an unfinished line first what continues with it, then by score and nearness, then by importance, which is the order of
// communes and streets. The remaining keys only make the order total.
func compareCandidates(x, y *Candidate) int {
	return cmp.Or(compareBools(x.isComplete(), y.isComplete()), compareBools(x.beginsSo, y.beginsSo),
		cmp.Compare(y.Score+y.Bonus, x.Score+x.Bonus), compareDoubt(x, y), compareCities(x, y), cmp.Compare(x.Commune, y.Commune),
		-cmp.Compare(x.Street, y.Street)*streetOrderSign(x, y), cmp.Compare(x.Row, y.Row), cmp.Compare(y.rank(), x.rank()),
		cmp.Compare(x.name, y.name), cmp.Compare(x.at, y.at))
}

// compareDoubt sorts doubted candidates last.
func compareDoubt(x, y *Candidate) int {
	switch {
	case x.IsDoubted == y.IsDoubted:
		return 0
	case y.IsDoubted:
		return -1
	}
	return 1
}

// compareCities puts a city before its arrondissements.
func compareCities(x, y *Candidate) int {
	switch {
	case x.IsCity == y.IsCity:
		return 0
	case x.IsCity:
		return -1
	}
	return 1
}

// streetOrderSign is the factor that makes compareCandidates put a commune before its streets and keep streets in
// their order. A commune has the highest street ordinal, so its comparison is reversed.
func streetOrderSign(x, y *Candidate) int {
	if x.Street == vintage.None || y.Street == vintage.None {
		return 1
	}
	return -1
}

// shortlist holds the best candidates, the best first, each address once.
type shortlist struct{ best []Candidate }

// add adds a candidate, unless the list is full of better ones or holds a better reading of the same address.
func (l *shortlist) add(c *Candidate) {
	if n := len(l.best); n == maxShortlisted && compareCandidates(c, &l.best[n-1]) >= 0 {
		return
	}
	for i := range l.best {
		if b := &l.best[i]; isSameAddress(b, c) {
			if compareCandidates(c, b) >= 0 {
				return
			}
			l.best = slices.Delete(l.best, i, i+1)
			break
		}
	}
	at := sort.Search(len(l.best), func(i int) bool { return compareCandidates(&l.best[i], c) >= 0 })
	if len(l.best) == maxShortlisted {
		l.best = l.best[:maxShortlisted-1]
	}
	if l.best == nil {
		l.best = make([]Candidate, 0, usuallyShortlisted)
	}
	l.best = slices.Insert(l.best, at, *c)
}

// isSameAddress reports whether two candidates are readings of one address.
func isSameAddress(x, y *Candidate) bool {
	if x.IsCity || y.IsCity {
		return x.IsCity && y.IsCity
	}
	return x.Commune == y.Commune && x.Street == y.Street && x.Row == y.Row
}

// top is the score of the best candidate, or 0.
func (l *shortlist) top() int32 {
	if len(l.best) == 0 {
		return 0
	}
	return l.best[0].Score
}

// first is the best candidate, or nil.
func (l *shortlist) first() *Candidate {
	if len(l.best) == 0 {
		return nil
	}
	return &l.best[0]
}

// MissingNumber is the typed number that a street does not have.
func (c *Candidate) MissingNumber() (number uint32, ok bool) {
	if c.Type != Street || !c.isMissing {
		return 0, false
	}
	return c.Choices[0].Number, true
}

// Facet is what the address shares with others of its street: postcode, former commune, lieu-dit.
func (c *Candidate) Facet() vintage.Facet { return c.facet }

// unreadIn are the words of a set that nothing of the candidate explains.
func (c *Candidate) unreadIn(words parse.Mask) parse.Mask { return words &^ c.used &^ c.otherNames }

// How much each part of an address weighs in the score. Only the parts that were typed count, so the shares need no fixed
// sum. The street weighs most, because the other parts are easier to get wrong.
const (
	StreetShare   = 50
	CityShare     = 25
	PostcodeShare = 12
	NumberShare   = 10
)

// evidence is everything on which the score of a candidate depends. Parts that were not typed do not count.
type evidence struct {
	hasStreet bool
	streetFit int32 // in thousandths

	hasPlace   bool
	placeSim   int32 // in hundredths
	isLate     bool  // the name stands where a commune is expected
	isOldOther bool  // it is the name of a former commune that the address is not in, or of an office that does not deliver to it

	hasCode bool // an INSEE code was given
	isCoded bool // it is that of the commune

	postcode postcodeRelation

	hasNumber bool
	number    numberFit

	isElsewhere bool // the commune is not the one that was typed

	most int32 // the highest score next to a wrong postcode, 0 if it is not wrong
}

// numberFit says how well the house number fits.
type numberFit uint8

const (
	numberFound numberFit = iota
	numberOtherRep
	numberInList  // one of several that were typed
	numberNoRep   // found without its repetition index
	numberOpen    // it may be a complement's
	numberMissing // the street does not have it
	numberImpossible
)

// worth is what a fit adds to the score, in thousandths of the share of the number.
func (f numberFit) worth() int32 {
	return [...]int32{1000, 970, 900, 800, 700, 300, 0}[f]
}

// maxElsewhereScore is the highest score of an address in another commune than the typed one. It lies below
// likelyScore, so the search continues, and below that of a misspelt address in the typed commune next to a wrong postcode.
const maxElsewhereScore = 7270

// score is the weighted mean of what the typed parts are worth, of 10,000. A name of a place counts slightly less
// if it stands where no commune is expected, since it may belong to the street.
func (e *evidence) score() int32 {
	var sum shares
	if e.hasStreet {
		sum.add(StreetShare, e.streetFit)
	}
	if e.hasPlace {
		worth := e.placeSim * 10
		if !e.isLate {
			worth -= 80
		}
		if e.isOldOther {
			worth = worth * 8 / 10
		}
		sum.add(CityShare, worth)
	}
	if e.hasCode {
		sum.add(CityShare, thousandIf(e.isCoded))
	}
	if e.postcode != noPostcode {
		sum.add(PostcodeShare, e.postcode.worth())
	}
	if e.hasNumber {
		sum.add(NumberShare, e.number.worth())
	}
	score := sum.score()
	if e.most > 0 {
		score -= max(e.perfect()-e.most, 0)
	}
	if e.isElsewhere {
		return min(score, maxElsewhereScore)
	}
	return score
}

// The highest scores of an address next to a postcode that is not its own.
const (
	maxMiscodedScore   = 8500 // its commune was typed
	maxUnnamedMiscoded = 8000 // no commune was typed
)

// perfect is the score of an address that fits in all parts but the postcode.
func (e evidence) perfect() int32 {
	e.streetFit, e.placeSim, e.isLate, e.isOldOther, e.number, e.isElsewhere, e.most = 1000, 100, true, false, numberFound, false, 0
	return e.score()
}

// thousandIf is the full worth if ok, otherwise none.
func thousandIf(ok bool) int32 {
	if ok {
		return 1000
	}
	return 0
}

// shares sums what parts are worth, and their shares, for a weighted mean.
type shares struct{ worth, of int32 }

func (s *shares) add(share, thousandths int32) {
	s.worth += share * thousandths
	s.of += share
}

func (s *shares) score() int32 {
	if s.of == 0 {
		return 0
	}
	return s.worth * 10 / s.of
}

// unknownWorth is how much of the fit of a street remains next to a number of unknown words, in thousandths. The first
// takes more than the others, so that a misspelt street that explains the words comes first.
func unknownWorth(n int) int32 {
	if n == 0 {
		return 1000
	}
	return max(845-25*int32(n), 500)
}

// fitStreet is how well a name fits, in thousandths. It multiplies the share of the typed words that the name
// holds with a factor for the share of the name that was typed. That factor is milder for an unfinished line,
// to which the rest of the name may still be added.
func fitStreet(matched, total int32, a *alignment, completing bool) int32 {
	if total == 0 || a.totalWeight == 0 {
		return 0
	}
	typed, named := min(matched*10/total, 1000), min(a.nameWeight*10/a.totalWeight, 1000)
	if completing {
		return typed * (800 + named/5) / 1000
	}
	return typed * (500 + named/2) / 1000
}

// ranker scores candidates and keeps the best.
type ranker struct {
	*query
	list shortlist
}

// add scores a candidate and shortlists it if the scope lets it through. The list also keeps candidates
// with half of the accepted score; the caller decides which ones to show.
func (r *ranker) add(c *Candidate, e evidence) {
	c.Score = e.score()
	if c.Score < Accepted/2 || !r.passesScope(c) {
		return
	}
	c.IsConfirmed = r.isConfirmed(c)
	if r.scope.Near != nil {
		c.Bonus = bonus(vintage.Metres(*r.scope.Near, r.pointOf(c)))
	}
	r.list.add(c)
}

// evidenceOf collects what the score of a candidate depends on.
func (r *ranker) evidenceOf(c *Candidate) evidence {
	e := evidence{hasStreet: c.Street != vintage.None, streetFit: c.streetFit, postcode: c.postcode, isElsewhere: c.IsDoubted,
		hasCode: r.scope.Cited != nil, isCoded: r.scope.Cited.Has(c.Commune), hasNumber: c.IsTyped()}
	e.most = r.mostMiscoded(c)
	if c.name != vintage.None {
		e.hasPlace, e.placeSim, e.isLate = true, c.sim, c.isLate
		e.isOldOther = c.Type != Municipality && (isOld(r.v, c.name) && c.facet.Old != c.name || isOtherOffice(r.v, c))
	}
	if c.name == vintage.None && c.Street != vintage.None && r.q.Distinctive(c.unread&r.q.PlaceOnly&^r.q.Phrases) != 0 {
		e.hasPlace, e.placeSim, e.isLate = true, unknownPlaceSim, true
	}
	switch {
	case c.isMissing:
		e.number = numberMissing
	case c.IsAmbiguous:
		e.number = numberOpen
	case c.lacksRep:
		e.number = numberNoRep
	case c.IsList:
		e.number = numberInList
	case c.hasOtherRep:
		e.number = numberOtherRep
	}
	return e
}

// unknownPlaceSim is the likeness of words after a postcode that name no known place. It is not 0, since the base
// may lack a name that people use.
const unknownPlaceSim = 50

// mostMiscoded is the highest score that a street or an address may have next to the typed postcode if that is a wrong one, or 0.
func (r *ranker) mostMiscoded(c *Candidate) int32 {
	isWrong := c.postcode == cityPostcode || c.postcode == nearPostcode || c.postcode == regionPostcode || c.postcode == otherPostcode
	switch {
	case !isWrong || c.Street == vintage.None || r.q.Postcode.Code == 0 || r.postcode.isCedex():
		return 0
	case c.postcode == cityPostcode && !r.isNamedPlace(c):
		return maxUnnamedMiscoded
	case r.isNamedPlace(c) || c.otherNames != 0:
		return maxMiscodedScore
	}
	return 0
}

// isConfirmed reports whether a candidate confirms every typed word exactly. Only such a candidate may be
// answered as exact.
func (r *ranker) isConfirmed(c *Candidate) bool {
	hasName := c.name == vintage.None || c.sim >= confirmedSim
	return c.isCertain && c.fuzzy == 0 && !c.isMissing && !c.IsList && !c.IsAmbiguous && !c.lacksRep && !c.IsDoubted && hasName &&
		isExplained(r.q, c.unread) && r.isPlaceConfirmed(c) && !r.hasOpenNumber(c)
}

// isPlaceConfirmed reports whether the typed code, postcode and former commune are those of the candidate.
func (r *ranker) isPlaceConfirmed(c *Candidate) bool {
	if !r.scope.Cited.Has(c.Commune) || r.scope.Cited == nil && r.q.Postcode.Corsican != "" {
		return false
	}
	isRight := c.postcode == noPostcode || c.postcode == samePostcode || c.postcode == prefixPostcode
	if c.Type == Municipality {
		return isRight || c.postcode == cityPostcode && r.postcode.isOf(c.Commune)
	}
	return isRight && (!isOld(r.v, c.name) || c.facet.Old == c.name) && !isOtherOffice(r.v, c)
}

// hasOpenNumber reports whether the street has a number that was read as part of a complement although no word gives it to one.
// That number may be the house number, so the candidate is not certain.
func (r *ranker) hasOpenNumber(c *Candidate) (any bool) {
	if c.Street == vintage.None {
		return false
	}
	of := r.v.Street(c.Street)
	r.q.OpenNumbers(c.terms()|c.place.at, func(n uint32) bool {
		row := r.v.FirstNumber(of, n)
		any = row < of.To && r.v.Number(row) == n
		return !any
	})
	return any
}

// passesScope reports whether the scope lets a candidate through.
func (r *ranker) passesScope(c *Candidate) bool {
	if !r.wantsType(c.Type) || !r.scope.Communes.Has(c.Commune) {
		return false
	}
	return len(r.scope.Postcodes) == 0 || slices.Contains(r.scope.Postcodes, PostcodeText(c.facet.Postcode))
}

const (
	maxBonus        = 400   // the bonus at the point itself, of 10,000
	halfBonusMetres = 2_000 // the distance at which half of it is left
)

// bonus is the reward for nearness. It is small, so it decides only between candidates whose words fit about
// as well.
func bonus(metres float64) int32 {
	return int32(maxBonus * halfBonusMetres / (halfBonusMetres + metres))
}

// pointOf is where a candidate lies.
func (r *ranker) pointOf(c *Candidate) vintage.Point {
	switch c.Type {
	case HouseNumber:
		return r.v.RowPoint(c.Row)
	case Municipality:
		return r.v.Commune(c.Commune).Point
	}
	return r.v.Street(c.Street).Point
}

// dropDoubleCorrections drops the addresses of another postcode than the typed one if no commune was typed, and if something
// has the typed one, or if there are several of them.
func (r *ranker) dropDoubleCorrections() {
	isCorrected := func(c Candidate) bool { return c.IsContradicted && c.postcode == cityPostcode }
	corrected, others := 0, 0
	for i := range r.list.best {
		switch c := &r.list.best[i]; {
		case isCorrected(*c):
			corrected++
		case c.Score >= Accepted && c.Street != vintage.None:
			others++
		}
	}
	if others > 0 || corrected > 1 {
		r.list.best = slices.DeleteFunc(r.list.best, isCorrected)
	}
}

// preferNumbered lets the house number decide between streets of one commune that share a name and differ in their
// kind. If the best street lacks the typed number and such a street has it, the latter comes first. It gets the
// same score, so that neither is taken as certain. A street that was typed exactly, with its kind, stays first.
func (r *ranker) preferNumbered() {
	first := r.list.first()
	if first == nil || !first.isMissing || first.IsAmbiguous || first.IsList || r.q.Distinctive(first.used) == 0 || first.isCertain && opensWithType(r.q, first) {
		return
	}
	for i := range r.list.best {
		if c := &r.list.best[i]; isNumberedTwin(r.q, c, first) {
			found := *c
			found.Score, found.Bonus = first.Score, first.Bonus
			r.list.best = slices.Insert(slices.Delete(r.list.best, i, i+1), 0, found)
			return
		}
	}
}

// isNumberedTwin reports whether a candidate bears the typed number on a street that differs from another in its kind alone.
func isNumberedTwin(q *parse.Question, c, of *Candidate) bool {
	if c.Type != HouseNumber || c.Commune != of.Commune || c.lacksRep || c.IsAmbiguous || c.fuzzy != of.fuzzy {
		return false
	}
	return c.isWhollyTyped && of.isWhollyTyped && q.Distinctive(c.used) == q.Distinctive(of.used) && c.hasUntypedNumber == of.hasUntypedNumber
}

// levelScores lowers the score of any answer that scores higher than one before it.
func (r *ranker) levelScores() {
	for i := 1; i < len(r.list.best); i++ {
		r.list.best[i].Score = min(r.list.best[i].Score, r.list.best[i-1].Score)
	}
}

// hasEnoughBegun reports whether more answers continue with the line as it was typed than are ever shown. No other reading is looked at then.
func (r *ranker) hasEnoughBegun() bool { return r.hasBegun(enoughBegun) }

// hasBegun reports whether some number of answers continue with the line as it was typed.
func (r *ranker) hasBegun(n int) bool {
	return len(r.list.best) >= n && r.list.best[n-1].isComplete() && r.list.best[n-1].beginsSo
}

// namedBest is the best candidate, and whether it is confirmed and lies in a commune that the words name.
func (r *ranker) namedBest() (c *Candidate, ok bool) {
	c = r.list.first()
	return c, c != nil && c.IsConfirmed && c.name != vintage.None && r.q.Distinctive(c.used) != 0
}

// hasConfirmed reports whether the best candidate is confirmed.
func (r *ranker) hasConfirmed() bool {
	c := r.list.first()
	return c != nil && c.IsConfirmed
}

// isSplit reports whether the best candidate is confirmed with words that are not in the name of its street.
func (r *ranker) isSplit() bool {
	c := r.list.first()
	return c != nil && c.IsConfirmed && c.otherNames != 0
}

// unusedWords are the words that the best candidate does not explain as they were typed.
func (r *ranker) unusedWords() parse.Mask {
	b := r.list.first()
	if b == nil {
		return r.q.Words()
	}
	matched := b.used&^b.fuzzy | b.otherNames&^b.fuzzy | b.terms() | b.postcodePrefix
	if b.sim >= literalSim {
		matched |= b.at
	}
	return r.q.Words() &^ matched &^ r.q.Complement
}

// isSettled reports whether no looser reading can be better. The best candidate is nearly perfect, or it explains all
// words that have not been read as misspelt yet; then only its number, postcode or commune differs.
func (r *ranker) isSettled() bool {
	return r.list.top() >= sureScore || r.list.top() >= likelyScore && r.unusedWords()&^r.lexicon.fuzzied == 0
}
