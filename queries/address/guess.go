package address

import (
	"cmp"
	"slices"

	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

const (
	maxGuesses   = 64 // communes a question is tried in
	fewCommunes  = 24 // those a filter lets through are all tried
	maxNamesakes = 40 // places of one name that are looked at

	maxBegunNames = 24   // places with a name that begins as typed that are looked at
	maxScanned    = 1000 // of so many
)

// guess is a commune the question may be about, and why.
type guess struct {
	commune uint32
	place   uint32 // the name that was typed, or vintage.None
	span    mask   // the terms that name it
	sim     int32  // how well they do, in hundredths; 0 when only the postcode speaks for it
	coded   bool   // the typed postcode is one of the commune's
	late    bool   // the name stands where a commune is expected: after the postcode or at the end
}

// rank orders guesses by how much speaks for them.
func (g guess) rank() int32 {
	r := g.sim * int32(2+min(g.span.count(), 3))
	if g.coded {
		r += 300
	}
	if g.late {
		r += 120
	}
	return r
}

// guesses are the communes to look in, the likeliest first.
func (q *question) guesses() []guess {
	var all []guess
	for i := range q.terms {
		if q.words().has(i) {
			all = q.spelt(all, q.v.Gazetteer(), i, reading{from: i, to: i, sim: 100})
		}
	}
	return q.ordered(q.unnamed(q.coded(all)))
}

// ordered are the guesses that the question's filter lets through, the likeliest first, each once.
func (q *question) ordered(all []guess) []guess {
	all = slices.DeleteFunc(all, func(g guess) bool { return !q.area.has(g.commune) })
	for i := range all {
		all[i].late = q.isLate(all[i].span)
	}
	slices.SortFunc(all, func(x, y guess) int {
		return cmp.Or(cmp.Compare(y.rank(), x.rank()), cmp.Compare(x.commune, y.commune), cmp.Compare(x.place, y.place), cmp.Compare(x.span, y.span))
	})
	all = slices.Compact(all)
	if len(all) > maxGuesses {
		all, q.cut = all[:maxGuesses], true
	}
	return all
}

// unnamed adds communes that nothing typed names: those of the code, those around, those of a narrow filter.
func (q *question) unnamed(all []guess) []guess {
	narrow := q.area
	if len(narrow) > fewCommunes {
		narrow = nil
	}
	for _, communes := range [...]area{q.cited, q.around, narrow} {
		for _, c := range communes[:min(len(communes), fewCommunes)] {
			all = append(all, guess{commune: c, place: vintage.None, coded: q.postcode != 0 && q.hasPostcode(c)})
		}
	}
	return all
}

// reading is a name of a place as far as it has been read: terms [from, to), and how well they fit.
type reading struct {
	from, to int
	sim      int32 // the worst of its words
}

// spelt adds the places whose name is read from term i on.
func (q *question) spelt(all []guess, g vintage.Gazetteer, i int, r reading) []guess {
	if i >= len(q.terms) || !q.words().has(i) || q.steps <= 0 {
		return all
	}
	if i > r.from && text.ClassOf(q.terms[i].Text) == text.Link {
		return q.spelt(all, g, i+1, r)
	}
	for _, a := range q.alts[i] {
		all = q.follow(all, g.Next(a.term, a.term+1), i, reading{r.from, i + 1, min(r.sim, a.sim)})
	}
	if i == q.prefix && q.high > q.low {
		all = q.follow(all, g.Next(q.low, q.high), i, reading{r.from, i + 1, min(r.sim, 90)})
	}
	return all
}

// follow takes the places that are read whole, or as far as the question goes, and reads on.
func (q *question) follow(all []guess, g vintage.Gazetteer, i int, r reading) []guess {
	q.steps -= 4
	if g.Len() == 0 {
		return all
	}
	limit, begun := g.Whole(), q.begun(i)
	q.cut = q.cut || limit > maxNamesakes && q.postcode == 0 && !begun
	if begun || q.postcode != 0 && g.Len() <= maxNamesakes {
		limit = g.Len()
	}
	for _, j := range q.foremost(g, limit, begun) {
		place, unnamed := g.Place(int(j))
		commune := q.v.Place(place).Commune
		coded := q.postcode != 0 && q.hasPostcode(commune)
		if unnamed > 0 && !begun && !coded {
			continue
		}
		q.steps--
		sim := r.sim - int32(min(unnamed, 3))*8
		all = append(all, guess{commune: commune, place: place, span: span(r.from, r.to), sim: sim, coded: coded})
	}
	return q.spelt(all, g, i+1, r)
}

// begun says whether a name read as far as a word may go on: that word may grow, or only links follow and may.
func (q *question) begun(i int) bool {
	for ; i < q.prefix; i++ {
		if text.ClassOf(q.terms[i+1].Text) != text.Link {
			return false
		}
	}
	return i == q.prefix
}

// foremost are the places of a range to look at, by where they stand in it: the first ones, and those of the most
// important communes when the name is not typed to its end.
func (q *question) foremost(g vintage.Gazetteer, limit int, begun bool) []uint64 {
	all := make([]uint64, min(limit, maxScanned))
	for j := range all {
		all[j] = uint64(j)
	}
	if !begun || limit <= maxBegunNames {
		return all[:min(len(all), maxNamesakes)]
	}
	for j := range all {
		all[j] |= uint64(g.PlaceAt(j)) << 32
	}
	slices.Sort(all)
	q.steps -= len(all) / 4
	all = all[:maxBegunNames]
	for j := range all {
		all[j] &= 1<<32 - 1
	}
	return all
}

func (q *question) hasPostcode(commune uint32) bool {
	codes := q.v.CommunePostcodes(commune)
	for i := range codes.Len() {
		if codes.At(i) == q.postcode {
			return true
		}
	}
	return false
}

// coded adds the communes of the postcode.
func (q *question) coded(all []guess) []guess {
	if q.postcode == 0 {
		return all
	}
	communes := q.v.PostcodeCommunes(q.postcode)
	for i := range communes.Len() {
		all = append(all, guess{commune: communes.At(i), place: vintage.None, coded: true})
	}
	return all
}

// isLate says whether nothing but what is left aside follows, or the postcode came just before.
func (q *question) isLate(at mask) bool {
	if at == 0 {
		return false
	}
	last, first := 31, 0
	for !at.has(last) {
		last--
	}
	for !at.has(first) {
		first++
	}
	rest := q.words() &^ span(0, last+1)
	return rest == 0 || first > 0 && q.postcodeMask.has(first-1)
}
