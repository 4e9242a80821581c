package search

import (
	"slices"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// bindingMentions are the mentions among some words that bind an address, without those that are part of a longer one.
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
// a street may. A name of which some words were left out has it.
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
	ownSim int32              // how well it names a commune of the vintage; 0: none
	known  []*commune.Commune // of the table; none where the vintage alone has the name
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

// isMentioned reports whether words name a commune of the vintage exactly. Then the table is not asked.
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

// namedInTable are the communes of the table whose whole name is terms [from, to). A name neither begins nor ends
// with a link.
func (r recognizer) namedInTable(from, to int) []*commune.Commune {
	first, last := r.q.Terms[from], r.q.Terms[to-1]
	if first.Part || text.ClassOf(first.Text) == text.StopWord || text.ClassOf(last.Text) == text.StopWord || parse.Span(from, to)&^r.q.Digits() == 0 {
		return nil
	}
	return r.table.Named(r.q.Terms[from:to])
}

// isNamed reports whether a commune has the name that a mention says. Former communes and arrondissements count as
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

// saysName reports whether words spell all terms of a name but links, with at least the given likeness, and nothing
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

// isBinding reports whether a mention stands where communes stand, so that an address must lie in one it names. The
// only word that could name a street belongs to the street: place du Marcé.
func (r recognition) isBinding(m communeMention) bool {
	if m.isAway && m.at&^r.q.PlaceOnly == 0 && r.q.Distinctive(r.q.PlaceOnly&^m.at) != 0 {
		return false // a word of another name, as of a business district: Paris La Défense
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

// namesCommune reports whether a word belongs to the name of a commune that stands where communes do.
func (r recognition) namesCommune(i int) bool {
	return slices.ContainsFunc(r.mentions, func(m communeMention) bool {
		return m.at.Has(i) && m.isLate && (m.sim >= literalSim || len(m.known) > 0)
	})
}

// unknownPlaceWords are the words that stand where a commune does and do not name that of the candidate.
func (r recognition) unknownPlaceWords(c *Candidate) (out parse.Mask) {
	out = c.unread & r.q.PlaceOnly &^ r.q.Phrases
	for _, m := range r.mentions {
		if r.isBinding(m) && m.at&c.place.at == 0 && m.at&^c.unread == 0 {
			out |= m.at
		}
	}
	return out
}
