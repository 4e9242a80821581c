package address

import (
	"math/rand/v2"
	"testing"
)

// lines are clean questions about random rows.
func lines(r real, n int, apply func(*rand.Rand, *asked)) []string {
	rng := rand.New(rand.NewPCG(7, 7))
	out := make([]string, n)
	for i := range out {
		a := askedOf(&r.rows[rng.IntN(len(r.rows))])
		apply(rng, &a)
		out[i] = a.line()
	}
	return out
}

func BenchmarkVerify(b *testing.B) {
	r := needLozere(b)
	for _, kind := range []struct {
		name  string
		apply func(*rand.Rand, *asked)
	}{
		{"clean", func(*rand.Rand, *asked) {}},
		{"typo", func(rng *rand.Rand, a *asked) { typo(rng, world{}, a) }},
		{"no postcode", func(_ *rand.Rand, a *asked) { a.postcode = "" }},
		{"postcode only", func(_ *rand.Rand, a *asked) { a.city = "" }},
		{"street only", func(_ *rand.Rand, a *asked) { a.city, a.postcode = "", "" }},
	} {
		asked := lines(r, 4096, kind.apply)
		b.Run(kind.name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, err := r.engine.Verify(Query{Text: asked[i%len(asked)], Limit: 5}); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

func BenchmarkComplete(b *testing.B) {
	r := needLozere(b)
	rng := rand.New(rand.NewPCG(8, 8))
	asked := lines(r, 4096, func(*rand.Rand, *asked) {})
	for i, l := range asked {
		asked[i] = l[:min(len(l), 4+rng.IntN(len(l)))]
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, err := r.engine.Complete(Query{Text: asked[i%len(asked)], Limit: 5}); err != nil && err != ErrShort {
			b.Fatal(err)
		}
		i++
	}
}
