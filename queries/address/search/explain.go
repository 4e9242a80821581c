package search

import (
	"slices"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// Explanation says which of the typed words a candidate takes for which part of an address.
type Explanation struct {
	Number, Rep, Street, Postcode, City, Complement string // as typed, folded

	IsNumberTyped bool
	IsOtherNumber bool // the number is not the first of those typed
	IsRepKept     bool // the repetition index is the street's
	IsStreetSame  bool // letter for letter, and nothing typed is left over
	IsCitySame    bool
	IsCityUnknown bool // the typed commune is not this one
	IsCode        bool // the typed digits are the INSEE code of the commune
	IsFromPlace   bool // words of the street name a commune elsewhere
}

// Explain says so of a candidate.
func (r *Result) Explain(c *Candidate) Explanation {
	s := r.run
	x := Explanation{IsNumberTyped: c.IsTyped(), IsOtherNumber: c.chosen > 0, Rep: c.rep, IsRepKept: c.rep != "" && !c.isMissing && !c.noRep,
		IsCode: s.isCode(c.Commune) || s.isCited(c.Commune), IsFromPlace: c.takesPlace}
	x.Number = s.q.Typed(c.At &^ s.q.Reps)
	if c.IsList {
		x.Number = s.q.Typed(c.At)
	}
	cityWords := c.place.at
	strange := s.strangePlace(c)
	if cityWords == 0 && strange != 0 {
		cityWords, x.IsCityUnknown = strange, true
	}
	x.City = s.q.Typed(cityWords)
	x.IsCitySame = c.sim >= confirmedSim && !c.IsDoubted
	apart := s.apart(c)
	aside := s.q.Complement | s.q.Postal | apart
	postcode := s.q.Postcode.At
	if c.postcode == nearPostcode {
		postcode |= s.shortcode(c.used)
	}
	if !x.IsCode || s.postcode != 0 && c.postcode == samePostcode && c.facet.Postcode == s.postcode {
		x.Postcode, x.IsCode = s.q.Typed(postcode), false
	}
	street := s.q.Words() &^ c.place.at &^ strange &^ c.terms() &^ aside &^ postcode &^ c.stem
	if c.Street != vintage.None || !s.isExplained(street) {
		x.Street = s.q.Typed(street)
	}
	x.IsStreetSame = c.certain && c.loose == 0 && s.isExplained(c.unread&^strange&^apart)
	x.Complement = s.q.Typed(aside &^ s.country())
	return x
}

// apart are the words before the house number that are none of the street's: they name what stands there. Another street is
// no complement.
func (s *run) apart(c *Candidate) parse.Mask {
	before := c.unread & s.beforeNumber(c) &^ s.q.PlaceOnly
	if !c.IsTyped() || c.Street == vintage.None || s.q.Telling(before)|before&s.q.Digits() == 0 || s.q.HasStreetType(before&^s.q.Phrases) {
		return 0
	}
	return before
}

// strangePlace are words that stand where a commune does and name none that a candidate lies in.
func (s *run) strangePlace(c *Candidate) (out parse.Mask) {
	out = c.unread & s.q.PlaceOnly &^ s.q.Phrases
	for _, part := range s.parts {
		if s.binds(part) && part.at&c.place.at == 0 && part.at&^c.unread == 0 {
			out |= part.at
		}
	}
	return out
}

// country is the term that names the country.
func (s *run) country() (out parse.Mask) {
	for i := range s.q.Terms {
		if s.q.Terms[i].Typed == "france" {
			out |= parse.Bit(i) & s.q.Postal
		}
	}
	return out
}

// IsExact says whether a candidate is confirmed, and no other is.
func (r *Result) IsExact(i int) bool {
	c := &r.Best[i]
	if r.IsTruncated || !c.IsSound || slices.Contains(r.leftOut, c.Type == Municipality) {
		return false
	}
	for j := range r.Best {
		if j != i && r.Best[j].Type == c.Type && r.Best[j].IsSound {
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
		switch sim := s.words.sim(i, id); {
		case sim == 0:
		case s.words.begun.Has(i) && sim == s.words.begunSim(i):
			most = max(most, min(t.End-t.Start, s.q.Terms[i].End-s.q.Terms[i].Start))
		default:
			return t.End - t.Start
		}
	}
	return most
}

// NamedCommune is the commune that was typed beside a street, or that has the typed postcode alone: what may answer for an
// address that is not there.
func (r *Result) NamedCommune() (Candidate, bool) {
	s := r.run
	best := -1
	places, _ := s.recognize()
	for i, p := range places {
		isNamed := p.name != vintage.None && p.isLate && p.sim >= confirmedSim
		if (isNamed || p.coded && s.postcode != 0) && (best < 0 || p.rank() > places[best].rank()) {
			best = i
		}
	}
	if best < 0 || s.scope.Cited != nil && !s.scope.Cited.Has(places[best].commune) {
		return Candidate{}, false
	}
	p := places[best]
	c := Candidate{place: p, Type: Municipality, Commune: p.commune, Street: vintage.None, Row: vintage.None, IsDoubted: true}
	c.facet = vintage.Facet{Postcode: s.communePostcode(p.commune), Old: vintage.None}
	c.unread = s.q.Words() &^ p.at
	c.postcode = s.relatePostcode(&c)
	c.IsCity = s.isWholeCity(&c)
	e := s.evidenceOf(&c)
	e.hasStreet, e.isElsewhere = true, false
	c.Score = e.score()
	return c, true
}
