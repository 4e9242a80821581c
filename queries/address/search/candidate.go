package search

import (
	"cmp"
	"slices"

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

// shortlisted is how many candidates are kept: the longest answer, and rivals to judge it by.
const shortlisted = 32

// Candidate is an answer under consideration: a street, a row of it, or a commune.
type Candidate struct {
	Type    Type
	Commune uint32
	Street  uint32 // vintage.None for a commune
	Row     uint32 // vintage.None but for a house number
	IsCity  bool   // Paris, Lyon or Marseille as a whole; Commune is one of its arrondissements

	Score     int32 // of 10,000
	Bonus     int32 // for lying near
	IsSound   bool  // every typed word is confirmed
	IsDoubted bool  // it may not stand for what was typed without a look: another commune, an open reading

	place
	alignment
	number
	postcode   postcodeRelation
	facet      vintage.Facet
	other      parse.Mask // words that name a place within the commune: lieu-dit, former commune, delivery office
	unread     parse.Mask // words that nothing of the candidate explains
	stem       parse.Mask // a word read as the beginning of a postcode
	streetFits int32      // how well the name of the street fits, in thousandths
	takesPlace bool       // words of its street name a commune that it does not lie in
}

// number is the house number as one street has it.
type number struct {
	parse.HouseNumber
	chosen    int        // the choice that the street has, or 0
	repAt     parse.Mask // a letter that is the repetition index, since the street has it
	rep       string     // the repetition index, as typed
	otherRep  bool       // the street writes it otherwise
	noRep     bool       // the street has the number, without that index
	isMissing bool       // the street has none of the numbers
}

// terms are the words that say the number.
func (n *number) terms() parse.Mask { return n.At | n.repAt }

// compareCandidates is the order of answers: by score and nearness, then by importance, which is the order of communes and
// streets.
func compareCandidates(x, y *Candidate) int {
	return cmp.Or(cmp.Compare(y.Score+y.Bonus, x.Score+x.Bonus), compareDoubt(x, y), compareCities(x, y), cmp.Compare(x.Commune, y.Commune),
		-cmp.Compare(x.Street, y.Street)*municipal(x, y), cmp.Compare(x.Row, y.Row), cmp.Compare(y.rank(), x.rank()),
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

// municipal puts a commune before its streets, and streets in their order.
func municipal(x, y *Candidate) int {
	if x.Street == vintage.None || y.Street == vintage.None {
		return 1
	}
	return -1
}

// shortlist holds the best candidates, the best first, each address once.
type shortlist struct{ best []Candidate }

// add takes a candidate in, unless others are better or it is known from a better reading.
func (l *shortlist) add(c *Candidate) {
	if n := len(l.best); n == shortlisted && compareCandidates(c, &l.best[n-1]) >= 0 {
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
	at, _ := slices.BinarySearchFunc(l.best, c, func(b Candidate, c *Candidate) int { return compareCandidates(&b, c) })
	if len(l.best) == shortlisted {
		l.best = l.best[:shortlisted-1]
	}
	l.best = slices.Insert(l.best, at, *c)
}

func isSameAddress(x, y *Candidate) bool {
	if x.IsCity || y.IsCity {
		return x.IsCity && y.IsCity
	}
	return x.Commune == y.Commune && x.Street == y.Street && x.Row == y.Row
}

// top is the score of the best.
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
