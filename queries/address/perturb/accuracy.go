package perturb

import (
	"fmt"
	"slices"
	"strings"

	"lieudit/queries/address"
	"lieudit/queries/address/text"
)

// Accuracy counts the right and wrong answers to the questions of one kind.
type Accuracy struct {
	Questions         int
	Top1              int      // the best answer was right
	TopN              int      // one of the answers was right
	Exact             int      // the best answer had the verdict exact
	FalseExact        int      // of these, the answers that were another address
	UnreportedMissing int      // answers that did not report a missing number
	Examples          []string // wrong answers, false exact ones first
}

// Percent is a count as a share of all questions.
func (c *Accuracy) Percent(n int) float64 { return 100 * float64(n) / float64(max(c.Questions, 1)) }

// isAnsweredBy reports whether a record is the right answer: it agrees with the row in every part that was typed.
func (a Question) isAnsweredBy(r *address.Record) bool {
	same := text.Fold(r.Street) == text.Fold(a.Row.Voie)
	if a.isNumberMissing {
		same = same && r.Type == address.StreetType
	} else {
		same = same && r.Number == fmt.Sprint(a.Row.Numero) && r.Rep == a.Row.Rep
	}
	if a.city == "" {
		return same && r.Postcode == a.postcode
	}
	return same && r.CityCode == a.Row.CodeInsee
}

// coincidesWith reports whether the perturbed question names another real address: its parts are those of the match.
func (a Question) coincidesWith(m *address.Match) bool {
	same := func(x, y string) bool { return contentTerms(x) == contentTerms(y) }
	number := m.Number == a.number && expandRep(m.Rep) == expandRep(a.rep)
	place := a.city == "" || same(a.city, m.City) || same(a.city, m.OldCity)
	return number && same(a.street, m.Street) && place && (a.postcode == "" || a.postcode == m.Postcode)
}

// isConfirmed reports whether no typed part differs from the base.
func isConfirmed(c address.Components) bool {
	for _, part := range [...]address.Component{c.Number, c.Rep, c.Street, c.Postcode, c.City} {
		if part.Status == address.Corrected || part.Status == address.Unconfirmed {
			return false
		}
	}
	return true
}

// contentTerms is a name without the terms that may be missing.
func contentTerms(s string) string {
	var out []string
	for _, t := range text.Terms(s) {
		if text.ClassOf(t.Text) != text.StopWord {
			out = append(out, t.Text)
		}
	}
	return strings.Join(out, " ")
}

// Add counts the answers to a question, the best first.
func (c *Accuracy) Add(a Question, matches []address.Match) {
	c.Questions++
	if i := slices.IndexFunc(matches, func(m address.Match) bool { return a.isAnsweredBy(&m.Record) }); i >= 0 {
		c.TopN++
		if i == 0 {
			c.Top1++
		}
	}
	if len(matches) == 0 {
		c.addExample("nothing", a.Line())
		return
	}
	best := &matches[0]
	right := a.isAnsweredBy(&best.Record)
	if !right {
		c.addExample(fmt.Sprintf("%s (%.2f)", best.Label, best.Score), a.Line())
	}
	if best.Verdict == address.Exact {
		c.addExact(a, best, right)
	}
	if a.isNumberMissing && right && (best.NumberFound || len(best.Nearby) == 0) {
		c.UnreportedMissing++
	}
}

// addExact counts a best answer with the verdict exact.
func (c *Accuracy) addExact(a Question, best *address.Match, right bool) {
	c.Exact++
	if !isConfirmed(best.Components) {
		c.FalseExact++
		c.Examples = slices.Insert(c.Examples, 0, fmt.Sprintf("EXACT WITH %+v: %s", best.Components, a.Line()))
	}
	if (!right || a.isNumberMissing || best.ID != a.Row.ID) && !a.coincidesWith(best) {
		c.FalseExact++
		c.Examples = slices.Insert(c.Examples, 0, "FALSE EXACT "+a.Line()+" -> "+best.Label)
	}
}

// addExample keeps a wrong answer as an example, up to a dozen.
func (c *Accuracy) addExample(got, line string) {
	const kept = 12
	if len(c.Examples) < kept {
		c.Examples = append(c.Examples, line+" -> "+got)
	}
}

// expandRep writes a repetition index in full.
func expandRep(rep string) string {
	switch rep = text.Fold(rep); rep {
	case "b":
		return "bis"
	case "t":
		return "ter"
	case "q":
		return "quater"
	}
	return rep
}
