package directory

import (
	"fmt"
	"iter"
	"strings"

	"lieudit/queries/address"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/vintage"
)

// The ids of documents are these and the ordinal.
const (
	streetPrefix  = "s"
	communePrefix = "c"
)

// entry is a street, a locality or a commune as a document. Names are written in the vintage's terms: folded, and
// abbreviations written out.
type entry struct {
	ID         string       `json:"id"`
	Type       address.Type `json:"type"`
	Name       string       `json:"nom"`
	LieuxDits  []string     `json:"lieux_dits,omitempty"` // that rows of it lie in
	Communes   []string     `json:"communes"`             // what its commune is called
	Former     []string     `json:"anciennes_communes,omitempty"`
	Rank       uint32       `json:"rang"` // the commune's ordinal: the most important is 0
	CityCode   string       `json:"code_insee"`
	Department string       `json:"departement"`
	Postcodes  []string     `json:"codes_postaux"` // of its commune
}

// entries are all documents of a vintage, in an order that is always the same.
func entries(v *vintage.Vintage) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		for ordinal := range uint32(v.Communes) {
			c := v.Commune(ordinal)
			shared := communeEntry(v, ordinal, c)
			if !yield(shared) {
				return
			}
			for s := c.From; s < c.To; s++ {
				if !yield(streetEntry(v, s, shared)) {
					return
				}
			}
		}
	}
}

func communeEntry(v *vintage.Vintage, ordinal uint32, c vintage.Commune) entry {
	e := entry{ID: fmt.Sprint(communePrefix, ordinal), Type: address.Municipality, Name: nameText(v, c.Name), Rank: ordinal,
		CityCode: c.String(), Department: commune.DepartmentOf(c.String())}
	for place, to := v.CommunePlaces(ordinal); place < to; place++ {
		p := v.Place(place)
		if p.Kind == vintage.Old {
			e.Former = append(e.Former, nameText(v, p.Name))
		} else {
			e.Communes = append(e.Communes, nameText(v, p.Name))
		}
	}
	codes := v.CommunePostcodes(ordinal)
	for i := range codes.Len() {
		e.Postcodes = append(e.Postcodes, fmt.Sprintf("%05d", codes.At(i)))
	}
	return e
}

// streetEntry is a street of a commune, with which it shares what is not its own.
func streetEntry(v *vintage.Vintage, street uint32, e entry) entry {
	s := v.Street(street)
	e.ID, e.Type, e.Name = fmt.Sprint(streetPrefix, street), address.StreetType, nameText(v, s.Name)
	if s.Locality {
		e.Type = address.LocalityType
	}
	seen := map[uint32]bool{vintage.None: true}
	for i, to := v.StreetFacets(street); i < to; i++ {
		if name := v.Facet(i).LieuDit; !seen[name] {
			seen[name] = true
			e.LieuxDits = append(e.LieuxDits, nameText(v, name))
		}
	}
	return e
}

// nameText is a name in its terms.
func nameText(v *vintage.Vintage, name uint32) string {
	terms := v.NameTerms(name)
	words := make([]string, terms.Len())
	for i := range words {
		words[i] = string(v.Term(terms.At(i)))
	}
	return strings.Join(words, " ")
}
