package noise

import (
	"fmt"
	"slices"
	"strings"

	"lieudit/queries/address"
	"lieudit/queries/address/text"
)

// Tally counts what became of the questions of one kind.
type Tally struct {
	Asked      int
	First      int      // the right answer came first
	Among      int      // it was among those that came
	Exact      int      // the first was said to be exact
	FalseExact int      // and was another address
	Unsaid     int      // a missing number was not said to be
	Worst      []string // what was answered wrong, the gravest first
}

// Percent is a count as a share of all that was asked.
func (c *Tally) Percent(n int) float64 { return 100 * float64(n) / float64(max(c.Asked, 1)) }

// answers says whether a record is what was asked for: every component that was typed and not damaged.
func (a Question) answers(r *address.Record) bool {
	same := text.Fold(r.Street) == text.Fold(a.Row.Voie)
	if a.missing {
		same = same && r.Type == address.StreetType
	} else {
		same = same && r.Number == fmt.Sprint(a.Row.Numero) && r.Rep == a.Row.Rep
	}
	if a.city == "" {
		return same && r.Postcode == a.postcode
	}
	return same && r.CityCode == a.Row.CodeInsee
}

// coincides says whether the damage made another real address of a question: its words are that of the answer.
func (a Question) coincides(m *address.Match) bool {
	same := func(x, y string) bool { return plain(x) == plain(y) }
	number := m.Number == a.number && wholeRep(m.Rep) == wholeRep(a.rep)
	place := a.city == "" || same(a.city, m.City) || same(a.city, m.OldCity)
	return number && same(a.street, m.Street) && place && (a.postcode == "" || a.postcode == m.Postcode)
}

// agree says whether nothing that was typed is otherwise in the base.
func agree(c address.Components) bool {
	for _, part := range [...]address.Component{c.Number, c.Rep, c.Street, c.Postcode, c.City} {
		if part.Status == address.Corrected || part.Status == address.Unconfirmed {
			return false
		}
	}
	return true
}

// plain is a name without what may be missing.
func plain(s string) string {
	var out []string
	for _, t := range text.Terms(s) {
		if text.ClassOf(t.Text) != text.Link {
			out = append(out, t.Text)
		}
	}
	return strings.Join(out, " ")
}

// Count counts the answer to a question, the best match first.
func (c *Tally) Count(a Question, matches []address.Match) {
	c.Asked++
	if i := slices.IndexFunc(matches, func(m address.Match) bool { return a.answers(&m.Record) }); i >= 0 {
		c.Among++
		if i == 0 {
			c.First++
		}
	}
	if len(matches) == 0 {
		c.fail("nothing", a.Line())
		return
	}
	best := &matches[0]
	right := a.answers(&best.Record)
	if !right {
		c.fail(fmt.Sprintf("%s (%.2f)", best.Label, best.Score), a.Line())
	}
	if best.Verdict == address.Exact {
		c.countExact(a, best, right)
	}
	if a.missing && right && (best.NumberFound || len(best.Nearby) == 0) {
		c.Unsaid++
	}
}

// countExact counts a match that was said to be exact.
func (c *Tally) countExact(a Question, best *address.Match, right bool) {
	c.Exact++
	if !agree(best.Components) {
		c.FalseExact++
		c.Worst = slices.Insert(c.Worst, 0, fmt.Sprintf("EXACT WITH %+v: %s", best.Components, a.Line()))
	}
	if (!right || a.missing || best.ID != a.Row.ID) && !a.coincides(best) {
		c.FalseExact++
		c.Worst = slices.Insert(c.Worst, 0, "FALSE EXACT "+a.Line()+" -> "+best.Label)
	}
}

// fail keeps an example of what was answered wrong.
func (c *Tally) fail(got, line string) {
	const kept = 12
	if len(c.Worst) < kept {
		c.Worst = append(c.Worst, line+" -> "+got)
	}
}

// wholeRep is a repetition index written out.
func wholeRep(rep string) string {
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
