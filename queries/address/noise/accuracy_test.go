package noise

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lieudit/queries/address"
	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/vintage"
)

func TestAccuracyByKindOfNoise(t *testing.T) {
	t.Parallel()
	lozere := addresstest.Lozere(t)
	each := 400
	if os.Getenv("LIEUDIT_TEST_LONG") != "" {
		each = 5000
	}
	measure(t, engineFor(t, lozere.Vintage), WorldOf(lozere.Rows), lozere.Rows, each)
}

// TestAccuracyAtScale does the same on rows of the vintages that LIEUDIT_TEST_VINTAGES lists.
func TestAccuracyAtScale(t *testing.T) {
	for _, path := range filepath.SplitList(os.Getenv("LIEUDIT_TEST_VINTAGES")) {
		v, err := vintage.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		e := engineFor(t, v)
		var rows []ban.Row
		for _, a := range sampled(t, e, 2000) {
			rows = append(rows, *a.Row)
		}
		w := WorldOf(rows)
		w.Unused = 9000
		measure(t, e, w, rows, 2000)
	}
}

func engineFor(t testing.TB, v *vintage.Vintage) *address.Engine {
	t.Helper()
	table, err := commune.Load()
	if err != nil {
		t.Fatal(err)
	}
	return address.New(v, table)
}

// measure asks so many questions of each kind and holds the answers to what they should reach.
func measure(t *testing.T, e *address.Engine, w World, rows []ban.Row, each int) {
	t.Helper()
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-30s %7s %8s %8s %8s %12s\n", "noise", "asked", "top-1", "top-5", "exact", "false exact")
	for seed, k := range Kinds() {
		var c Tally
		for _, q := range k.Draw(w, rows, uint64(seed), each) {
			matches, err := e.Verify(t.Context(), address.Query{Text: q.Line(), Limit: 5})
			if err != nil {
				matches = nil
			}
			c.Count(q, matches)
		}
		fmt.Fprintf(&table, "%-30s %7d %7.2f%% %7.2f%% %7.2f%% %12d\n", k.Name, c.Asked, c.Percent(c.First), c.Percent(c.Among), c.Percent(c.Exact), c.FalseExact)
		check(t, k, &c)
	}
	t.Log(table.String())
}

func check(t *testing.T, k Kind, c *Tally) {
	t.Helper()
	if c.FalseExact > 0 || c.Unsaid > 0 {
		t.Errorf("%s: %d false match_exact, %d missing numbers not said", k.Name, c.FalseExact, c.Unsaid)
	}
	reached := c.Percent(c.First)
	if strings.Contains(k.Name, "no street type") {
		reached = c.Percent(c.Among) // several streets may fit what is left
	}
	if c.Asked > 0 && reached < k.Least {
		t.Errorf("%s: %.2f %% found, want %.1f", k.Name, reached, k.Least)
	}
	if c.FalseExact > 0 || reached < k.Least || os.Getenv("LIEUDIT_TEST_MISSES") != "" {
		for _, miss := range c.Worst {
			t.Logf("%s: %s", k.Name, miss)
		}
	}
}
