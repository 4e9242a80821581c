package noise

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"lieudit/queries/address"
	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/vintage"
)

// BenchmarkEngine measures every operation on the official rows, and on the vintages that LIEUDIT_TEST_VINTAGES lists,
// as a search path does: each operation's mean, and its median, 99th percentile and worst of processor time.
func BenchmarkEngine(b *testing.B) {
	b.Run("official", func(b *testing.B) { benchmark(b, engineFor(b, addresstest.Lozere(b).Vintage)) })
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
			benchmark(b, address.New(v, table))
		})
	}
}

// operation asks one question about an address.
type operation struct {
	name string
	ask  func(*address.Engine, *rand.Rand, Question) error
}

func verifying(name string, apply func(*rand.Rand, World, *Question) bool) operation {
	return operation{"verify " + name, func(e *address.Engine, rng *rand.Rand, a Question) error {
		apply(rng, World{postcodes: []string{"48000", "33000", "59650"}}, &a)
		_, err := e.Verify(context.Background(), address.Query{Text: a.Line(), Limit: 5})
		return err
	}}
}

// completing asks as far as someone has typed.
func completing(name string, apply func(*rand.Rand, World, *Question) bool, bias bool) operation {
	return operation{"complete " + name, func(e *address.Engine, rng *rand.Rand, a Question) error {
		apply(rng, World{}, &a)
		typed := []rune(a.Line())
		q := address.Query{Text: string(typed[:min(len(typed), 4+rng.IntN(len(typed)))]), Limit: 5}
		if bias {
			q.Bias = &address.Position{Lon: a.Row.Lon, Lat: a.Row.Lat}
		}
		if _, err := e.Complete(context.Background(), q); !errors.Is(err, address.ErrShort) && !errors.Is(err, address.ErrUnparsable) {
			return err
		}
		return nil
	}}
}

func operations() []operation {
	clean := func(*rand.Rand, World, *Question) bool { return true }
	noPostcode := func(_ *rand.Rand, _ World, a *Question) bool { a.postcode = ""; return true }
	view := func(id func(*ban.Row) string) func(*address.Engine, *rand.Rand, Question) error {
		return func(e *address.Engine, _ *rand.Rand, a Question) error {
			if _, ok := e.View(id(a.Row)); !ok {
				return errors.New(id(a.Row) + " is not found")
			}
			return nil
		}
	}
	return []operation{
		verifying("clean", clean),
		verifying("typo", typo),
		verifying("no postcode", noPostcode),
		verifying("wrong postcode", wrongPostcode),
		verifying("typo, no postcode", func(rng *rand.Rand, w World, a *Question) bool { return noPostcode(rng, w, a) && typo(rng, w, a) }),
		verifying("no commune", func(_ *rand.Rand, _ World, a *Question) bool { a.city = ""; return true }),
		verifying("street alone", func(_ *rand.Rand, _ World, a *Question) bool { a.city, a.postcode = "", ""; return true }),
		completing("clean", clean, false),
		completing("typo", typo, false),
		completing("no postcode", noPostcode, false),
		completing("biased", noPostcode, true),
		{"view id", view(func(r *ban.Row) string { return r.ID })},
		{"view id_ban", view(func(r *ban.Row) string { return r.IDBan })},
		{"near", func(e *address.Engine, _ *rand.Rand, a Question) error {
			e.Near(address.Position{Lon: a.Row.Lon, Lat: a.Row.Lat}, 500, 10, address.Filter{})
			return nil
		}},
	}
}

func benchmark(b *testing.B, e *address.Engine) {
	asked := sampled(b, e, 4096)
	for _, o := range operations() {
		b.Run(o.name, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(7, 7))
			b.ReportAllocs()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var took []time.Duration
			for b.Loop() {
				start := addresstest.Worked(b)
				if err := o.ask(e, rng, asked[len(took)%len(asked)]); err != nil {
					b.Fatal(err)
				}
				took = append(took, addresstest.Worked(b)-start)
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

// sampled are questions about random rows of a vintage.
func sampled(t testing.TB, e *address.Engine, n int) []Question {
	t.Helper()
	rng, v := rand.New(rand.NewPCG(8, 8)), e.Vintage()
	out := make([]Question, n)
	for i := range out {
		row := uint32(rng.IntN(v.Addresses))
		r, ok := e.View(v.ID(vintage.RowEntity(row)))
		if !ok {
			t.Fatalf("row %d is not found by its id", row)
		}
		out[i] = Of(&ban.Row{ID: r.ID, IDBan: r.BanID, Numero: v.Number(row), Rep: r.Rep, Voie: r.Street, CodePostal: r.Postcode,
			CodeInsee: r.CityCode, Commune: r.City, CommuneAncienne: r.OldCity, Lon: r.Lon, Lat: r.Lat})
	}
	return out
}
