// Package address measures the address engine on invented vintages of any size, or on real files: how fast one is
// built, throughput and latency of every operation, in the engine on one processor and over HTTP on all of them, and how
// often what is damaged is found. The own index and Meilisearch are asked the same questions in the same run.
package address

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"lieudit/queries/address"
	"lieudit/queries/address/atlas"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/vintage"
)

// Options say what to measure.
type Options struct {
	Dir            string        // for the vintages
	Sizes          []int         // rows that are invented; none with Files
	Files          []string      // of the base
	Questions      int           // of each kind of noise, about Files
	Meilisearch    string        // http://KEY@HOST:PORT; empty: there is none
	FigureDuration time.Duration // for each figure
	Connections    int           // over HTTP
	Progress       func(what string, done, total int)
}

// Figure is one operation at one size.
type Figure struct {
	Rows      int     `json:"lignes"`
	Target    string  `json:"ou"` // engine, meilisearch, http or disk
	Operation string  `json:"operation"`
	PerSecond float64 `json:"par_seconde"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
	Max       float64 `json:"max_ms"`
	Bytes     int64   `json:"octets,omitempty"` // of the vintage
}

// Reporter is told each figure when it is there.
type Reporter struct {
	OnFigure func(Figure) error
	OnScore  func(Score) error
}

// Run measures the files, or all sizes.
func Run(ctx context.Context, o Options, reporter Reporter) error {
	communes, err := commune.Load()
	if err != nil {
		return err
	}
	path := filepath.Join(o.Dir, "bench.vintage")
	if len(o.Files) > 0 {
		f, built, err := o.buildFiles(ctx, path)
		if err != nil {
			return err
		}
		return errors.Join(reporter.OnFigure(built), o.measure(ctx, communes, path, f, reporter))
	}
	for _, rows := range o.Sizes {
		f, built, err := o.buildSynthetic(ctx, communes, path, rows)
		if err != nil {
			return err
		}
		if err := errors.Join(reporter.OnFigure(built), o.measure(ctx, communes, path, f, reporter)); err != nil {
			return err
		}
	}
	return nil
}

// measure measures one vintage.
func (o Options) measure(ctx context.Context, communes *commune.Table, path string, f *questionSet, reporter Reporter) (err error) {
	v, err := vintage.Open(path)
	if err != nil {
		return err
	}
	servedVintage := atlas.New(communes)
	servedVintage.Swap(v)
	defer servedVintage.Swap(nil)
	all := []testedEngine{{name: "engine", Engine: address.New(v, communes), queryCounts: noQueryCounts}}
	if o.Meilisearch != "" {
		listed, end, err := o.fillMeilisearch(ctx, communes, v, f.rows, reporter)
		defer func() { err = errors.Join(err, end()) }()
		if err != nil {
			return err
		}
		all = append(all, listed)
	}
	for _, r := range all {
		for _, op := range operations() {
			if r.searchesOnly && !op.searchesText {
				continue
			}
			o.Progress(r.name+": "+op.name, 0, 0)
			figure, err := o.measureSequential(ctx, op, r.Engine, f)
			if err := errors.Join(err, reporter.OnFigure(figure.withLabels(f.rows, r.name, op.name))); err != nil {
				return err
			}
		}
	}
	if err := o.scoreEngines(ctx, all, f, reporter.OnScore); err != nil {
		return err
	}
	return o.measureHTTP(ctx, servedVintage, f, func(op string, figure Figure) error { return reporter.OnFigure(figure.withLabels(f.rows, "http", op)) })
}

func (f Figure) withLabels(rows int, where, operation string) Figure {
	f.Rows, f.Target, f.Operation = rows, where, operation
	return f
}

// measureSequential asks one question after the other.
func (o Options) measureSequential(ctx context.Context, op operation, e *address.Engine, f *questionSet) (Figure, error) {
	for i := range min(200, len(f.questions)) { // what it needs is in memory then
		if err := unexpectedError(op.run(ctx, e, &f.questions[i])); err != nil {
			return Figure{}, err
		}
	}
	var took []time.Duration
	began := time.Now()
	for i := 0; i == 0 || time.Since(began) < o.FigureDuration; i++ {
		if err := ctx.Err(); err != nil {
			return Figure{}, err
		}
		q := &f.questions[i%len(f.questions)]
		at := time.Now()
		if err := unexpectedError(op.run(ctx, e, q)); err != nil {
			return Figure{}, err
		}
		took = append(took, time.Since(at))
	}
	return newFigure(took, time.Since(began)), nil
}

// newFigure is throughput and latency of questions that took so long each.
func newFigure(took []time.Duration, all time.Duration) Figure {
	if len(took) == 0 {
		return Figure{}
	}
	slices.Sort(took)
	at := func(part float64) float64 {
		return float64(took[min(int(part*float64(len(took))), len(took)-1)].Nanoseconds()) / 1e6
	}
	return Figure{PerSecond: float64(len(took)) / all.Seconds(), P50: at(0.50), P99: at(0.99), Max: at(1)}
}
