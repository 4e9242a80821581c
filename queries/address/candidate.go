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

// rough is a street and how much of what was typed its name may hold.
type rough struct {
	street uint32
	weight int32
}

// inCommune considers the streets of a guess that the words left over may name, and the commune itself.
func (q *question) inCommune(g guess) {
	c := q.v.Commune(g.commune)
	words := q.words() &^ g.span
	telling := q.telling(words)
	hits := q.hits(telling, c.From, c.To)
	if len(hits) == 0 || hits[0].weight < 90*q.weigh(telling) {
		hits = q.hits(words, c.From, c.To)
	}
	q.judgeHits(g, hits, words)
	q.judgeCommune(g, words)
}

// judgeHits judges the streets that promise most; all of them when the best one needs words that are not in its name,
// since others may hold the same words the other way round.
func (q *question) judgeHits(g guess, hits []rough, words mask) {
	for i, h := range hits {
		if h.weight*5 < hits[0].weight*3 && !q.split() {
			return
		}
		q.judge(g, hits[i].street, words)
	}
}

// split says whether the best candidate is sound by words that are not in its name.
func (q *question) split() bool {
	return len(q.list.best) > 0 && q.list.best[0].sound && q.list.best[0].used != q.list.best[0].inName
}

// rivals considers the streets of a guess that hold all the words that the name of the best candidate holds: nothing
// else can be as good.
func (q *question) rivals(g guess, name mask) {
	c := q.v.Commune(g.commune)
	name = q.telling(name)
	for _, h := range q.hits(name, c.From, c.To) {
		if h.weight < 90*q.weigh(name) {
			return
		}
		q.judge(g, h.street, q.words()&^g.span)
	}
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

// hits are the streets in a range whose names share words with the question, the most promising first.
func (q *question) hits(words mask, from, to uint32) []rough {
	all := q.scratch[:0]
	for i := range q.terms {
		if !words.has(i) {
			continue
		}
		begun := len(all)
		for _, a := range q.alts[i] {
			all = q.gather(all, q.v.StreetsWith(a.term), rough{from, q.weight[i] * a.sim}, to)
		}
		if i == q.prefix {
			all = q.gatherPrefix(all, rough{from, q.weight[i] * 90}, to)
		}
		all = all[:begun+len(once(all[begun:]))]
	}
	q.scratch = all
	return merge(all)
}

// gatherPrefix adds the streets with a term that the last word may become.
func (q *question) gatherPrefix(all []rough, r rough, to uint32) []rough {
	if q.high-q.low > to-r.street {
		for s := r.street; s < to && q.steps > 0; s++ {
			name := q.v.NameTerms(q.v.Street(s).Name)
			for j := range name.Len() {
				if t := name.At(j); t >= q.low && t < q.high {
					all = append(all, rough{s, r.weight})
					break
				}
			}
			q.steps--
		}
		return all
	}
	for t := q.low; t < q.high && q.steps > 0; t++ {
		all = q.gather(all, q.v.StreetsWith(t), r, to)
	}
	return all
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
	if slices.IsSortedFunc(of, func(x, y rough) int { return cmp.Compare(x.street, y.street) }) && len(of) < 2 {
		return of
	}
	slices.SortFunc(of, func(x, y rough) int {
		return cmp.Or(cmp.Compare(x.street, y.street), cmp.Compare(y.weight, x.weight))
	})
	return slices.CompactFunc(of, func(x, y rough) bool { return x.street == y.street })
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
	return best(kept)
}

// best are the most promising streets, the first first.
func best(all []rough) []rough {
	slices.SortFunc(all, func(x, y rough) int {
		return cmp.Or(cmp.Compare(y.weight, x.weight), cmp.Compare(x.street, y.street))
	})
	return all[:min(len(all), maxAligned)]
}
