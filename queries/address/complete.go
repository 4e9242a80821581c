package address

import (
	"context"

	"lieudit/queries/address/search"
	"lieudit/queries/address/text"
)

// shortest is how many letters or digits a question must have to be completed.
const shortest = 3

// Complete returns the addresses, streets and communes that continue the typed text, the likeliest first. Fewer than three letters
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
	found, err := e.search(ctx, &query, query.parse(true))
	if err != nil {
		return nil, err
	}
	var out []Suggestion
	for i := range found.Best {
		if found.Best[i].Score < search.Accepted || len(out) == query.Limit {
			break
		}
		s := Suggestion{Record: e.record(&found.Best[i]), Score: float64(found.Best[i].Score) / 10000}
		s.Highlights = highlights(found, s.Label)
		out = append(out, s)
	}
	return out, nil
}

// highlights are the runs of a label whose words were typed, whole or as far as they go.
func highlights(found *search.Result, label string) (out []Highlight) {
	for _, t := range text.Terms(label) {
		n := found.TypedOf(t)
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
