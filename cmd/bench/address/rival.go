package address

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"lieudit/cmd/lieudit/vintages"
	"lieudit/queries/address"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/directory"
	"lieudit/queries/address/vintage"
	"lieudit/queries/locations/meili"
)

// testedEngine is an engine on one of the indexes.
type testedEngine struct {
	name string
	*address.Engine
	searchesOnly bool                                  // it differs only in these
	queryCounts  func() (requests, searchesOnly int64) // of the index
}

func noQueryCounts() (int64, int64) { return 0, 0 }

// fillMeilisearch lists a vintage in Meilisearch, and tells how fast; end removes it.
func (o Options) fillMeilisearch(ctx context.Context, communes *commune.Table, v *vintage.Vintage, rows int, reporter Reporter) (r testedEngine, end func() error, err error) {
	end = func() error { return nil }
	server, err := meili.ParseServer(o.Meilisearch)
	if err != nil {
		return r, end, err
	}
	d := directory.New(server.Client(), "bench", time.Now)
	d.Name = fmt.Sprintf("lieudit-bench-%x", rand.Uint64()) // no index of a service, and none that a service removes
	end = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_, err := server.Client().DeleteIndex(d.Name)
		return errors.Join(d.Forget(ctx, v), err)
	}
	began := time.Now()
	if err := d.Fill(ctx, v, func(done, total int) { o.Progress("meilisearch: list", done, total) }); err != nil {
		return r, end, err
	}
	took := time.Since(began)
	figure := Figure{PerSecond: float64(v.Streets+v.Localities+v.Communes) / took.Seconds(), Max: took.Seconds() * 1e3}
	r = testedEngine{name: "meilisearch", Engine: address.NewOn(v, communes, d.Of(v)), searchesOnly: true, queryCounts: d.Asked}
	return r, end, reporter.OnFigure(figure.withLabels(rows, "meilisearch", "list documents"))
}

// buildFiles builds a vintage of the files, drawing questions on the way.
func (o Options) buildFiles(ctx context.Context, path string) (_ *questionSet, _ Figure, err error) {
	from, err := vintages.OpenSources(ctx, o.Files)
	if err != nil {
		return nil, Figure{}, err
	}
	defer from.Close()
	f, began := &questionSet{}, time.Now()
	sum, err := vintage.Build(ctx, path, f.sampleQuestions(f.sampleRows(from.Rows)), vintage.Options{
		Millesime: "bench",
		Progress:  func(stage string, done, _ int) { o.Progress(stage, done, 0) },
	})
	took := time.Since(began)
	f.rows = sum.Addresses
	built := Figure{PerSecond: float64(f.rows) / took.Seconds(), Max: took.Seconds() * 1e3, Bytes: sum.Bytes}
	return f, built.withLabels(f.rows, "disk", "read and build"), err
}

// maxSample is how many rows are kept to make damaged questions of: a fair sample when there are more.
const maxSample = 200_000

// sampleRows passes rows on and keeps those with a number.
func (f *questionSet) sampleRows(rows func(yield func(ban.Row, error) bool)) func(yield func(ban.Row, error) bool) {
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
			if len(f.sample) < maxSample {
				f.sample = append(f.sample, row)
			} else if i := rng.IntN(seen); i < maxSample {
				f.sample[i] = row
			}
		}
	}
}
