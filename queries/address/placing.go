package address

import (
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// addPlace adds what the typed commune and postcode are worth.
func (q *question) addPlace(sum *shares, c *candidate, f vintage.Facet) {
	if c.place != vintage.None {
		worth := c.sim * 10
		if !c.late {
			worth -= 80
		}
		if q.old(c.place) && c.kind != Municipality && f.Old != c.place {
			worth = worth * 8 / 10
		}
		sum.add(cityShare, worth)
	}
	if q.cited != nil {
		sum.add(cityShare, 1000*q.citedShare(c))
	}
	if c.stem != 0 {
		sum.add(postcodeShare, 1000*q.stem.share(f.Postcode))
	}
	if q.postcode == 0 {
		return
	}
	switch {
	case f.Postcode == q.postcode:
		sum.add(postcodeShare, 1000)
	case q.hasPostcode(c.commune):
		sum.add(postcodeShare, 800)
	case q.cedex && f.Postcode/1000 == q.postcode/1000:
		sum.add(postcodeShare, 800)
	case f.Postcode/1000 == q.postcode/1000:
		sum.add(postcodeShare, elsewhereShare)
	default:
		sum.add(postcodeShare, 0)
	}
}

// citedShare is 1 for a commune whose code was typed.
func (q *question) citedShare(c *candidate) int32 {
	if q.cited.has(c.commune) {
		return 1
	}
	return 0
}

// confirmed says whether every word that was typed is confirmed by a candidate, letter for letter.
func (q *question) confirmed(c *candidate) bool {
	named := c.place == vintage.None || c.sim >= confirmedSim
	return c.certain && c.loose == 0 && !c.missing && !c.ranged && named && q.explained(c) && q.placeConfirmed(c)
}

// confirmedSim is how alike the name of a place is that is no other.
const confirmedSim = 98

// explained says whether a candidate leaves no word aside but links.
func (q *question) explained(c *candidate) bool {
	words := q.words() &^ c.stem &^ c.span &^ c.used &^ c.numberAt &^ c.repAt
	for i := range q.terms {
		if words.has(i) && (len(q.terms[i].Typed) == 1 || text.ClassOf(q.terms[i].Text) != text.Link) {
			return false
		}
	}
	return true
}

// placeConfirmed says whether postcode and former commune are those of the candidate.
func (q *question) placeConfirmed(c *candidate) bool {
	if !q.cited.has(c.commune) {
		return false
	}
	if c.kind == Municipality {
		return q.postcode == 0 || q.hasPostcode(c.commune)
	}
	f := q.facet(c, q.v.Street(c.street))
	return (q.postcode == 0 || f.Postcode == q.postcode) && (!q.old(c.place) || f.Old == c.place)
}
