package address

import (
	"iter"
	"math/bits"
	"slices"

	"lieudit/queries/address/text"
)

const (
	askedStreets  = 48   // streets an ask may lead to
	askedCommunes = 16   // communes
	maxWithin     = 1000 // communes an ask is confined to by name
	maxDropped    = 6    // words that are left out in turn
)

// rounds are the asks of a question: all its words where its postcode says, then anywhere and without the kind of
// street, then with one word less. What was asked before is not asked again; where the filter lets nothing through nothing
// is asked.
func (q *question) rounds() iter.Seq[[]Ask] {
	words, numbers := q.askable()
	telling := q.telling(words) | words&q.growing()
	rounds := [...]func() []Ask{
		func() []Ask { return q.strictly(words, numbers) },
		func() []Ask { return q.loosely(words, telling) },
		func() []Ask { return q.loosely(q.shortened(telling)...) },
	}
	return func(yield func([]Ask) bool) {
		var before []Ask
		for i := 0; i < len(rounds) && (q.area == nil || len(q.area) > 0); i++ {
			known := len(before)
			for _, a := range rounds[i]() {
				if !a.idle() && !slices.ContainsFunc(before, a.same) {
					before = append(before, a)
				}
			}
			if fresh := before[known:]; len(fresh) > 0 && !yield(fresh) {
				return
			}
		}
	}
}

// askable are the words that lead to an address: no links, no numbers and what goes with them. Numbers may be part of a
// name, unless they come first.
func (q *question) askable() (words, numbers mask) {
	for i, t := range q.terms {
		switch {
		case !q.words().has(i) || q.stem.at.has(i):
		case t.Digits:
			numbers |= bit(i)
		case i == q.prefix:
			words |= bit(i)
		case len(t.Text) == 1 || text.ClassOf(t.Text) == text.Link || i > 0 && q.terms[i-1].Digits && q.isRep(i):
		default:
			words |= bit(i)
		}
	}
	if words != 0 {
		numbers &^= bit(bits.TrailingZeros32(uint32(q.words())))
	}
	return words, numbers
}

// strictly asks for all words.
func (q *question) strictly(words, numbers mask) []Ask {
	streets := q.confined(q.asked(words))
	streets.whole = true
	asks := []Ask{streets}
	if numbers != 0 {
		asks = append(asks, q.confined(q.asked(words|numbers)))
	}
	if q.around != nil {
		near := q.asked(words)
		near.Within = q.around
		asks = append(asks, near)
	}
	if !q.wants(Municipality) {
		return asks
	}
	communes := q.asked(words)
	if words == 0 {
		communes = q.confined(communes)
	}
	communes.Communes, communes.Limit = true, askedCommunes
	return append(asks, communes)
}

// loosely asks for some words or others, where the postcode says and anywhere.
func (q *question) loosely(of ...mask) (asks []Ask) {
	for _, words := range of {
		asks = append(asks, q.confined(q.asked(words)), q.asked(words))
	}
	return asks
}

// shortened are words with one of them left out, each in turn.
func (q *question) shortened(words mask) (all []mask) {
	for i := range q.terms {
		if rest := words &^ bit(i); words.has(i) && rest != 0 && len(all) < maxDropped {
			all = append(all, rest)
		}
	}
	return all
}

// asked asks for words in all that the question's filter lets through.
func (q *question) asked(words mask) Ask {
	a := Ask{Postcodes: q.filter.Postcodes, Departments: q.filter.Departments, Limit: askedStreets}
	if len(q.area) <= maxWithin {
		a.Within = q.area
	}
	for i, t := range q.terms {
		if words.has(i) {
			a.Words = append(a.Words, t.Text)
		}
	}
	return a
}

// confined is an ask that leads no further than the code of a commune, the postcode or its beginning, if one was typed
// that the vintage knows.
func (q *question) confined(a Ask) Ask {
	switch {
	case q.cited != nil && len(q.cited) <= maxWithin:
		a.Within = q.cited
	case q.postcode != 0 && q.v.PostcodeCommunes(q.postcode).Len() > 0:
		a.Postcodes = []string{postcodeText(q.postcode)}
	case q.stem.at != 0 && len(q.stem.communes) <= maxWithin:
		a.Within = q.stem.communes
	}
	return a
}

// idle says whether an ask would lead to whatever there is.
func (a Ask) idle() bool { return len(a.Words) == 0 && len(a.Postcodes) == 0 && len(a.Within) == 0 }

// same says whether an ask leads where another does.
func (a Ask) same(b Ask) bool {
	return a.Communes == b.Communes && slices.Equal(a.Words, b.Words) && slices.Equal(a.Within, b.Within) &&
		slices.Equal(a.Postcodes, b.Postcodes) && slices.Equal(a.Departments, b.Departments)
}
