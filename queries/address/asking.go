package address

import (
	"iter"
	"math/bits"
	"slices"

	"lieudit/queries/address/text"
)

const (
	askedStreets  = 96   // streets an ask may lead to
	askedShort    = 256  // streets when a word is left out, which may be the one that tells
	askedCommunes = 16   // communes
	maxWithin     = 1000 // communes an ask is confined to by name
	maxDropped    = 6    // words that are left out in turn
)

// rounds are the asks of a question: all its words where its postcode says, then anywhere, then without the kind of
// street, then with one word less. What was asked before is not asked again; where the filter lets nothing through nothing
// is asked.
func (q *question) rounds() iter.Seq[[]Ask] {
	words, numbers := q.askable()
	telling := q.telling(words) | words&q.growing()
	rounds := [...]func() []Ask{
		func() []Ask { return q.strictly(words, numbers) },
		func() []Ask { return []Ask{q.asked(words)} },
		func() []Ask { return append(q.loosely(telling), q.communes(words)) },
		func() []Ask { return q.shortened(words) },
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
// name, unless they come first or lead to the kind of a street.
func (q *question) askable() (words, numbers mask) {
	for i, t := range q.terms {
		switch {
		case !q.words().has(i) || q.stem.at.has(i):
		case t.Digits && q.leads(i):
		case t.Digits:
			numbers |= bit(i)
		case i == q.prefix:
			words |= bit(i)
		case len(t.Typed) == 1 && len(t.Text) == 1 || text.ClassOf(t.Text) == text.Link || i > 0 && q.terms[i-1].Digits && q.isRep(i):
		default:
			words |= bit(i)
		}
	}
	if words != 0 {
		numbers &^= bit(q.first())
	}
	return words, numbers
}

// leads says whether a number stands before a kind of street, as house numbers do.
func (q *question) leads(i int) bool {
	if i++; i < len(q.terms) && q.isRep(i) {
		i++
	}
	return i < len(q.terms) && text.ClassOf(q.terms[i].Text) == text.Way
}

// first is the first word that may name something, of which there is one.
func (q *question) first() int { return bits.TrailingZeros32(uint32(q.words())) }

// strictly asks for all words. Who is still typing is also shown streets of another kind; communes are left for later
// where a number comes first.
func (q *question) strictly(words, numbers mask) []Ask {
	streets := q.confined(q.asked(words))
	streets.whole = true
	asks := []Ask{streets}
	if numbers != 0 {
		asks = append(asks, q.confined(q.asked(words|numbers)))
	}
	if q.prefix >= 0 {
		asks = append(asks, q.confined(q.asked(q.telling(words)|words&q.growing())))
	}
	if q.around != nil {
		near := q.asked(words)
		near.Within = q.around
		asks = append(asks, near)
	}
	if words != 0 && q.terms[q.first()].Digits {
		return asks
	}
	return append(asks, q.communes(words))
}

// communes asks for communes by all words.
func (q *question) communes(words mask) Ask {
	if !q.wants(Municipality) {
		return Ask{} // is not asked
	}
	a := q.asked(words)
	if words == 0 {
		a = q.confined(a)
	}
	a.Communes, a.Limit, a.whole = true, askedCommunes, true
	return a
}

// loosely asks for some words or others, where the postcode says and anywhere.
func (q *question) loosely(of ...mask) (asks []Ask) {
	for _, words := range of {
		asks = append(asks, q.confined(q.asked(words)), q.asked(words))
	}
	return asks
}

// shortened asks for words with one of those that tell left out, each in turn.
func (q *question) shortened(words mask) []Ask {
	var all []mask
	telling := q.telling(words)
	for i := range q.terms {
		if rest := words &^ bit(i); telling.has(i) && rest != 0 && len(all) < maxDropped {
			all = append(all, rest)
		}
	}
	asks := q.loosely(all...)
	for i := range asks {
		asks[i].Limit = askedShort
	}
	return asks
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
