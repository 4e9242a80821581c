package address

import (
	"cmp"
	"slices"

	"lieudit/queries/address/text"
)

// maxSteps bounds the work on one question: looks at terms, places, streets and numbers count one each.
const maxSteps = 60_000

const (
	maxAlts  = 16 // what one typed word may stand for
	maxFound = 96 // of which those are the likeliest

	soundSim = 72 // how alike words are that sound the same
	bothSim  = 3  // and how much more when they are spelt much the same, too
)

// alt is a term of the vintage that a typed word may stand for, and how alike they are, in hundredths.
type alt struct {
	term uint32
	sim  int32
}

// exact looks a word up as it is: written out, and as typed when that is another word.
func (q *question) exact(i int) {
	t := q.terms[i]
	if id, ok := q.v.Find(t.Text); ok {
		q.alts[i] = append(q.alts[i], alt{id, 100})
	}
	if t.Typed != t.Text && !t.Part && !t.Digits {
		if id, ok := q.v.Find(t.Typed); ok {
			q.alts[i] = append(q.alts[i], alt{id, 98})
		}
	}
	q.elided(i)
}

// elided reads a word whose article stuck to it: leglise, dapcher.
func (q *question) elided(i int) {
	w := q.terms[i].Text
	if len(q.alts[i]) > 0 || len(w) < 5 || w[0] != 'l' && w[0] != 'd' {
		return
	}
	if id, ok := q.v.Find(w[1:]); ok {
		q.alts[i] = append(q.alts[i], alt{id, 97})
	}
}

// loosen adds what a word may have been meant to be. Two letters may be wrong in a long word that fits nothing better.
func (q *question) loosen(i int) {
	w := q.terms[i].Text
	q.loosened |= bit(i)
	if q.terms[i].Digits || len(w) < 3 || i == q.prefix && len(w) < 5 || text.ClassOf(w) == text.Link {
		return
	}
	before := len(q.alts[i])
	q.like(i, w, 1)
	q.sounding(i, w)
	if len(q.alts[i]) == 0 && len(w) >= 8 {
		q.like(i, w, 2)
	}
	q.alts[i] = append(q.alts[i][:before], q.likeliest(q.alts[i][before:], maxAlts)...)
}

// likeliest are the alternatives that are most alike; of as like ones those that more streets hold.
func (q *question) likeliest(all []alt, most int) []alt {
	slices.SortFunc(all, func(x, y alt) int {
		return cmp.Or(cmp.Compare(y.sim, x.sim), cmp.Compare(q.common(y.term), q.common(x.term)), cmp.Compare(x.term, y.term))
	})
	return all[:min(len(all), most)]
}

// common is how many streets hold a term.
func (q *question) common(term uint32) int { return q.v.StreetsWith(term).Len() }

func (q *question) like(i int, w string, edits int) {
	q.from.Like(w, edits, func(term uint32, distance int) bool {
		if distance <= edits && distance > 0 {
			q.add(i, alt{term, likeness(len(w), distance)})
		}
		q.steps--
		return q.steps > 0
	})
}

// likeness is how alike two words are that differ by so many letters.
func likeness(letters, edits int) int32 {
	return max(100-int32(110*edits/letters), 50)
}

func (q *question) sounding(i int, w string) {
	sound := text.Sound(w)
	if sound == "" {
		return
	}
	q.from.Sounding(sound, func(term uint32) bool {
		q.add(i, alt{term, min(max(soundSim, q.sim(i, term)+bothSim), literal-1)})
		q.steps--
		return q.steps > 0
	})
}

// add keeps an alternative, the likelier reading of one that was there.
func (q *question) add(i int, a alt) {
	for j := range q.alts[i] {
		if q.alts[i][j].term == a.term {
			q.alts[i][j].sim = max(q.alts[i][j].sim, a.sim)
			return
		}
	}
	if len(q.alts[i]) < maxFound {
		q.alts[i] = append(q.alts[i], a)
	}
}

// sim is how well a typed word stands for a term of the vintage, 0 when it does not.
func (q *question) sim(i int, term uint32) int32 {
	for _, a := range q.alts[i] {
		if a.term == term {
			return a.sim
		}
	}
	if i == q.prefix && term >= q.low && term < q.high {
		return 90
	}
	return 0
}
