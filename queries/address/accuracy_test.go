package address

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// tally counts what became of the questions of one kind.
type tally struct {
	asked, top1, top5, exact, falseExact, unsaid int
	worst                                        []string
}

func (c *tally) percent(n int) float64 { return 100 * float64(n) / float64(max(c.asked, 1)) }

// answers says whether a record is what was asked for: every component that was typed and not damaged.
func (a asked) answers(r *Record) bool {
	same := text.Fold(r.Street) == text.Fold(a.row.Voie)
	if a.missing {
		same = same && r.Type == StreetType
	} else {
		same = same && r.Number == fmt.Sprint(a.row.Numero) && r.Rep == a.row.Rep
	}
	if a.city == "" {
		return same && r.Postcode == a.postcode
	}
	return same && r.CityCode == a.row.CodeInsee
}

// coincides says whether the damage made another real address of a question: its words are that of the answer.
func (a asked) coincides(m *Match) bool {
	same := func(x, y string) bool { return plain(x) == plain(y) }
	number := m.Number == a.number && wholeRep(m.Rep) == wholeRep(a.rep)
	place := a.city == "" || same(a.city, m.City) || same(a.city, m.OldCity)
	return number && same(a.street, m.Street) && place && (a.postcode == "" || a.postcode == m.Postcode)
}

// agree says whether nothing that was typed is otherwise in the base.
func (c Components) agree() bool {
	for _, part := range [...]Component{c.Number, c.Rep, c.Street, c.Postcode, c.City} {
		if part.Status == Corrected || part.Status == Unconfirmed {
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

func (c *tally) count(e *Engine, a asked) {
	line := a.line()
	matches, err := e.Verify(context.Background(), Query{Text: line, Limit: 5})
	c.asked++
	for i := range matches {
		if a.answers(&matches[i].Record) {
			c.top5++
			if i == 0 {
				c.top1++
			}
			break
		}
	}
	if len(matches) == 0 || err != nil {
		c.fail("nothing", line)
		return
	}
	best := &matches[0]
	right := a.answers(&best.Record)
	if !right {
		c.fail(fmt.Sprintf("%s (%.2f)", best.Label, best.Score), line)
	}
	if best.Verdict == Exact {
		c.exact++
		if !best.Components.agree() {
			c.falseExact++
			c.worst = append([]string{fmt.Sprintf("EXACT WITH %+v: %s", best.Components, line)}, c.worst...)
		}
		if (!right || a.missing || best.ID != a.row.ID) && !a.coincides(best) {
			c.falseExact++
			c.worst = append([]string{"FALSE EXACT " + line + " -> " + best.Label}, c.worst...)
		}
	}
	if a.missing && right && (best.NumberFound || len(best.Nearby) == 0) {
		c.unsaid++
	}
}

func (c *tally) fail(got, line string) {
	if len(c.worst) < 12 {
		c.worst = append(c.worst, line+" -> "+got)
	}
}

// kinds are all kinds of noise alone, and some two by two.
func kinds() []noise {
	all := noises()
	by := map[string]noise{}
	for _, n := range all {
		by[n.name] = n
	}
	for _, pair := range [][2]string{{"typo", "abbreviated"}, {"typo", "accents"}, {"typo", "no postcode"}, {"typo", "wrong postcode"},
		{"abbreviated", "no postcode"}, {"abbreviated", "wrong postcode"}, {"repetition", "typo"}, {"typo", "typo"},
		{"wrong number", "typo"}, {"old commune", "no postcode"}, {"old commune", "typo"}, {"cedex", "typo"}, {"no street type", "no postcode"}} {
		x, y := by[pair[0]], by[pair[1]]
		all = append(all, noise{x.name + " + " + y.name, 97, func(rng *rand.Rand, w world, a *asked) bool {
			return x.apply(rng, w, a) && y.apply(rng, w, a)
		}})
	}
	return all
}

func TestAccuracyByKindOfNoise(t *testing.T) {
	t.Parallel()
	lozere := needLozere(t)
	each := 400
	if os.Getenv("LIEUDIT_TEST_LONG") != "" {
		each = 5000
	}
	measure(t, lozere.engine, worldOf(lozere.rows), lozere.rows, each)
}

// TestAccuracyAtScale does the same on rows of the vintages that LIEUDIT_TEST_VINTAGES lists.
func TestAccuracyAtScale(t *testing.T) {
	for _, path := range filepath.SplitList(os.Getenv("LIEUDIT_TEST_VINTAGES")) {
		v, err := vintage.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		e := engineFor(t, v)
		var rows []ban.Row
		for _, a := range sampled(e, 2000) {
			rows = append(rows, *a.row)
		}
		w := worldOf(rows)
		w.unused = 9000
		measure(t, e, w, rows, 2000)
	}
}

// measure asks so many questions of each kind and holds the answers to what they should reach.
func measure(t *testing.T, e *Engine, w world, rows []ban.Row, each int) {
	t.Helper()
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-30s %7s %8s %8s %8s %12s\n", "noise", "asked", "top-1", "top-5", "exact", "false exact")
	for k, n := range kinds() {
		var c tally
		rng := rand.New(rand.NewPCG(1, uint64(k)))
		for try := 0; c.asked < each && try < 40*each; try++ {
			a := askedOf(&rows[rng.IntN(len(rows))])
			if n.apply(rng, w, &a) {
				c.count(e, a)
			}
		}
		fmt.Fprintf(&table, "%-30s %7d %7.2f%% %7.2f%% %7.2f%% %12d\n", n.name, c.asked, c.percent(c.top1), c.percent(c.top5), c.percent(c.exact), c.falseExact)
		check(t, n, &c)
	}
	t.Log(table.String())
}

func check(t *testing.T, n noise, c *tally) {
	t.Helper()
	if c.falseExact > 0 || c.unsaid > 0 {
		t.Errorf("%s: %d false match_exact, %d missing numbers not said", n.name, c.falseExact, c.unsaid)
	}
	reached := c.percent(c.top1)
	if strings.Contains(n.name, "no street type") {
		reached = c.percent(c.top5) // several streets may fit what is left
	}
	if c.asked > 0 && reached < n.least {
		t.Errorf("%s: %.2f %% found, want %.1f", n.name, reached, n.least)
	}
	if c.falseExact > 0 || reached < n.least || os.Getenv("LIEUDIT_TEST_MISSES") != "" {
		for _, miss := range c.worst {
			t.Logf("%s: %s", n.name, miss)
		}
	}
}
