package search

import (
	"fmt"
	"slices"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/parse"
	"lieudit/queries/address/vintage"
)

// PostcodeText writes a postcode as it is typed.
func PostcodeText(code uint32) string { return vintage.FiveDigits(code) }

// readPostcode finds what the typed digits mean: a postcode that the vintage or the table has, or else the
// postcodes one digit away. It also finds the communes of the postcodes that digits of an unfinished line begin. A
// CEDEX postcode has no neighbours, because it is no misspelling.
func (s *searcher) readPostcode() {
	p := &s.q.Postcode
	if p.PrefixAt != 0 {
		communes := s.v.PostcodesCommunes(p.From, p.To)
		all := make([]uint32, communes.Len())
		for i := range all {
			all[i] = communes.At(i)
		}
		s.prefixCommunes = NewArea(all)
	}
	switch {
	case p.Code == 0 && p.Short == 0:
		return
	case p.Code != 0 && s.isKnownPostcode(p.Code):
		s.postcode = p.Code
		s.city = s.cityOf(p.Code)
		return
	case s.isCedex():
		return
	}
	var communes []uint32
	for _, code := range variants(*p) {
		if of := s.v.PostcodeCommunes(code); of.Len() > 0 && !slices.Contains(s.nearPostcodes, code) {
			s.nearPostcodes = append(s.nearPostcodes, code)
			for i := range of.Len() {
				communes = append(communes, of.At(i))
			}
		}
	}
	s.nearCommunes = NewArea(communes)
}

// cityOf are the communes of a postcode of Paris, Lyon or Marseille, with all arrondissements of the city, or of one that the
// table alone has. It is nil for any other. People take one arrondissement for another.
func (s *searcher) cityOf(postcode uint32) Area {
	if n := postcode / 1000; n != 75 && n != 69 && n != 13 && s.v.PostcodeCommunes(postcode).Len() > 0 {
		return nil
	}
	var all []uint32
	add := func(c *commune.Commune) {
		if ordinal, ok := s.v.CommuneOf(c.Code); ok {
			all = append(all, ordinal)
		}
	}
	for _, c := range s.x.table.ByPostcode(PostcodeText(postcode)) {
		add(c)
		if c.Kind != commune.Arrondissement {
			continue
		}
		for _, part := range s.x.table.Children(c.Parent) {
			add(part)
		}
	}
	return NewArea(all)
}

// isCedex says whether the typed postcode is one of post offices alone. CEDEX was typed, or no commune has the
// postcode and its hundreds digit is 9, as in most of theirs. Only its department says where the address lies.
func (s *searcher) isCedex() bool {
	code := s.q.Postcode.Code
	return s.q.HasCedex || code/100%10 == 9 && !s.isKnownPostcode(code)
}

// isKnownPostcode says whether a commune of the vintage or of the table has a postcode.
func (s *searcher) isKnownPostcode(code uint32) bool {
	return s.v.PostcodeCommunes(code).Len() > 0 || len(s.x.table.ByPostcode(PostcodeText(code))) > 0
}

// variants are the postcodes that a typed one may be a misspelling of. One digit differs or two neighbours are
// swapped. Where four digits were typed, one is missing.
func variants(p parse.Postcode) (all []uint32) {
	typed := []byte(PostcodeText(p.Code))
	if p.Code == 0 {
		typed = fmt.Appendf(nil, "%04d", p.Short)
		for at := range 5 {
			for d := byte('0'); d <= '9'; d++ {
				all = append(all, parse.Number(string(slices.Insert(slices.Clone(typed), at, d))))
			}
		}
		return all
	}
	for at := range typed {
		other := slices.Clone(typed)
		for d := byte('0'); d <= '9'; d++ {
			other[at] = d
			all = append(all, parse.Number(string(other)))
		}
		if at > 0 {
			other = slices.Clone(typed)
			other[at-1], other[at] = other[at], other[at-1]
			all = append(all, parse.Number(string(other)))
		}
	}
	return all
}

