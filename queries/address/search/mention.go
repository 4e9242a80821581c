package search

import (
	"fmt"
	"slices"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// bindingMentions returns the mentions among some words that bind an address, without those that are part of a longer one.
func (r recognition) bindingMentions(words parse.Mask) (all []communeMention) {
	for _, m := range r.mentions {
		if m.at&^words == 0 && r.isBinding(m) {
			all = append(all, m)
		}
	}
	return slices.DeleteFunc(all, func(m communeMention) bool {
		return slices.ContainsFunc(all, func(longer communeMention) bool { return m.at != longer.at && m.at&^longer.at == 0 })
	})
}

// namedSim is the least likeness at which words name a commune of the vintage although they also name another, or stand where words of
// a street may. It is also the likeness of a name of which some words were left out.
const namedSim = 90

// isCovered reports whether the vintage has rows of a commune that a mention names, of one that it is part of, or of a part of it.
func (r recognition) isCovered(m communeMention) bool {
	if m.ownSim >= namedSim || m.ownSim > 0 && len(m.known) == 0 && m.at&r.q.PlaceOnly != 0 {
		return true
	}
	hasRows := func(code string) bool {
		_, ok := r.v.CommuneOf(code)
		return ok
	}
	return slices.ContainsFunc(m.known, func(c *commune.Commune) bool {
		isPart := func(of *commune.Commune) bool { return hasRows(of.Code) }
		return hasRows(c.Code) || hasRows(c.Parent) || slices.ContainsFunc(r.table.Children(c.Code), isPart)
	})
}

// communeMention is a run of words that name a commune, of the vintage or of the table.
type communeMention struct {
	at     parse.Mask
	sim    int32
	isLate bool
	isAway bool               // no commune of the name lies in the department of the typed postcode
	ownSim int32              // how well it names a commune of the vintage; 0 if it names none
	known  []*commune.Commune // of the table; empty if only the vintage has the name
}

// findMentions finds the runs of words that name a commune, of the places that were read and of the table. A name
// that no commune of the typed department has is taken for a misspelt one of that department.
func (r recognizer) findMentions(all []place) (mentions []communeMention) {
	add := func(n communeMention) {
		for i := range mentions {
			if mentions[i].at == n.at {
				mentions[i].sim = max(mentions[i].sim, n.sim)
				mentions[i].known = append(mentions[i].known, n.known...)
				mentions[i].ownSim = max(mentions[i].ownSim, n.ownSim)
				return
			}
		}
		mentions = append(mentions, n)
	}
	for i := range all {
		if all[i].name != vintage.None && all[i].sim >= boundSim {
			add(communeMention{at: all[i].at &^ all[i].departmentAt, sim: all[i].sim, isLate: all[i].isLate, ownSim: all[i].sim})
		}
	}
	for i := range r.q.Terms {
		if !mayName(r.q, i) {
			continue
		}
		for to := i + 1; to <= min(len(r.q.Terms), i+6) && mayName(r.q, to-1); to++ {
			at := parse.Span(i, to)
			if !isLate(r.q, at) || isMentioned(mentions, at) {
				continue
			}
			if known := r.namedInTable(i, to); len(known) > 0 {
				add(communeMention{at: at, sim: 100, isLate: true, known: known})
			}
		}
	}
	for i := range mentions {
		if mentions[i].sim >= literalSim && r.q.Postcode.Code != 0 && !r.isInDepartment(mentions[i], all) {
			mentions[i].isAway = true
			mentions[i].sim = literalSim - 1 // rather a misspelt name of one in the department of the postcode
		}
	}
	return mentions
}

// isMentioned reports whether words name a commune of the vintage exactly. The table is not needed then.
func isMentioned(parts []communeMention, at parse.Mask) bool {
	for i := range parts {
		if parts[i].at == at && parts[i].sim >= confirmedSim {
			return true
		}
	}
	return false
}

// isInDepartment reports whether one of the communes that words name lies in the department of the typed postcode.
func (r recognizer) isInDepartment(part communeMention, all []place) bool {
	typed := PostcodeText(r.q.Postcode.Code)
	agrees := func(code string) bool {
		return commune.DepartmentOf(code) == commune.DepartmentOf(typed) || typed[:2] == "20" && isCorsican(code)
	}
	for i := range all {
		if p := &all[i]; p.name != vintage.None && p.at&^p.departmentAt == part.at && p.sim >= literalSim && agrees(r.v.Commune(p.commune).String()) {
			return true
		}
	}
	if len(part.known) == 0 {
		part.known = r.namedInTable(part.at.First(), part.at.Last()+1)
	}
	for _, known := range part.known {
		if agrees(known.Code) {
			return true
		}
	}
	return false
}

// namedInTable returns the communes of the table whose whole name is terms [from, to). A name neither begins nor ends
// with a link.
func (r recognizer) namedInTable(from, to int) []*commune.Commune {
	first, last := r.q.Terms[from], r.q.Terms[to-1]
	if first.Part || text.ClassOf(first.Text) == text.StopWord || text.ClassOf(last.Text) == text.StopWord || parse.Span(from, to)&^r.q.Digits() == 0 {
		return nil
	}
	return r.table.Named(r.q.Terms[from:to])
}

// isNamed reports whether a commune has the name of a mention. Former communes and arrondissements count as
// the commune they belong to, and the other way round.
func (r recognition) isNamed(c uint32, m communeMention) bool {
	code := r.v.Commune(c).String()
	for _, known := range m.known {
		if known.Code == code || known.Parent == code {
			return true
		}
		if of, ok := r.table.ByCode(code); ok && of.Parent != "" && of.Parent == known.Code {
			return true
		}
	}
	for p, to := r.v.CommunePlaces(c); p < to; p++ {
		if r.saysName(m.at, r.v.Place(p).Name, min(m.sim, literalSim)) {
			return true
		}
	}
	return false
}

// saysName reports whether words spell all terms of a name except links, with at least the given likeness, and nothing
// else. The unfinished word may stand for the rest of the name.
func (r recognition) saysName(words parse.Mask, name uint32, least int32) bool {
	terms := r.v.BareTerms(name)
	k := 0
	for i := range r.q.Terms {
		if !words.Has(i) || r.q.IsStopWord(i) {
			continue
		}
		if k < len(terms) && r.lexicon.sim(i, terms[k]) >= least {
			k++
		} else {
			return false
		}
	}
	return k == len(terms) || k > 0 && r.q.Unfinished >= 0 && words.Has(r.q.Unfinished)
}

// isBinding reports whether a mention stands where a commune is expected, so that an address must lie in one it names. The
// only word that could name a street belongs to the street: place du Marcé.
func (r recognition) isBinding(m communeMention) bool {
	if m.isAway && m.at&^r.q.PlaceOnly == 0 && r.q.Distinctive(r.q.PlaceOnly&^m.at) != 0 {
		return false // part of another name, such as that of a business district: Paris La Défense
	}
	if m.isLate {
		before := r.q.Words() & parse.Span(0, m.at.First()) &^ r.q.Complement
		isAlone := r.q.HasStreetType(before) && r.q.Distinctive(before)|innerTypes(r.q, before)|streetDigits(r.q, before) == 0
		return !isAlone || m.at&r.q.PlaceOnly != 0
	}
	if m.at.First() != 0 || m.sim < literalSim {
		return false
	}
	next := m.at.Last() + 1
	return next < len(r.q.Terms) && (r.q.Terms[next].Digits || r.q.HasStreetType(parse.Bit(next)))
}

// namesCommune reports whether a word belongs to the name of a commune that stands where one is expected.
func (r recognition) namesCommune(i int) bool {
	return slices.ContainsFunc(r.mentions, func(m communeMention) bool {
		return m.at.Has(i) && m.isLate && (m.sim >= literalSim || len(m.known) > 0)
	})
}

// unknownPlaceWords are the words that stand where a commune is expected and do not name that of the candidate.
func (r recognition) unknownPlaceWords(c *Candidate) (out parse.Mask) {
	out = c.unread & r.q.PlaceOnly &^ r.q.Phrases
	for _, m := range r.mentions {
		if r.isBinding(m) && m.at&c.place.at == 0 && m.at&^c.unread == 0 {
			out |= m.at
		}
	}
	return out
}

// PostcodeText writes a postcode with its five digits.
func PostcodeText(code uint32) string { return vintage.FiveDigits(code) }

// typedPostcode is the meaning of the typed digits.
type typedPostcode struct {
	v     *vintage.Vintage
	table *commune.Table
	q     *parse.Question

	code          uint32   // the typed one, if the vintage or the table has it
	city          Area     // the arrondissements of the city of which it is a postcode; nil if there is none
	near          []uint32 // without it, the postcodes one digit away that the vintage has
	nearCommunes  Area     // their communes
	begunCommunes Area     // the communes of the postcodes that unfinished digits may become
}

// readPostcode finds what the typed digits mean: a postcode that the vintage or the table has, otherwise the
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

// cityOf returns the communes of a postcode of Paris, Lyon or Marseille, with all arrondissements of the city, or of one that only the
// table has. It is nil for any other postcode. People confuse arrondissements.
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

// isCedex reports whether the typed postcode belongs only to post offices: CEDEX was typed, or no commune has the
// postcode and its hundreds digit is 9, as in most of theirs. Only its department then locates the address.
func (p *typedPostcode) isCedex() bool {
	code := p.q.Postcode.Code
	return p.q.HasCedex || code/100%10 == 9 && !p.isKnown(code)
}

// isKnown reports whether a commune of the vintage or of the table has a postcode.
func (p *typedPostcode) isKnown(code uint32) bool {
	return p.v.PostcodeCommunes(code).Len() > 0 || len(p.table.ByPostcode(PostcodeText(code))) > 0
}

// variants are the postcodes that a typed one may be a misspelling of. One digit differs or two neighbours are
// swapped. If four digits were typed, one is missing.
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
