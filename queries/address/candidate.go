package address

import "lieudit/queries/address/text"

// inCommune considers the streets of a guess that the words left over may name, and the commune itself.
func (q *question) inCommune(g guess) {
	c := q.v.Commune(g.commune)
	words := q.words() &^ g.span
	if g.span&q.growing() == 0 || g.sim >= literal || q.telling(words) != 0 {
		q.judgeHits(g, q.hits(words, c.From, c.To), words)
	}
	q.judgeCommune(g, words)
}

// judgeHits judges the streets that promise most; all of them when the best one needs words that are not in its name,
// since others may hold the same words the other way round.
func (q *question) judgeHits(g guess, hits []rough, words mask) {
	for i, h := range hits {
		weak := h.weight*5 < hits[0].weight*3 || i >= fewHits && h.weight*10 < hits[0].weight*9 && q.held()
		if weak && !q.split() {
			return
		}
		q.judge(g, h.street, words)
	}
}

// held says whether the best candidate is sound.
func (q *question) held() bool { return len(q.list.best) > 0 && q.list.best[0].sound }

// split says whether the best candidate is sound by words that are not in its name.
func (q *question) split() bool {
	return q.held() && q.list.best[0].used != q.list.best[0].inName
}

// rivals considers the streets of a guess that hold all the words that the name of the best candidate holds: nothing
// else can be as good.
func (q *question) rivals(g guess, name mask) {
	c := q.v.Commune(g.commune)
	name = q.telling(name)
	for _, h := range q.best(q.merge(q.gatherAll(name, c.From, c.To)), name) {
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