// relatePostcode says how the typed postcode relates to that of a candidate. The INSEE code of the commune counts
// as its postcode, because people mix the two up.
func (s *searcher) relatePostcode(c *Candidate) postcodeRelation {
	p, of := &s.q.Postcode, c.facet.Postcode
	switch {
	case c.postcodePrefix != 0 && of >= p.From && of < p.To:
		return prefixPostcode
	case len(s.nearPostcodes) > 0 && (p.Code != 0 || s.shortPostcode(c.used|c.At) != 0):
		if p.Code == 0 && of == p.Short {
			return zeroPostcode
		}
		if slices.Contains(s.nearPostcodes, of) {
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
	case of == p.Code || s.isCodeOf(c) || s.isCited(c.Commune):
		return samePostcode
	case s.hasPostcode(c.Commune), s.city != nil && s.city.Has(c.Commune), s.isCedex() && of/1000 == p.Code/1000:
		return cityPostcode
	case of/1000 == p.Code/1000 || s.isInDepartmentOf(p.Code, c):
		return regionPostcode
	}
	return otherPostcode
}

// isInDepartmentOf reports whether a postcode is one of the department in which a candidate lies, by the candidate's own
// postcode or by its commune.
func (s *searcher) isInDepartmentOf(postcode uint32, c *Candidate) bool {
	if of := c.facet.Postcode; of/1000 == postcode/1000 && (of/1000 < overseas || of/100 == postcode/100) {
		return true
	}
	typed, code := commune.DepartmentOf(PostcodeText(postcode)), s.v.Commune(c.Commune).String()
	return typed == commune.DepartmentOf(code) || typed == "20" && isCorsican(code)
}

// overseas are the first two digits of the postcodes overseas, where a department has three.
const overseas = 97

// isCorsican reports whether an INSEE code is one of Corsica, whose departments share their postcodes.
func isCorsican(code string) bool { return len(code) > 1 && code[0] == '2' && code[1] > '9' }

// isCited says whether a commune has the code that was given, where no postcode is known. The typed digits are
// then that code.
func (s *searcher) isCited(c uint32) bool {
	return s.scope.Cited != nil && s.postcode == 0 && s.scope.Cited.Has(c)
}

// communePostcode is the postcode of a commune that fits what was typed: the same, one that begins so, or one a
// digit away. Otherwise it is the first.
func (s *searcher) communePostcode(commune uint32) uint32 {
	if s.hasPostcode(commune) {
		return s.postcode
	}
	codes := s.v.CommunePostcodes(commune)
	if prefixed := codes.Within(s.q.Postcode.From, s.q.Postcode.To); prefixed.Len() > 0 {
		return prefixed.At(0)
	}
	for i := range codes.Len() {
		if slices.Contains(s.nearPostcodes, codes.At(i)) {
			return codes.At(i)
		}
	}
	if codes.Len() == 0 {
		return s.tablePostcode(commune)
	}
	return codes.At(0)
}

// tablePostcode is the postcode that the table has for a commune whose rows have none, as those of some overseas territories:
// the typed one, or the only one. It is 0 if there are several.
func (s *searcher) tablePostcode(commune uint32) uint32 {
	known, ok := s.x.table.ByCode(s.v.Commune(commune).String())
	switch {
	case !ok:
		return 0
	case s.postcode != 0 && known.HasPostcode(PostcodeText(s.postcode)):
		return s.postcode
	}
	return parse.Number(known.OnlyPostcode())
}

// hasPostcode reports whether the typed postcode is one of a commune's.
func (s *searcher) hasPostcode(commune uint32) bool {
	if s.postcode == 0 {
		return false
	}
	codes := s.v.CommunePostcodes(commune)
	for i := range codes.Len() {
		if codes.At(i) == s.postcode {
			return true
		}
	}
	return codes.Len() == 0 && s.tablePostcode(commune) == s.postcode
}

// isCode reports whether the five signs that were typed are the INSEE code of a commune.
func (s *searcher) isCode(commune uint32) bool {
	p := &s.q.Postcode
	if p.Code == 0 && p.Corsican == "" {
		return false
	}
	code := s.v.Commune(commune).String()
	return code == p.Corsican || p.Code != 0 && code == PostcodeText(p.Code)
}

// isCodeOf reports whether they are that of a candidate's commune. Signs that are a postcode as well name it only beside its name.
func (s *searcher) isCodeOf(c *Candidate) bool {
	return s.isCode(c.Commune) && (s.postcode == 0 || s.isNamedPlace(c))
}

// postcodeIsNext says whether term i belongs to the postcode.
func (s *searcher) postcodeIsNext(i int) bool { return s.q.Postcode.At.Has(i) }

// postcodeRelation is what the typed postcode is to a candidate.
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
	prefixPostcode                         // the candidate's goes on with the digits typed
	zeroPostcode                           // the candidate's without the zero before it, as spreadsheets write it
	cityPostcode                           // another of the same commune, or of its post office (CEDEX)
	nearPostcode                           // no commune has it, and the candidate's is one digit away
	regionPostcode                         // another of the same department, or of one overseas too
	otherPostcode
)
