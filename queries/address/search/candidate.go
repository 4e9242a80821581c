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
	Row     uint32 // vintage.None but for a house number
	IsCity  bool   // Paris, Lyon or Marseille as a whole; Commune is one of its arrondissements

	Score       int32 // of 10,000
	Bonus       int32 // for lying near the point of the scope
	IsConfirmed bool  // every typed word is confirmed exactly
	IsDoubted   bool  // a user must confirm it: it lies in another commune, or a reading is open

	IsContradicted bool // a user must confirm it: the typed postcode is that of another department, or binds where no commune was typed

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

// compareCandidates is the order of answers: of an unfinished line first what continues with it, then by score and nearness, then by importance, which is the order of
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
