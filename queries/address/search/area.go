package search

import (
	"fmt"
	"iter"
	"slices"
	"sync"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// Area is where answers may lie: communes by their ordinals, in their order. A nil one is everywhere.
type Area []uint32

// NewArea makes an area of ordinals that is no nil one.
func NewArea(ordinals []uint32) Area {
	slices.Sort(ordinals)
	return append(Area{}, slices.Compact(ordinals)...)
}

// Has says whether a commune lies in the area.
func (a Area) Has(commune uint32) bool {
	if a == nil {
		return true
	}
	_, ok := slices.BinarySearch(a, commune)
	return ok
}

// ranges are the streets of the area.
func (a Area) ranges(v *vintage.Vintage) iter.Seq2[uint32, uint32] {
	return func(yield func(from, to uint32) bool) {
		if a == nil {
			yield(0, uint32(v.Streets+v.Localities))
			return
		}
		for _, ordinal := range a {
			if c := v.Commune(ordinal); !yield(c.From, c.To) {
				return
			}
		}
	}
}

// PostcodeText writes a postcode as it is typed.
func PostcodeText(code uint32) string { return fmt.Sprintf("%05d", code) }

// readPostcode finds what the typed digits may be: a postcode of the vintage or of the table, else those one digit away; of
// an unfinished line, the postcodes that begin so.
func (s *run) readPostcode() {
	p := &s.q.Postcode
	if p.StemAt != 0 {
		communes := s.v.PostcodesCommunes(p.From, p.To)
		all := make([]uint32, communes.Len())
		for i := range all {
			all[i] = communes.At(i)
		}
		s.stems = NewArea(all)
	}
	switch {
	case p.Code == 0 && p.Short == 0:
		return
	case p.Code != 0 && s.isKnownPostcode(p.Code):
		s.postcode = p.Code
		return
	case s.isCedex():
		return
	}
	var communes []uint32
	for _, code := range variants(*p) {
		if of := s.v.PostcodeCommunes(code); of.Len() > 0 && !slices.Contains(s.near, code) {
			s.near = append(s.near, code)
			for i := range of.Len() {
				communes = append(communes, of.At(i))
			}
		}
	}
	s.nearCodes = NewArea(communes)
}

// isCedex says whether the typed postcode is one of post offices alone: CEDEX was typed, or no commune has it and it is of
// the nine hundreds that they have. Of such a one the department says where the address lies.
func (s *run) isCedex() bool {
	code := s.q.Postcode.Code
	return s.q.HasCedex || code/100%10 == 9 && !s.isKnownPostcode(code)
}

func (s *run) isKnownPostcode(code uint32) bool {
	return s.v.PostcodeCommunes(code).Len() > 0 || len(s.x.table.ByPostcode(PostcodeText(code))) > 0
}

// variants are the postcodes that a typed one may have been meant to be: with another digit, with two digits swapped, or
// with one more where four were typed.
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

// tableKnowledge is what a search needs of the table of communes.
type tableKnowledge struct {
	names     tableNames
	divisions map[string][2][]string
}

var (
	knowledgeOnce sync.Mutex
	knowledge     = map[*commune.Table]tableKnowledge{}
)

// knownNames is the knowledge of a table. There is one table in a program, and a new vintage must not read it anew.
func knownNames(table *commune.Table) tableKnowledge {
	knowledgeOnce.Lock()
	defer knowledgeOnce.Unlock()
	known, ok := knowledge[table]
	if !ok {
		known = tableKnowledge{newTableNames(table), divisionWords(table)}
		knowledge[table] = known
	}
	return known
}

// isNamed says whether a commune bears the name that some words say, now or formerly.
func (s *run) isNamed(c uint32, part namedPart) bool {
	code := s.v.Commune(c).String()
	for _, known := range part.known {
		if known.Code == code || known.Parent == code {
			return true
		}
		if of, ok := s.x.table.ByCode(code); ok && of.Parent != "" && of.Parent == known.Code {
			return true
		}
	}
	for p, to := s.v.CommunePlaces(c); p < to; p++ {
		if s.saysName(part.at, s.v.Place(p).Name, min(part.sim, literal)) {
			return true
		}
	}
	return false
}

// saysName says whether words stand for all that tells in a name, at least so alike, and for nothing else.
func (s *run) saysName(words parse.Mask, name uint32, least int32) bool {
	terms := s.v.BareTerms(name)
	k := 0
	for i := range s.q.Terms {
		if !words.Has(i) || text.ClassOf(s.q.Terms[i].Text) == text.Link {
			continue
		}
		if k < len(terms) && s.words.sim(i, terms[k]) >= least {
			k++
		} else {
			return false
		}
	}
	return k == len(terms) || k > 0 && s.q.Growing >= 0 && words.Has(s.q.Growing)
}
