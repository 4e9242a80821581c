package address

import (
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// How much each component weighs in the score, of those that were typed.
const (
	streetShare   = 50
	cityShare     = 25
	postcodeShare = 12
	numberShare   = 10

	elsewhereShare = 300 // of a postcode that is another of the same department
)

// judge compares a street with the words a guess left over, and shortlists the rows that bear the typed number, or the
// street itself.
func (q *question) judge(g guess, street uint32, words mask) {
	q.steps -= 8
	s := q.v.Street(street)
	c := candidate{guess: g, kind: StreetType, street: street, row: vintage.None}
	c.alignment = q.align(q.v.NameTerms(s.Name), words)
	c.stem = q.stem.at &^ c.used
	words &^= c.stem
	if s.Locality {
		c.kind = LocalityType
	}
	if c.used == 0 {
		return
	}
	c.numbering = q.readNumber(c.alignment, words&^c.used)
	known := c.typed() && !s.Locality && q.judgeRows(c, s, words)
	if known && q.wants(HouseNumber) {
		return
	}
	c.missing = c.typed() && !known
	q.score(c, s, words)
}

// judgeRows shortlists the rows of a street that bear the typed number and repetition index, and says whether any does.
func (q *question) judgeRows(c candidate, s vintage.Street, words mask) (any bool) {
	from, to := q.rows(s, c.numbering)
	for row := from; row < to; row++ {
		r, rep := c, string(q.v.Rep(row))
		if c.maybe != 0 && rep != "" && rep == q.typed(c.maybe) {
			r.rep, r.repAt = rep, c.maybe
		}
		if sameRep(r.rep, rep) {
			r.kind, r.row, r.otherRep = HouseNumber, row, r.rep != text.Fold(rep)
			q.score(r, s, words)
			any = true
		}
	}
	return any
}

// judgeCommune shortlists the commune itself.
func (q *question) judgeCommune(g guess, words mask) {
	c := candidate{guess: g, kind: Municipality, street: vintage.None, row: vintage.None, stem: q.stem.at}
	words &^= c.stem
	c.alignment = alignment{first: maxTerms, certain: true}
	c.numbering = q.readNumber(c.alignment, words)
	c.missing = c.typed()
	var sum shares
	if q.weigh(words&^c.numberAt&^c.repAt) > 0 {
		sum.add(streetShare, 0)
	}
	q.addPlace(&sum, &c, vintage.Facet{Postcode: q.communePostcode(g.commune), Old: vintage.None})
	if c.typed() {
		sum.add(numberShare, 0)
	}
	q.enlist(&c, sum)
}

// enlist settles a candidate's score and shortlists it if the question lets it through.
func (q *question) enlist(c *candidate, sum shares) {
	c.score = sum.score()
	if c.score < accepted/2 || !q.passes(c) {
		return
	}
	c.sound = q.confirmed(c)
	if q.here != nil {
		c.bonus = bonus(vintage.Metres(*q.here, q.pointOf(c)))
	}
	q.list.add(c)
}

// communePostcode is the typed postcode when the commune has it, or one that begins as it, else its first.
func (q *question) communePostcode(commune uint32) uint32 {
	if q.hasPostcode(commune) {
		return q.postcode
	}
	codes := q.v.CommunePostcodes(commune)
	if begun := codes.Within(q.stem.from, q.stem.to); begun.Len() > 0 {
		return begun.At(0)
	}
	return codes.At(0)
}

// shares sums what the typed components are worth, in thousandths.
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

// score settles the score of a street or row.
func (q *question) score(c candidate, s vintage.Street, words mask) {
	f := q.facet(&c, s)
	left := words &^ c.used &^ c.numberAt &^ c.repAt
	total := q.weigh(words &^ c.numberAt &^ c.repAt)
	held := c.held
	for _, name := range [...]uint32{f.LieuDit, q.oldName(f), f.Delivery} {
		if left != 0 && name != vintage.None {
			extra := q.align(q.v.NameTerms(name), left)
			if q.weigh(extra.used) <= int32(extra.used.count())*linkWeight {
				continue
			}
			c.used |= extra.used
			left &^= extra.used
			held += extra.held * 95 / 100
			c.loose |= extra.loose
		}
	}
	var sum shares
	sum.add(streetShare, q.streetWorth(held, total, c.alignment))
	q.addPlace(&sum, &c, f)
	if c.typed() {
		worth := int32(1000)
		switch {
		case c.missing:
			worth = 300
		case c.ranged:
			worth = 900
		case c.otherRep:
			worth = 970
		}
		sum.add(numberShare, worth)
	}
	q.enlist(&c, sum)
}

// facet is what a candidate's row is part of; a street stands for the facet that was asked for, or its first.
func (q *question) facet(c *candidate, s vintage.Street) vintage.Facet {
	if c.kind == HouseNumber {
		return q.v.RowFacet(c.row, s)
	}
	from, to := q.v.StreetFacets(c.street)
	for i := from; i < min(to, from+64); i++ {
		f := q.v.Facet(i)
		if (q.postcode == 0 || f.Postcode == q.postcode) && (!q.old(c.place) || f.Old == c.place) {
			return f
		}
	}
	return q.v.Facet(from)
}

func (q *question) old(place uint32) bool {
	return place != vintage.None && q.v.Place(place).Kind == vintage.Old
}

func (q *question) oldName(f vintage.Facet) uint32 {
	if f.Old == vintage.None {
		return vintage.None
	}
	return q.v.Place(f.Old).Name
}

// weigh is the weight of words.
func (q *question) weigh(words mask) (sum int32) {
	for i := range q.terms {
		if words.has(i) {
			sum += q.weight[i]
		}
	}
	return sum
}

// streetWorth is how well a name fits, in thousandths: how much of what was typed it holds, and how much of it was typed.
func (q *question) streetWorth(held, total int32, a alignment) int32 {
	if total == 0 || a.whole == 0 {
		return 0
	}
	typed, named := min(held*10/total, 1000), min(a.named*10/a.whole, 1000)
	if q.prefix >= 0 {
		return typed * (800 + named/5) / 1000
	}
	return typed * (500 + named/2) / 1000
}

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
	words := q.words() &^ c.stem &^ c.span &^ c.used &^ c.numberAt &^ c.repAt
	for i := range q.terms {
		if words.has(i) && (len(q.terms[i].Typed) == 1 || text.ClassOf(q.terms[i].Text) != text.Link) {
			return false
		}
	}
	return c.certain && c.loose == 0 && !c.missing && !c.ranged && (c.place == vintage.None || c.sim >= 98) && q.placeConfirmed(c)
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
