package address

import (
	"cmp"
	"slices"

	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

const (
	maxAligned = 48    // streets that are compared word by word
	fewHits    = 8     // streets that are all compared, however little speaks for them
	maxPosting = 4_000 // streets looked at for one word
	maxRare    = 256   // streets that may hold a word which leads to them though it says little
	maxBegun   = 2_000 // terms an unfinished word may become, or streets looked at instead
	begunSim   = 90    // how alike an unfinished word and what it may become are
)

// rough is a street and how much of what was typed its name may hold.
type rough struct {
	street uint32
	weight int32
}

// hits are the streets in a range whose names share words with the question, the most promising first. The words that
// tell streets apart lead there; a word that is not finished, and the others, when those do not find all they say.
func (q *question) hits(words mask, from, to uint32) []rough {
	telling := q.telling(words)
	finished := telling &^ q.growing()
	all := q.merge(q.gatherAll(finished, from, to))
	if strongest(all) >= 90*q.weigh(finished) && len(all) > 0 {
		if telling != finished {
			q.shareBegun(all, q.prefix)
		}
		if len(all) > fewHits {
			q.shareWays(all, words&^telling, from, to)
		}
		return q.best(all, words)
	}
	if q.held() {
		return q.best(all, words)
	}
	if telling != finished {
		all = q.gatherBegun(all, from, to)
	}
	return q.best(q.merge(q.gatherRare(all, words&^telling, from, to)), words)
}

// shareWays adds what kinds of streets are worth.
func (q *question) shareWays(all []rough, words mask, from, to uint32) {
	for i := range q.terms {
		if words.has(i) && i != q.prefix && len(q.alts[i]) > 0 && text.ClassOf(q.terms[i].Text) == text.Way {
			q.shareTerm(all, q.v.StreetsWith(q.alts[i][0].term).Within(from, to), q.weight[i]*q.alts[i][0].sim)
		}
	}
}

// shareTerm adds what a word is worth to the streets that hold it.
func (q *question) shareTerm(all []rough, streets vintage.Column, weight int32) {
	c := cursor{column: streets}
	for j := range all {
		if c.seek(all[j].street) {
			all[j].weight += weight
		}
	}
	q.steps -= len(all)
}

// growing is the word that may still grow.
func (q *question) growing() mask {
	if q.prefix < 0 {
		return 0
	}
	return bit(q.prefix)
}

// gatherAll are the streets in a range with one of some words, once for each word.
func (q *question) gatherAll(words mask, from, to uint32) []rough {
	all := q.scratch[:0]
	for i := range q.terms {
		if words.has(i) {
			all = q.gatherWord(all, i, from, to)
		}
	}
	q.scratch = all
	return all
}

// gatherWord adds the streets in a range with a word, the best reading of it for each.
func (q *question) gatherWord(all []rough, i int, from, to uint32) []rough {
	begun := len(all)
	for _, a := range q.alts[i] {
		all = q.gather(all, q.v.StreetsWith(a.term), rough{from, q.promise(i) * a.sim}, to)
	}
	if len(q.alts[i]) < 2 {
		return all
	}
	return all[:begun+len(once(all[begun:]))]
}

// promise is how much a word speaks for a street that holds it. Digits may be the house number.
func (q *question) promise(i int) int32 {
	if q.terms[i].Digits {
		return 35
	}
	return q.weight[i]
}

// gatherRare adds the streets in a range with words that say little, as far as few hold them; when there is nothing
// else, those with the rarest.
func (q *question) gatherRare(all []rough, words mask, from, to uint32) []rough {
	rarest, least := -1, 0
	for i := range q.terms {
		if !words.has(i) || len(q.alts[i]) == 0 {
			continue
		}
		n := q.v.StreetsWith(q.alts[i][0].term).Within(from, to).Len()
		q.steps -= 4
		switch {
		case n == 0:
		case n <= maxRare:
			all = q.gatherWord(all, i, from, to)
		case rarest < 0 || n < least:
			rarest, least = i, n
		}
	}
	if len(all) == 0 && rarest >= 0 {
		all = q.gatherWord(all, rarest, from, to)
	}
	q.scratch = all
	return all
}

// gatherBegun adds the streets in a range with a term that the last word may become.
func (q *question) gatherBegun(all []rough, from, to uint32) []rough {
	weight := q.weight[q.prefix] * begunSim
	if q.high-q.low > min(to-from, maxBegun) {
		return q.scan(all, rough{from, weight}, min(to, from+maxBegun))
	}
	begun := len(all)
	for t := q.low; t < q.high && q.steps > 0; t++ {
		all = q.gather(all, q.v.StreetsWith(t), rough{from, weight}, to)
	}
	return all[:begun+len(once(all[begun:]))]
}

// scan adds the streets in a range whose names hold a term that the last word may become, name by name.
func (q *question) scan(all []rough, r rough, to uint32) []rough {
	for s := r.street; s < to && q.steps > 0; s++ {
		if q.begins(s) {
			all = append(all, rough{s, r.weight})
		}
		q.steps--
	}
	return all
}

// begins says whether a street's name holds a term that the last word may become.
func (q *question) begins(street uint32) bool {
	name := q.v.NameTerms(q.v.StreetName(street))
	for j := range name.Len() {
		if t := name.At(j); t >= q.low && t < q.high {
			return true
		}
	}
	return false
}

func (q *question) gather(all []rough, streets vintage.Column, r rough, to uint32) []rough {
	q.steps -= 2
	streets = streets.From(r.street)
	for j := range min(streets.Len(), maxPosting) {
		s := streets.At(j)
		if s >= to || q.steps <= 0 {
			break
		}
		q.steps--
		all = append(all, rough{s, r.weight})
	}
	return all
}

// once keeps the best reading of one word for each street.
func once(of []rough) []rough {
	slices.SortFunc(of, func(x, y rough) int {
		return cmp.Or(cmp.Compare(x.street, y.street), cmp.Compare(y.weight, x.weight))
	})
	return slices.CompactFunc(of, func(x, y rough) bool { return x.street == y.street })
}

// strongest is the weight of the most promising street.
func strongest(all []rough) (most int32) {
	for _, r := range all {
		most = max(most, r.weight)
	}
	return most
}

// merge sums what speaks for each street.
func (q *question) merge(all []rough) []rough {
	slices.SortFunc(all, func(x, y rough) int { return cmp.Compare(x.street, y.street) })
	kept := all[:0]
	for _, r := range all {
		if n := len(kept); n > 0 && kept[n-1].street == r.street {
			kept[n-1].weight += r.weight
		} else {
			kept = append(kept, r)
		}
	}
	return kept
}

// best are the most promising streets for some words, the first first. When as promising ones are left out, there may be
// more answers than are looked at.
func (q *question) best(all []rough, words mask) []rough {
	slices.SortFunc(all, func(x, y rough) int {
		return cmp.Or(cmp.Compare(y.weight, x.weight), cmp.Compare(x.street, y.street))
	})
	if len(all) > maxAligned {
		w := all[maxAligned].weight
		q.cut = q.cut || w*5 >= all[0].weight*3 && w >= 50*q.weigh(q.telling(words))
		all = all[:maxAligned]
	}
	return all
}
