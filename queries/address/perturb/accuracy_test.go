package perturb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"lieudit/queries/address"
	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/vintage"
	"lieudit/schemas/geo"
)

func TestAccuracyByKind(t *testing.T) {
	t.Parallel()
	lozere := addresstest.Lozere(t)
	each := 400
	if os.Getenv("LIEUDIT_TEST_LONG") != "" {
		each = 5000
	}
	measure(t, engineFor(t, lozere.Vintage), NewReference(lozere.Rows), lozere.Rows, each)
}

// TestAccuracyAtScale measures accuracy on samples of the vintages that LIEUDIT_TEST_VINTAGES lists.
func TestAccuracyAtScale(t *testing.T) {
	for _, path := range filepath.SplitList(os.Getenv("LIEUDIT_TEST_VINTAGES")) {
		v, err := vintage.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		e := engineFor(t, v)
		var rows []ban.Row
		for _, a := range sampleQuestions(t, e, 2000) {
			rows = append(rows, *a.Row)
		}
		ref := NewReference(rows)
		ref.Unused = 9000
		measure(t, e, ref, rows, 2000)
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

// measure asks n questions of each kind and checks the accuracy against the kind's least share.
func measure(t *testing.T, e *address.Engine, ref Reference, rows []ban.Row, each int) {
	t.Helper()
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-30s %7s %8s %8s %8s %12s\n", "perturbation", "asked", "top-1", "top-5", "exact", "false exact")
	for seed, k := range Kinds() {
		var c Accuracy
		for _, q := range k.Sample(ref, rows, uint64(seed), each) {
			matches, err := e.Verify(t.Context(), address.Query{Text: q.Line(), Limit: 5})
			if err != nil {
				matches = nil
			}
			c.Add(q, matches)
		}
		fmt.Fprintf(&table, "%-30s %7d %7.2f%% %7.2f%% %7.2f%% %12d\n", k.Name, c.Questions, c.Percent(c.Top1), c.Percent(c.TopN), c.Percent(c.Exact), c.FalseExact)
		check(t, k, &c)
	}
	t.Log(table.String())
}

func check(t *testing.T, k Kind, c *Accuracy) {
	t.Helper()
	if c.FalseExact > 0 || c.UnreportedMissing > 0 {
		t.Errorf("%s: %d false match_exact, %d missing numbers not said", k.Name, c.FalseExact, c.UnreportedMissing)
	}
	reached := c.Percent(c.Top1)
	if strings.Contains(k.Name, "no street type") {
		reached = c.Percent(c.TopN) // several streets may fit what is left
	}
	if c.Questions > 0 && reached < k.MinTop1 {
		t.Errorf("%s: %.2f %% found, want %.1f", k.Name, reached, k.MinTop1)
	}
	if c.FalseExact > 0 || reached < k.MinTop1 || os.Getenv("LIEUDIT_TEST_MISSES") != "" {
		for _, miss := range c.Examples {
			t.Logf("%s: %s", k.Name, miss)
		}
	}
}

// BenchmarkEngine measures every operation on the official rows, and on the vintages that LIEUDIT_TEST_VINTAGES lists.
// It reports the mean, median, 99th percentile and worst processor time of each.
func BenchmarkEngine(b *testing.B) {
	b.Run("official", func(b *testing.B) { runOperations(b, engineFor(b, addresstest.Lozere(b).Vintage)) })
	for _, path := range filepath.SplitList(os.Getenv("LIEUDIT_TEST_VINTAGES")) {
		b.Run(filepath.Base(path), func(b *testing.B) {
			v, err := vintage.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			defer v.Close()
			table, err := commune.Load()
			if err != nil {
				b.Fatal(err)
			}
			runOperations(b, address.New(v, table))
		})
	}
}

// operation runs one operation of an engine for a question.
type operation struct {
	name string
	run  func(*address.Engine, *rand.Rand, Question) error
}

func newVerifyOperation(name string, apply func(*rand.Rand, Reference, *Question) bool) operation {
	return operation{"verify " + name, func(e *address.Engine, rng *rand.Rand, a Question) error {
		apply(rng, Reference{postcodes: []string{"48000", "33000", "59650"}}, &a)
		_, err := e.Verify(context.Background(), address.Query{Text: a.Line(), Limit: 5})
		return err
	}}
}

// newCompleteOperation completes a random prefix of the question.
func newCompleteOperation(name string, apply func(*rand.Rand, Reference, *Question) bool, bias bool) operation {
	return operation{"complete " + name, func(e *address.Engine, rng *rand.Rand, a Question) error {
		apply(rng, Reference{}, &a)
		typed := []rune(a.Line())
		q := address.Query{Text: string(typed[:min(len(typed), 4+rng.IntN(len(typed)))]), Limit: 5}
		if bias {
			q.Bias = &geo.Point{Lon: a.Row.Lon, Lat: a.Row.Lat}
		}
		if _, err := e.Complete(context.Background(), q); !errors.Is(err, address.ErrShort) && !errors.Is(err, address.ErrUnparsable) {
			return err
		}
		return nil
	}}
}

func operations() []operation {
	clean := func(*rand.Rand, Reference, *Question) bool { return true }
	noPostcode := func(_ *rand.Rand, _ Reference, a *Question) bool { a.postcode = ""; return true }
	view := func(id func(*ban.Row) string) func(*address.Engine, *rand.Rand, Question) error {
		return func(e *address.Engine, _ *rand.Rand, a Question) error {
			if _, ok := e.View(id(a.Row)); !ok {
				return errors.New(id(a.Row) + " is not found")
			}
			return nil
		}
	}
	return []operation{
		newVerifyOperation("clean", clean),
		newVerifyOperation("typo", addTypo),
		newVerifyOperation("no postcode", noPostcode),
		newVerifyOperation("wrong postcode", replacePostcode),
		newVerifyOperation("typo, no postcode", func(rng *rand.Rand, ref Reference, a *Question) bool {
			return noPostcode(rng, ref, a) && addTypo(rng, ref, a)
		}),
		newVerifyOperation("no commune", func(_ *rand.Rand, _ Reference, a *Question) bool { a.city = ""; return true }),
		newVerifyOperation("street alone", func(_ *rand.Rand, _ Reference, a *Question) bool { a.city, a.postcode = "", ""; return true }),
		newCompleteOperation("clean", clean, false),
		newCompleteOperation("typo", addTypo, false),
		newCompleteOperation("no postcode", noPostcode, false),
		newCompleteOperation("biased", noPostcode, true),
		{"view id", view(func(r *ban.Row) string { return r.ID })},
		{"view id_ban", view(func(r *ban.Row) string { return r.IDBan })},
		{"near", func(e *address.Engine, _ *rand.Rand, a Question) error {
			e.Near(geo.Point{Lon: a.Row.Lon, Lat: a.Row.Lat}, 500, 10, address.Filter{})
			return nil
		}},
	}
}

func runOperations(b *testing.B, e *address.Engine) {
	asked := sampleQuestions(b, e, 4096)
	for _, o := range operations() {
		b.Run(o.name, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(7, 7))
			b.ReportAllocs()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var took []time.Duration
			for b.Loop() {
				start := addresstest.CPUTime(b)
				if err := o.run(e, rng, asked[len(took)%len(asked)]); err != nil {
					b.Fatal(err)
				}
				took = append(took, addresstest.CPUTime(b)-start)
			}
			var sum time.Duration
			for _, d := range took {
				sum += d
			}
			b.ReportMetric(float64(sum.Nanoseconds())/1000/float64(len(took)), "mean-µs")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			b.ReportMetric(float64(took[len(took)-1].Microseconds()), "max-µs")
		})
	}
}

// sampleQuestions makes questions about random rows of a vintage.
func sampleQuestions(t testing.TB, e *address.Engine, n int) []Question {
	t.Helper()
	rng, v := rand.New(rand.NewPCG(8, 8)), e.Vintage()
	out := make([]Question, n)
	for i := range out {
		row := uint32(rng.IntN(v.Addresses))
		r, ok := e.View(v.ID(vintage.RowEntity(row)))
		if !ok {
			t.Fatalf("row %d is not found by its id", row)
		}
		out[i] = NewQuestion(&ban.Row{ID: r.ID, IDBan: r.BanID, Numero: v.Number(row), Rep: r.Rep, Voie: r.Street, CodePostal: r.Postcode,
			CodeInsee: r.CityCode, Commune: r.City, CommuneAncienne: r.OldCity, Lon: r.Lon, Lat: r.Lat})
	}
	return out
}
