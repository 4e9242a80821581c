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

// typedPostcode is what the typed digits mean.
type typedPostcode struct {
	v     *vintage.Vintage
	table *commune.Table
	q     *parse.Question

	code          uint32   // the typed one, if the vintage or the table has it
	city          Area     // the arrondissements of the city of which it is a postcode; nil: of none
	near          []uint32 // without it, the postcodes one digit away that the vintage has
	nearCommunes  Area     // their communes
	begunCommunes Area     // the communes of the postcodes that unfinished digits may become
}

// readPostcode finds what the typed digits mean: a postcode that the vintage or the table has, or else the
// postcodes one digit away. It also finds the communes of the postcodes that digits of an unfinished line begin. A
// CEDEX postcode has no neighbours, because it is not a misspelling.
func readPostcode(v *vintage.Vintage, table *commune.Table, q *parse.Question) typedPostcode {
	p := typedPostcode{v: v, table: table, q: q}
	typed := &q.Postcode
	if typed.PrefixAt != 0 {
		p.begunCommunes = NewArea(appendColumn(nil, v.PostcodesCommunes(typed.From, typed.To)))
	}
	switch {
	case typed.Code == 0 && typed.Short == 0:
		return p
	case typed.Code != 0 && p.isKnown(typed.Code):
		p.code, p.city = typed.Code, p.cityOf(typed.Code)
		return p
	case p.isCedex():
		return p
	}
	var communes []uint32
	for _, code := range variants(*typed) {
		if of := v.PostcodeCommunes(code); of.Len() > 0 && !slices.Contains(p.near, code) {
			p.near, communes = append(p.near, code), appendColumn(communes, of)
		}
	}
	p.nearCommunes = NewArea(communes)
	return p
}

// appendColumn adds the numbers of a column.
func appendColumn(all []uint32, of vintage.Column) []uint32 {
	for i := range of.Len() {
		all = append(all, of.At(i))
	}
	return all
}

// cityOf are the communes of a postcode of Paris, Lyon or Marseille, with all arrondissements of the city, or of one that the
// table alone has. It is nil for any other. People take one arrondissement for another.
func (p *typedPostcode) cityOf(postcode uint32) Area {
	if n := postcode / 1000; n != 75 && n != 69 && n != 13 && p.v.PostcodeCommunes(postcode).Len() > 0 {
		return nil
	}
	var all []uint32
	add := func(c *commune.Commune) {
		if ordinal, ok := p.v.CommuneOf(c.Code); ok {
			all = append(all, ordinal)
		}
	}
	for _, c := range p.table.ByPostcode(PostcodeText(postcode)) {
		add(c)
		if c.Kind != commune.Arrondissement {
			continue
		}
		for _, part := range p.table.Children(c.Parent) {
			add(part)
		}
	}
	return NewArea(all)
}

// isCedex reports whether the typed postcode is one of post offices alone. CEDEX was typed, or no commune has the
// postcode and its hundreds digit is 9, as in most of theirs. Only its department says where the address lies.
func (p *typedPostcode) isCedex() bool {
	code := p.q.Postcode.Code
	return p.q.HasCedex || code/100%10 == 9 && !p.isKnown(code)
}

// isKnown reports whether a commune of the vintage or of the table has a postcode.
func (p *typedPostcode) isKnown(code uint32) bool {
	return p.v.PostcodeCommunes(code).Len() > 0 || len(p.table.ByPostcode(PostcodeText(code))) > 0
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

// isCorsican reports whether an INSEE code is one of Corsica, whose departments share their postcodes.
func isCorsican(code string) bool { return len(code) > 1 && code[0] == '2' && code[1] > '9' }

// communePostcode is the postcode of a commune that fits what was typed: the same, one that begins so, or one a
// digit away. Otherwise it is the first.
func (p *typedPostcode) communePostcode(commune uint32) uint32 {
	if p.isOf(commune) {
		return p.code
	}
	codes := p.v.CommunePostcodes(commune)
	if prefixed := codes.Within(p.q.Postcode.From, p.q.Postcode.To); prefixed.Len() > 0 {
		return prefixed.At(0)
	}
	for i := range codes.Len() {
		if slices.Contains(p.near, codes.At(i)) {
			return codes.At(i)
		}
	}
	if codes.Len() == 0 {
		return p.tablePostcode(commune)
	}
	return codes.At(0)
}

// tablePostcode is the postcode that the table has for a commune whose rows have none, as those of some overseas territories:
// the typed one, or the only one. It is 0 if there are several.
func (p *typedPostcode) tablePostcode(commune uint32) uint32 {
	known, ok := p.table.ByCode(p.v.Commune(commune).String())
	switch {
	case !ok:
		return 0
	case p.code != 0 && known.HasPostcode(PostcodeText(p.code)):
		return p.code
	}
	return parse.Number(known.OnlyPostcode())
}

// isOf reports whether the typed postcode is one of a commune's.
func (p *typedPostcode) isOf(commune uint32) bool {
	if p.code == 0 {
		return false
	}
	codes := p.v.CommunePostcodes(commune)
	for i := range codes.Len() {
		if codes.At(i) == p.code {
			return true
		}
	}
	return codes.Len() == 0 && p.tablePostcode(commune) == p.code
}

// isCode reports whether the five signs that were typed are the INSEE code of a commune.
func (p *typedPostcode) isCode(commune uint32) bool {
	typed := &p.q.Postcode
	if typed.Code == 0 && typed.Corsican == "" {
		return false
	}
	code := p.v.Commune(commune).String()
	return code == typed.Corsican || typed.Code != 0 && code == PostcodeText(typed.Code)
}

// postcodeIsNext reports whether term i belongs to the postcode.
func postcodeIsNext(q *parse.Question, i int) bool { return q.Postcode.At.Has(i) }

// shortAt is the term of a postcode of four digits, unless it stands for a word of the street or for its number.
func (p *typedPostcode) shortAt(used parse.Mask) parse.Mask {
	if len(p.near) == 0 {
		return 0
	}
	return p.q.Postcode.ShortAt &^ used
}
