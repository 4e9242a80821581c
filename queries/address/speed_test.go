package address

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

	"golang.org/x/sys/unix"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/vintage"
)

// BenchmarkEngine measures every operation on the official rows, and on the vintages that LIEUDIT_TEST_VINTAGES lists,
// as a search path does: each operation's mean, and its median, 99th percentile and worst of processor time.
func BenchmarkEngine(b *testing.B) {
	b.Run("official", func(b *testing.B) { benchmark(b, needLozere(b).engine) })
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
			benchmark(b, New(v, table))
		})
	}
}

// operation asks one question about an address.
type operation struct {
	name string
	ask  func(*Engine, *rand.Rand, asked) error
}

func verifying(name string, apply func(*rand.Rand, world, *asked) bool) operation {
	return operation{"verify " + name, func(e *Engine, rng *rand.Rand, a asked) error {
		apply(rng, world{postcodes: []string{"48000", "33000", "59650"}}, &a)
		_, err := e.Verify(context.Background(), Query{Text: a.line(), Limit: 5})
		return err
	}}
}

// completing asks as far as someone has typed.
func completing(name string, apply func(*rand.Rand, world, *asked) bool, bias bool) operation {
	return operation{"complete " + name, func(e *Engine, rng *rand.Rand, a asked) error {
		apply(rng, world{}, &a)
		typed := []rune(a.line())
		q := Query{Text: string(typed[:min(len(typed), 4+rng.IntN(len(typed)))]), Limit: 5}
		if bias {
			q.Bias = &Position{a.row.Lon, a.row.Lat}
		}
		if _, err := e.Complete(context.Background(), q); !errors.Is(err, ErrShort) && !errors.Is(err, ErrUnparsable) {
			return err
		}
		return nil
	}}
}

func operations() []operation {
	clean := func(*rand.Rand, world, *asked) bool { return true }
	noPostcode := func(_ *rand.Rand, _ world, a *asked) bool { a.postcode = ""; return true }
	view := func(id func(*ban.Row) string) func(*Engine, *rand.Rand, asked) error {
		return func(e *Engine, _ *rand.Rand, a asked) error {
			if _, ok := e.View(id(a.row)); !ok {
				return errors.New(id(a.row) + " is not found")
			}
			return nil
		}
	}
	return []operation{
		verifying("clean", clean),
		verifying("typo", typo),
		verifying("no postcode", noPostcode),
		verifying("wrong postcode", wrongPostcode),
		verifying("typo, no postcode", func(rng *rand.Rand, w world, a *asked) bool { return noPostcode(rng, w, a) && typo(rng, w, a) }),
		verifying("no commune", func(_ *rand.Rand, _ world, a *asked) bool { a.city = ""; return true }),
		verifying("street alone", func(_ *rand.Rand, _ world, a *asked) bool { a.city, a.postcode = "", ""; return true }),
		completing("clean", clean, false),
		completing("typo", typo, false),
		completing("no postcode", noPostcode, false),
		completing("biased", noPostcode, true),
		{"view id", view(func(r *ban.Row) string { return r.ID })},
		{"view id_ban", view(func(r *ban.Row) string { return r.IDBan })},
		{"near", func(e *Engine, _ *rand.Rand, a asked) error {
			e.Near(Position{a.row.Lon, a.row.Lat}, 500, 10)
			return nil
		}},
	}
}

func benchmark(b *testing.B, e *Engine) {
	asked := sampled(e, 4096)
	for _, o := range operations() {
		b.Run(o.name, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(7, 7))
			b.ReportAllocs()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var took []time.Duration
			for b.Loop() {
				start := worked(b)
				if err := o.ask(e, rng, asked[len(took)%len(asked)]); err != nil {
					b.Fatal(err)
				}
				took = append(took, worked(b)-start)
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

// worked is how long the thread has had the processor: what else runs on the machine does not count.
func worked(b testing.TB) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

// sampled are questions about random rows of a vintage.
func sampled(e *Engine, n int) []asked {
	rng := rand.New(rand.NewPCG(8, 8))
	out := make([]asked, n)
	for i := range out {
		row := uint32(rng.IntN(e.v.Addresses))
		r := e.rowRecord(row, e.v.StreetOf(row))
		out[i] = askedOf(&ban.Row{ID: r.ID, IDBan: r.BanID, Numero: e.v.Number(row), Rep: r.Rep, Voie: r.Street, CodePostal: r.Postcode,
			CodeInsee: r.CityCode, Commune: r.City, CommuneAncienne: r.OldCity, Lon: r.Lon, Lat: r.Lat})
	}
	return out
}
