package yardstick

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"lieudit/cmd/lieudit/vintages"
	"lieudit/queries/address"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/directory"
	"lieudit/queries/address/vintage"
	"lieudit/queries/places/meili"
)

// rival is an engine on one of the indexes.
type rival struct {
	name string
	*address.Engine
	searches bool                              // it differs only in these
	asked    func() (requests, searches int64) // of the index
}

func nothing() (int64, int64) { return 0, 0 }

// list lists a vintage in Meilisearch, and tells how fast; end removes it.
func (o Options) list(ctx context.Context, communes *commune.Table, v *vintage.Vintage, rows int, to Listener) (r rival, end func() error, err error) {
	end = func() error { return nil }
	server, err := meili.Parse(o.Meilisearch)
	if err != nil {
		return r, end, err
	}
	d := directory.New(server.Client(), fmt.Sprintf("bench-%x", rand.Uint64()), time.Now)
	end = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return d.Forget(ctx, v)
	}
	began := time.Now()
	if err := d.Fill(ctx, v, func(done, total int) { o.Progress("meilisearch: list", done, total) }); err != nil {
		return r, end, err
	}
	took := time.Since(began)
	figure := Figure{PerSecond: float64(v.Streets+v.Localities+v.Communes) / took.Seconds(), Max: took.Seconds() * 1e3}
	r = rival{name: "meilisearch", Engine: address.NewOn(v, communes, d.Of(v)), searches: true, asked: d.Asked}
	return r, end, to.Speed(figure.of(rows, "meilisearch", "list documents"))
}

// buildFiles builds a vintage of the files, drawing questions on the way.
func (o Options) buildFiles(ctx context.Context, path string) (_ *field, _ Figure, err error) {
	from, err := vintages.OpenSources(ctx, o.Files)
	if err != nil {
		return nil, Figure{}, err
	}
	defer from.Close()
	f, began := &field{}, time.Now()
	sum, err := vintage.Build(ctx, path, f.draw(f.keep(from.Rows)), vintage.Options{
		Millesime: "bench",
		Progress:  func(stage string, done, _ int) { o.Progress(stage, done, 0) },
	})
	took := time.Since(began)
	f.rows = sum.Addresses
	built := Figure{PerSecond: float64(f.rows) / took.Seconds(), Max: took.Seconds() * 1e3, Bytes: sum.Bytes}
	return f, built.of(f.rows, "disk", "read and build"), err
}

// kept is how many rows are kept to make damaged questions of: a fair sample when there are more.
const kept = 200_000

// keep passes rows on and keeps those with a number.
func (f *field) keep(rows func(yield func(ban.Row, error) bool)) func(yield func(ban.Row, error) bool) {
	return func(yield func(ban.Row, error) bool) {
		rng, seen := rand.New(rand.NewPCG(3, 4)), 0
		for row, err := range rows {
			if !yield(row, err) || err != nil {
				return
			}
			if row.Kind != ban.HouseNumber {
				continue
			}
			seen++
			if len(f.sample) < kept {
				f.sample = append(f.sample, row)
			} else if i := rng.IntN(seen); i < kept {
				f.sample[i] = row
			}
		}
	}
}
