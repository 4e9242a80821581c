package address

import (
	"context"
	"slices"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/parse"
	"lieudit/queries/address/search"
)

// Reason is why a match does not resolve, or why a question has no match: the first of the list below that holds.
type Reason string

// The reasons in their order. Those about the place come first, because no other place is searched.
const (
	NotCovered           Reason = "hors_couverture"       // the vintage has no row of the commune or, without a commune, of the department
	CityUnknown          Reason = "commune_inconnue"      // the words where a commune is expected do not name one
	CityContradicted     Reason = "commune_contredite"    // the address lies in another commune than the typed one
	PostcodeContradicted Reason = "code_postal_contredit" // the commune does not have the typed postcode
	StreetAbsent         Reason = "voie_absente"          // the base has at most a street of a similar name, or no street was typed
	NumberAbsent         Reason = "numero_absent"         // the street does not have the number with its repetition index
	WordsUnknown         Reason = "mots_inconnus"         // nothing explains some of the words
	SeveralFit           Reason = "plusieurs_adresses"    // others fit about as well
	LowScore             Reason = "score_faible"
)

// Rank is the position of a reason in their order, from 1; 0 without one.
func (r Reason) Rank() int {
	return 1 + slices.Index([]Reason{NotCovered, CityUnknown, CityContradicted, PostcodeContradicted, StreetAbsent, NumberAbsent, WordsUnknown,
		SeveralFit, LowScore}, r)
}

// Explain is Verify that also returns the reason if there is no match.
func (e *Engine) Explain(ctx context.Context, query Query) ([]Match, Reason, error) {
	q := query.parse(false)
	out, found, err := e.verify(ctx, &query, q)
	if err != nil || len(out) > 0 {
		return out, "", err
	}
	reason, err := reasoner{e}.reasonForNone(ctx, &query, q, found)
	return nil, reason, err
}

// reasoner finds the first reason that holds.
type reasoner struct{ *Engine }

// reasonOf is why the match of candidate i does not resolve.
func (e reasoner) reasonOf(query *Query, found *search.Result, i int, x *search.Explanation, m *Match) Reason {
	c, p := &found.Best[i], &m.Components
	switch city := p.City.Status; {
	case city == Unconfirmed && e.isUncovered(query, found.TypedPlace(c)):
		return NotCovered
	case city == Unconfirmed && !e.isCityKnown(query, found.TypedPlace(c)):
		return CityUnknown
	case city == Unconfirmed || c.IsDoubted || x.IsFromPlace:
		return CityContradicted
	case c.IsContradicted || p.Postcode.Typed != "" && !e.AcceptsPostcode(p.Postcode.Typed, &m.Record):
		return PostcodeContradicted
	case !m.isCommuneAlone() || x.IsNamesake:
		return StreetAbsent
	case m.NumberTyped && !m.NumberFound:
		return NumberAbsent
	case x.HasUnread || x.MayBeOther || len(p.Unknown) > 0:
		return WordsUnknown
	case i > 0 || c.IsAmbiguous || !m.isAhead():
		return SeveralFit
	}
	return LowScore
}

// isUncovered reports whether the vintage has no row of the commune that was typed, by its code or by name.
func (e reasoner) isUncovered(query *Query, place search.PlaceStatus) bool {
	return place == search.PlaceNotCovered || e.isUnmapped(query.CityCode)
}

// isCityKnown reports whether the commune that was typed is one.
func (e reasoner) isCityKnown(query *Query, place search.PlaceStatus) bool {
	return place == search.PlaceKnown && (query.CityCode == "" || len(e.ordinals(query.CityCode)) > 0)
}

// reasonOfCommune is why a commune that answers for an address does not resolve.
func (e reasoner) reasonOfCommune(typed *typedParts, m *Match) Reason {
	switch {
	case m.IsResolved:
		return ""
	case len(e.ordinals(m.CityCode)) == 0:
		return NotCovered
	case typed.isStrange:
		return CityUnknown
	case !m.isCommuneAlone():
		return StreetAbsent
	case m.NumberTyped:
		return NumberAbsent
	}
	return LowScore
}

// reasonForNone is why a question has no match. A question restricted to some types is asked again for all of them.
func (e reasoner) reasonForNone(ctx context.Context, query *Query, q *parse.Question, found *search.Result) (Reason, error) {
	if reason := e.reasonInPlace(query, q, found); reason != "" {
		return reason, nil
	}
	if len(query.Types) == 0 {
		return StreetAbsent, nil
	}
	wider := *query
	wider.Types = nil
	matches, _, err := e.verify(ctx, &wider, q)
	switch {
	case err != nil || len(matches) == 0:
		return StreetAbsent, err
	case matches[0].Reason != "":
		return matches[0].Reason, nil
	case matches[0].Type == HouseNumber || matches[0].Type == Municipality:
		return StreetAbsent, nil
	}
	return NumberAbsent, nil
}

// reasonInPlace is the error in the typed place, or empty.
func (e reasoner) reasonInPlace(query *Query, q *parse.Question, found *search.Result) Reason {
	place, code := found.TypedPlace(nil), e.codeOf(query, q)
	postcode := ""
	if q.Postcode.Code != 0 {
		postcode = search.PostcodeText(q.Postcode.Code)
	}
	isCoded := code != "" && len(e.ordinals(code)) > 0
	switch {
	case e.isUnmapped(code) || !isCoded && place == search.PlaceNotCovered:
		return NotCovered
	case !isCoded && place != search.PlaceKnown && e.isOutside(query, postcode):
		return NotCovered
	case !isCoded && code != "" || place == search.PlaceUnknown:
		return CityUnknown
	case isCoded && place == search.PlaceKnown && !found.IsNamedWithin(e.ordinals(code)), place == search.PlaceNotCovered:
		return CityContradicted
	case !isCoded && postcode != "" && !e.isPostcodeOf(postcode, q.HasCedex, found):
		return PostcodeContradicted
	}
	return ""
}

// isOutside reports whether the vintage has no row within the filter or the typed postcode, and nothing else gives the place.
func (e reasoner) isOutside(query *Query, postcode string) bool {
	if area := e.areaOf(query.Filter); area != nil && len(area) == 0 {
		return true
	}
	if postcode == "" || e.v.PostcodeCommunes(parse.Number(postcode)).Len() > 0 {
		return false
	}
	if known := e.table.ByPostcode(postcode); len(known) > 0 {
		for _, c := range known {
			if len(e.ordinals(c.Code)) > 0 {
				return false
			}
		}
		return true
	}
	return !e.hasDepartment(commune.DepartmentOf(postcode))
}

// hasDepartment reports whether the vintage has a row of the department whose code begins a postcode. It is true
// if no department has that code.
func (e reasoner) hasDepartment(code string) bool {
	if code == "20" {
		return e.hasDepartment("2A") || e.hasDepartment("2B")
	}
	_, isKnown := commune.Department(code)
	return !isKnown || len(e.index.InDepartments([]string{code})) > 0
}

// isPostcodeOf reports whether the typed postcode may be that of the named commune or, without a name, of any commune.
func (e reasoner) isPostcodeOf(postcode string, isCedex bool, found *search.Result) bool {
	c, ok := found.NamedCommune()
	if !ok {
		return isCedex || e.v.PostcodeCommunes(parse.Number(postcode)).Len() > 0 || len(e.table.ByPostcode(postcode)) > 0
	}
	r := e.record(&c)
	return e.AcceptsPostcode(postcode, &r)
}
