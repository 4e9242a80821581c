package address

import (
	"cmp"
	"slices"

	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

const (
	maxAligned = 48    // streets of one commune that are compared word by word
	maxPosting = 4_000 // streets looked at for one word
)

// candidate is an answer under consideration: a street, a row of it, or a commune.
type candidate struct {
	guess
	kind   Type
	street uint32 // unless kind is Municipality
	row    uint32 // when kind is HouseNumber
	alignment
	numbering
	score int32 // of 10,000
}

// rough is a street and how much of what was typed its name may hold.
type rough struct {
	street uint32
	weight int32
}

// inCommune adds the streets of a guess that the words left over may name.
func (q *question) inCommune(found []candidate, g guess) []candidate {
	c := q.v.Commune(g.commune)
	words := q.words() &^ g.span
	hits := q.hits(words, c.From, c.To, false)
	if len(hits) == 0 || hits[0].weight < 90*int32(q.weigh(q.telling(words))) {
		hits = append(hits, q.hits(words, c.From, c.To, true)...)
		slices.SortFunc(hits, func(x, y rough) int {
			return cmp.Or(cmp.Compare(x.street, y.street), cmp.Compare(y.weight, x.weight))
		})
		hits = slices.CompactFunc(hits, func(x, y rough) bool { return x.street == y.street })
	}
	for _, h := range hits {
		found = append(found, q.judge(g, h.street, words)...)
	}
	return append(found, q.judgeCommune(g, words))
}

// telling are the words that tell streets apart: no links, no kinds of streets, no numbers.
func (q *question) telling(words mask) (out mask) {
	for i := range q.terms {
		if words.has(i) && !q.terms[i].Digits && text.ClassOf(q.terms[i].Text) == text.Plain {
			out |= bit(i)
		}
	}
	return out
}

// hits are the streets in a range that share words with the question, the most promising first: telling words, or any.
func (q *question) hits(words mask, from, to uint32, any bool) []rough {
	var all []rough
	if !any {
		words = q.telling(words)
	}
	for i := range q.terms {
		if !words.has(i) {
			continue
		}
		for _, a := range q.alts[i] {
			all = q.gather(all, q.v.StreetsWith(a.term), rough{from, q.weight[i] * a.sim}, to)
		}
		if i == q.prefix {
			for t := q.low; t < q.high && q.steps > 0; t++ {
				all = q.gather(all, q.v.StreetsWith(t), rough{from, q.weight[i] * 90}, to)
			}
		}
	}
	return merge(all)
}

func (q *question) gather(all []rough, streets vintage.Column, from rough, to uint32) []rough {
	q.steps -= 2
	streets = streets.From(from.street)
	for j := range min(streets.Len(), maxPosting) {
		s := streets.At(j)
		if s >= to || q.steps <= 0 {
			break
		}
		q.steps--
		all = append(all, rough{s, from.weight})
	}
	return all
}

// merge sums what speaks for each street and keeps the best.
func merge(all []rough) []rough {
	slices.SortFunc(all, func(x, y rough) int { return cmp.Compare(x.street, y.street) })
	kept := all[:0]
	for _, r := range all {
		if n := len(kept); n > 0 && kept[n-1].street == r.street {
			kept[n-1].weight += r.weight
		} else {
			kept = append(kept, r)
		}
	}
	slices.SortFunc(kept, func(x, y rough) int {
		return cmp.Or(cmp.Compare(y.weight, x.weight), cmp.Compare(x.street, y.street))
	})
	return kept[:min(len(kept), maxAligned)]
}

// everywhere adds the streets of the whole vintage that the words may name, when nothing says in which commune.
func (q *question) everywhere(found []candidate) []candidate {
	words := q.words()
	least, pivot := -1, -1
	for i := range q.terms {
		if !words.has(i) || len(q.alts[i]) == 0 || q.terms[i].Digits && i == 0 {
			continue
		}
		n := 0
		for _, a := range q.alts[i] {
			n += q.v.StreetsWith(a.term).Len()
		}
		if n > 0 && (least < 0 || n < least) {
			least, pivot = n, i
		}
	}
	if pivot < 0 {
		return found
	}
	return q.around(found, pivot, words)
}

// around looks at the streets that hold the rarest word, in the order of importance.
func (q *question) around(found []candidate, pivot int, words mask) []candidate {
	var all []rough
	for _, a := range q.alts[pivot] {
		streets := q.v.StreetsWith(a.term)
		for j := range min(streets.Len(), maxPosting) {
			all = append(all, rough{streets.At(j), q.shared(streets.At(j), words)})
			if q.steps -= 4; q.steps <= 0 {
				break
			}
		}
	}
	slices.SortFunc(all, func(x, y rough) int { return cmp.Compare(x.street, y.street) })
	for _, h := range merge(slices.Compact(all)) {
		g := guess{commune: q.v.Street(h.street).Commune, place: vintage.None}
		found = append(found, q.judge(g, h.street, words)...)
	}
	return found
}

// shared is how much of the question a street's name holds.
func (q *question) shared(street uint32, words mask) (weight int32) {
	name := q.v.NameTerms(q.v.Street(street).Name)
	for i := range q.terms {
		if !words.has(i) {
			continue
		}
		best := int32(0)
		for j := range name.Len() {
			best = max(best, q.sim(i, name.At(j)))
		}
		weight += best * q.weight[i]
	}
	return weight
}
