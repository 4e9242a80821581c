package search

import (
	"slices"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// Explanation says which of the typed words a candidate takes for which part of an address.
type Explanation struct {
	Number, Rep, Street, Postcode, City, Complement string   // as typed, folded
	Unknown                                         []string // words of the complement that no reading explains, links left out

	IsNumberTyped bool
	IsOtherNumber bool // the number is not the first of those typed
	IsRepKept     bool // the repetition index is the street's
	IsStreetSame  bool // the street fits exactly, and no typed word is left over
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
// where they hold a kind of street, since another street is not a complement.
func buildingWords(q *parse.Question, c *Candidate) parse.Mask {
	before := c.unread & beforeNumber(q, c) &^ q.PlaceOnly
	if !c.IsTyped() || c.Street == vintage.None || q.Distinctive(before)|before&q.Digits() == 0 || q.HasStreetType(before&^q.Phrases) {
		return 0
	}
	return before
}

// isOtherPlace reports whether words that are left unread next to the name of the commune make another name of it: Saint-Xyz is no
// writing of Saint-Bauzile, but Saint-Bausile is. What stands next to a name that was typed in full is a part of town.
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

// IsExact reports whether candidate i is confirmed and no other of its type is or fits as well. It is false where other answers
// may have been left out.
func (r *Result) IsExact(i int) bool {
	c := &r.Best[i]
	if r.IsTruncated || !c.IsConfirmed || slices.Contains(r.leftOut, c.Type == Municipality) {
		return false
	}
	for j := range r.Best {
		if of := &r.Best[j]; j != i && of.Type == c.Type && (of.IsConfirmed || of.Score >= c.Score) {
			return false
		}
	}
	return true
}

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

// NamedCommune is the commune that was typed next to a street, or one that has the typed postcode. It may answer
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

// PlaceStatus is what the words say that stand where a commune does.
type PlaceStatus uint8

const (
	PlaceUntyped    PlaceStatus = iota // no words stand there
	PlaceKnown                         // they name a commune of the vintage
	PlaceNotCovered                    // they name one of which the vintage has no row
	PlaceUnknown                       // they name none
)

// TypedPlace is what the words that a candidate leaves unread say of its commune; nil stands for all words.
func (r *Result) TypedPlace(c *Candidate) PlaceStatus {
	s := r.run
	words, found := s.q.Words(), PlaceUntyped
	if c != nil {
		words = c.unread
	}
	if s.q.Distinctive(words&s.q.PlaceOnly&^s.q.Phrases) != 0 {
		found = PlaceUnknown
	}
	for _, m := range s.found.bindingMentions(words) {
		switch {
		case s.found.isCovered(m):
			return PlaceKnown
		case len(m.known) > 0:
			found = PlaceNotCovered
		}
	}
	return found
}

// IsNamedWithin reports whether the words name one of some communes where a commune stands.
func (r *Result) IsNamedWithin(communes []uint32) bool {
	s := r.run
	return slices.ContainsFunc(s.found.bindingMentions(s.q.Words()), func(m communeMention) bool {
		return slices.ContainsFunc(communes, func(c uint32) bool { return s.found.isNamed(c, m) })
	})
}
