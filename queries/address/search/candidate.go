package search

import (
	"cmp"
	"slices"
	"sort"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
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
	Row     uint32 // vintage.None but for a house number
	IsCity  bool   // Paris, Lyon or Marseille as a whole; Commune is one of its arrondissements

	Score     int32 // of 10,000
	Bonus     int32 // for lying near the point of the scope
	IsSound   bool  // every typed word is confirmed letter for letter
	IsDoubted bool  // a user must confirm it: it lies in another commune, or a reading is open

	IsContradicted bool // a user must confirm it: the typed postcode is that of another department, or binds where no commune was typed

	place
	alignment
	number
	postcode       postcodeRelation
	facet          vintage.Facet
	otherNames     parse.Mask // words that name a place within the commune: lieu-dit, former commune, delivery office
	unread         parse.Mask // words that nothing of the candidate explains
	unknown        parse.Mask // of these, the ones that stand beside the address without a sign that sets them off
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

// compareBools puts true first.
func compareBools(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}

// compareCandidates is the order of answers: of an unfinished line first what goes on with it, then by score and nearness, then by importance, which is the order of
// communes and streets. The remaining keys only make the order total.
func compareCandidates(x, y *Candidate) int {
	return cmp.Or(compareBools(x.isComplete(), y.isComplete()), compareBools(x.beginsSo, y.beginsSo),
		cmp.Compare(y.Score+y.Bonus, x.Score+x.Bonus), compareDoubt(x, y), compareCities(x, y), cmp.Compare(x.Commune, y.Commune),
		-cmp.Compare(x.Street, y.Street)*streetOrderSign(x, y), cmp.Compare(x.Row, y.Row), cmp.Compare(y.rank(), x.rank()),
		cmp.Compare(x.name, y.name), cmp.Compare(x.at, y.at))
}

// compareDoubt puts what is not doubted first.
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

// add takes a candidate in, unless the list is full of better ones or holds a better reading of the same address.
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

// isSameAddress says whether two candidates are readings of one address.
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

// Explanation says which of the typed words a candidate takes for which part of an address.
type Explanation struct {
	Number, Rep, Street, Postcode, City, Complement string   // as typed, folded
	Unknown                                         []string // words of the complement that no reading explains, links left out

	IsNumberTyped bool
	IsOtherNumber bool // the number is not the first of those typed
	IsRepKept     bool // the repetition index is the street's
	IsStreetSame  bool // the street fits letter for letter, and no typed word is left over
	IsCitySame    bool
	IsCityUnknown bool // City holds words that do not name the commune of the candidate
	IsCode        bool // the typed digits are the INSEE code of the commune
	IsFromPlace   bool // words of the street also name a commune elsewhere
	HasUnread     bool // words other than kinds of streets are left that nothing explains
	MayBeOther    bool // words behind the street, or one that the base has elsewhere, may make another street of it
	IsNamesake    bool // another street was typed, or none, and this one has a like name
}

// mostMisspelt is how many letters of a long word may differ from one of the name of the commune.
const mostMisspelt = 2

// Explain says which typed words a candidate takes for which part of the address.
func (r *Result) Explain(c *Candidate) Explanation {
	s := r.run
	x := Explanation{IsNumberTyped: c.IsTyped(), IsOtherNumber: c.chosen > 0, Rep: c.rep, IsRepKept: c.rep != "" && !c.isMissing && !c.lacksRep,
		IsCode: s.postcode.isCode(c.Commune) || s.isCited(c.Commune), IsFromPlace: c.borrowsCommune}
	x.Number = s.q.Typed(c.At &^ s.q.Reps &^ c.repAt)
	if c.IsList {
		x.Number = s.q.Typed(c.At)
	}
	cityWords := c.place.at
	unknown := s.found.unknownPlaceWords(c)
	if unknown != 0 && (cityWords == 0 || s.isOtherPlace(c, unknown)) {
		cityWords, x.IsCityUnknown = cityWords|unknown, true
	}
	named := c.otherNames & s.q.PlaceOnly &^ c.fuzzy // a former commune or a delivery office
	if cityWords == 0 && c.Street != vintage.None {
		cityWords = named
	}
	x.City = s.q.Typed(cityWords)
	x.IsCitySame = (c.sim >= confirmedSim || cityWords != 0 && cityWords == named) && !c.IsDoubted
	building := buildingWords(s.q, c)
	strange := building | s.match.complements.strangeWords(c)
	if x.IsCityUnknown {
		strange &^= unknown
	}
	aside := (s.q.Complement | s.q.Postal | strange) &^ c.repAt
	postcode := s.q.Postcode.At
	if c.postcode == nearPostcode || c.postcode == zeroPostcode {
		postcode |= s.postcode.shortAt(c.used | c.At)
	}
	if !x.IsCode || s.postcode.code != 0 && c.postcode == samePostcode && c.facet.Postcode == s.postcode.code {
		x.Postcode, x.IsCode = s.q.Typed(postcode), false
	}
	street := s.q.Words() &^ cityWords &^ unknown &^ c.terms() &^ aside &^ postcode &^ c.postcodePrefix
	if c.Street != vintage.None || !isExplained(s.q, street) {
		x.Street = s.q.Typed(street)
	}
	left := c.unread &^ unknown &^ strange &^ s.q.Corner
	x.HasUnread = !isExplained(s.q, left&^s.q.StreetTypes(left))
	x.IsStreetSame = c.isCertain && c.fuzzy == 0 && isExplained(s.q, left)
	x.Unknown, x.MayBeOther = typedWords(s.q, strange&^s.q.Complement), s.match.complements.hasBareTail(c) || c.isRespelt
	x.IsNamesake = namesakes{s.query}.has(c) || c.Street != vintage.None && namesakes{s.query}.isDivisionAlone()
	x.Complement = s.q.Typed(aside &^ country(s.q) &^ s.q.CodeSign)
	return x
}

// buildingWords are unread words before the house number. They name a building or a company there. They are empty
// where they hold a kind of street, since another street is no complement.
func buildingWords(q *parse.Question, c *Candidate) parse.Mask {
	before := c.unread & beforeNumber(q, c) &^ q.PlaceOnly
	if !c.IsTyped() || c.Street == vintage.None || q.Distinctive(before)|before&q.Digits() == 0 || q.HasStreetType(before&^q.Phrases) {
		return 0
	}
	return before
}

// unknownPlaceWords are the words that stand where a commune does and do not name that of the candidate.
func (r recognition) unknownPlaceWords(c *Candidate) (out parse.Mask) {
	out = c.unread & r.q.PlaceOnly &^ r.q.Phrases
	for _, m := range r.mentions {
		if r.isBinding(m) && m.at&c.place.at == 0 && m.at&^c.unread == 0 {
			out |= m.at
		}
	}
	return out
}

// isOtherPlace says whether words that are left unread beside the name of the commune make another name of it: Saint-Xyz is no
// writing of Saint-Bauzile, but Saint-Bausile is. What stands beside a name that was typed in full is a part of town.
func (x *query) isOtherPlace(c *Candidate, unread parse.Mask) bool {
	unread &= x.q.PlaceOnly &^ x.q.InParens
	if c.name == vintage.None || c.sim >= literalSim {
		return false
	}
	name := x.v.BareTerms(x.v.Place(c.name).Name)
	for i, t := range x.q.Terms {
		most := min(mostMisspelt, 1+len(t.Text)/6)
		isLike := func(term uint32) bool { return text.Distance(t.Text, string(x.v.Term(term)), most) <= most }
		if x.q.Distinctive(unread).Has(i) && !slices.ContainsFunc(name, isLike) {
			return true
		}
	}
	return false
}

// country are the terms that name the country.
func country(q *parse.Question) (out parse.Mask) {
	for i := range q.Terms {
		switch q.Terms[i].Typed {
		case "france", "metropolitaine", "metropolitan":
			out |= parse.Bit(i) & q.Postal
		}
	}
	return out
}

// IsExact says whether candidate i is confirmed and no other of its type is or fits as well. It is false where other answers
// may have been left out.
func (r *Result) IsExact(i int) bool {
	c := &r.Best[i]
	if r.IsTruncated || !c.IsSound || slices.Contains(r.leftOut, c.Type == Municipality) {
		return false
	}
	for j := range r.Best {
		if of := &r.Best[j]; j != i && of.Type == c.Type && (of.IsSound || of.Score >= c.Score) {
			return false
		}
	}
	return true
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

// TypedOf is how many characters of a word of a label were typed.
func (r *Result) TypedOf(t text.Term) int {
	s := r.run
	id, ok := s.v.FindTerm(t.Text)
	if !ok {
		for i := range s.q.Terms {
			if s.q.Terms[i].Typed == t.Typed {
				return t.End - t.Start
			}
		}
		return 0
	}
	most := 0
	for i := range s.q.Terms {
		switch sim := s.lexicon.sim(i, id); {
		case sim == 0:
		case s.lexicon.prefixes.Has(i) && sim == s.lexicon.prefixSimOf(i):
			most = max(most, min(t.End-t.Start, s.q.Terms[i].End-s.q.Terms[i].Start))
		default:
			return t.End - t.Start
		}
	}
	return most
}

// NamedCommune is the commune that was typed beside a street, or one that has the typed postcode. It may answer
// for an address that was not found.
func (r *Result) NamedCommune() (Candidate, bool) {
	s := r.run
	best := -1
	places := s.communes.recognize().places
	for i, p := range places {
		isNamed := p.name != vintage.None && p.isLate && p.sim >= confirmedSim
		if (isNamed || p.hasTypedCode && s.postcode.code != 0) && (best < 0 || p.rank() > places[best].rank()) {
			best = i
		}
	}
	if best < 0 || s.scope.Cited != nil && !s.scope.Cited.Has(places[best].commune) {
		return Candidate{}, false
	}
	p := places[best]
	c := Candidate{place: p, Type: Municipality, Commune: p.commune, Street: vintage.None, Row: vintage.None, IsDoubted: true}
	c.facet = vintage.Facet{Postcode: s.postcode.communePostcode(p.commune), Old: vintage.None}
	c.unread = s.q.Words() &^ p.at
	c.postcode = s.match.places.relatePostcode(&c)
	c.IsCity = s.match.isWholeCity(&c)
	e := s.ranking.evidenceOf(&c)
	e.hasStreet, e.isElsewhere = true, false
	c.Score = e.score()
	return c, true
}
