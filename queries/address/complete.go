package address

import (
	"context"

	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// shortest is how many letters or digits a question must have to be completed.
const shortest = 3

// Complete goes on with what was typed: the likeliest addresses, streets and communes first. Fewer than three letters
// or digits are ErrShort.
func (e *Engine) Complete(ctx context.Context, query Query) ([]Suggestion, error) {
	letters := 0
	for _, w := range text.Words(query.line()) {
		letters += len(w.Text) + len(w.Tail)
	}
	if letters == 0 {
		return nil, ErrUnparsable
	}
	if letters < shortest {
		return nil, ErrShort
	}
	q := e.ask(query, true)
	found, err := e.find(ctx, q)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 && !q.parsable() && !e.knows(query.line(), true) {
		return nil, ErrUnparsable
	}
	var out []Suggestion
	for i := range found {
		if found[i].score < accepted || len(out) == query.Limit {
			break
		}
		s := Suggestion{Record: e.record(&found[i], q), Score: float64(found[i].score) / 10000}
		s.Highlights = highlights(q, s.Label)
		out = append(out, s)
	}
	return out, nil
}

// highlights are the runs of a label whose words were typed, whole or as far as they go.
func highlights(q *question, label string) (out []Highlight) {
	for _, t := range text.Terms(label) {
		n := q.typedOf(t)
		if n == 0 {
			continue
		}
		if last := len(out) - 1; last >= 0 && t.Start-out[last].Start-out[last].Length <= 1 && t.Start > out[last].Start {
			out[last].Length = t.Start + n - out[last].Start
		} else if last < 0 || out[last].Start+out[last].Length <= t.Start {
			out = append(out, Highlight{t.Start, n})
		}
	}
	return out
}

// typedOf is how many characters of a label's word were typed.
func (q *question) typedOf(t text.Term) int {
	if id, ok := q.v.Find(t.Text); ok {
		for i := range q.terms {
			if i != q.prefix && q.sim(i, id) > 0 {
				return t.End - t.Start
			}
		}
		if q.prefix >= 0 && q.sim(q.prefix, id) > 0 {
			return min(t.End-t.Start, q.terms[q.prefix].End-q.terms[q.prefix].Start)
		}
		return 0
	}
	for i := range q.terms {
		if q.terms[i].Typed == t.Typed {
			return t.End - t.Start
		}
	}
	return 0
}

// candidateOf is an entity as a candidate.
func candidateOf(v *vintage.Vintage, e vintage.Entity) candidate {
	street := v.StreetOfEntity(e)
	s := v.Street(street)
	c := candidate{kind: StreetType, street: street, row: vintage.None, guess: guess{commune: s.Commune, place: vintage.None}}
	if s.Locality {
		c.kind = LocalityType
	}
	if row, ok := v.Row(e); ok {
		c.kind, c.row = HouseNumber, row
	}
	return c
}
