// Package address measures the address engine on vintages, the files that hold one edition of the address base. A vintage is built from any
// number of invented rows, or from real files. The package measures the speed of the build, the throughput and latency of every operation, and,
// with real files, how often damaged addresses are found. All indexes, the vintage's own and Meilisearch, answer the same questions in the same
// run.
//
//	Run ──> buildSynthetic or buildFiles ──> vintage, questionSet (a sample of its rows)
//	    ──> measureOperation   one processor, for each testedEngine
//	    ──> scoreEngines       damaged questions, of files only
//	    ──> measureHTTP        the API over HTTP on all processors, its clients next to it
package address

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"lieudit/cmd/bench/address/meiliindex"
	"lieudit/cmd/bench/measure"
	"lieudit/queries/address"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/live"
	"lieudit/queries/address/vintage"
)

// Options configure Run. Either Sizes or Files is required.
type Options struct {
	Sizes          []int         // numbers of invented rows; none with Files
	Files          []string      // of the address base
	Questions      int           // of each kind of damage, about Files
	Meilisearch    string        // http://KEY@HOST:PORT; empty: there is none
	FigureDuration time.Duration // for each figure
	Connections    int           // over HTTP
}

// Run measures a vintage of the files, or one vintage after another of each size. It leaves the last one in dir.
func Run(ctx context.Context, dir string, o Options, out measure.Output) error {
	communes, err := commune.Load()
	if err != nil {
		return err
	}
	r := &run{Options: o, Output: out, communes: communes, path: filepath.Join(dir, "bench.vintage")}
	if len(o.Files) > 0 {
		return r.measureVintage(ctx, func() (*questionSet, error) { return r.buildFiles(ctx) })
	}
	for _, rows := range o.Sizes {
		if err := r.measureVintage(ctx, func() (*questionSet, error) { return r.buildSynthetic(ctx, rows) }); err != nil {
			return err
		}
	}
	return nil
}

// run is one run of the benchmark. It measures one vintage at a time, in one file.
type run struct {
	Options
	measure.Output
	communes *commune.Table
	path     string // of the vintage
	rows     int    // of the vintage
}

// labels returns the labels of an operation on the vintage. where is engine or meilisearch for a call of the engine on that
// index, http for the API, and disk for the build.
func (r *run) labels(where, operation string) []measure.Label {
	return []measure.Label{{Name: "rows", Value: r.rows}, {Name: "where", Value: where}, {Name: "operation", Value: operation}}
}

// testedEngine is the address engine on one index: the vintage's own, or one in Meilisearch that was filled from the vintage.
type testedEngine struct {
	name string
	*address.Engine
	searchesOnly bool                              // the index differs only in searches by words
	queryCounts  func() (requests, searches int64) // of the index
}

// measureVintage builds a vintage and measures each operation on each index, the search for damaged addresses, and each operation over HTTP.
func (r *run) measureVintage(ctx context.Context, build func() (*questionSet, error)) (err error) {
	drawn, err := build()
	if err != nil {
		return err
	}
	v, err := vintage.Open(r.path)
	if err != nil {
		return err
	}
	// From here on servedVintage owns v and closes it at the deferred Swap.
	servedVintage := live.New(r.communes)
	servedVintage.Swap(v)
	defer servedVintage.Swap(nil)
	engines := []testedEngine{{name: "engine", Engine: address.New(v, r.communes), queryCounts: func() (int64, int64) { return 0, 0 }}}
	if r.Meilisearch != "" {
		x, fillErr := r.fillMeilisearch(ctx, v)
		if fillErr != nil {
			return fillErr
		}
		defer func() { err = errors.Join(err, x.Remove(ctx)) }()
		engines = append(engines, testedEngine{name: "meilisearch", Engine: x.Engine, searchesOnly: true, queryCounts: x.Asked})
	}
	for _, e := range engines {
		for _, op := range operations() {
			if e.searchesOnly && !op.searchesText {
				continue
			}
			if err := r.measureOperation(ctx, e, op, drawn.questions); err != nil {
				return fmt.Errorf("%s: %s: %w", e.name, op.name, err)
			}
		}
	}
	if err := r.scoreEngines(ctx, engines, drawn.sample); err != nil {
		return err
	}
	return r.measureHTTP(ctx, servedVintage, drawn.questions)
}

// warmUpQuestions is how many questions an operation answers before it is measured. They load the needed parts of the vintage into memory.
const warmUpQuestions = 200

// measureOperation measures one operation in one goroutine, on one question after another.
func (r *run) measureOperation(ctx context.Context, e testedEngine, op operation, questions []question) error {
	r.Progress(e.name+": "+op.name, 0, 0)
	runOne := func(n int) error { return unexpectedError(op.run(ctx, e.Engine, &questions[n%len(questions)])) }
	for n := range min(warmUpQuestions, len(questions)) {
		if err := runOne(n); err != nil {
			return err
		}
	}
	f, err := measure.Loop(ctx, 1, r.FigureDuration, func(context.Context, int) func(int) error { return runOne })
	if err != nil {
		return err
	}
	return r.Report(f.With(r.labels(e.name, op.name)...))
}

// fillMeilisearch indexes a vintage in Meilisearch and reports how fast.
func (r *run) fillMeilisearch(ctx context.Context, v *vintage.Vintage) (*meiliindex.Index, error) {
	began := time.Now()
	x, err := meiliindex.Fill(ctx, r.Meilisearch, v, r.communes, func(done, total int) { r.Progress("meilisearch: list", done, total) })
	if err != nil {
		return nil, err
	}
	documents := float64(v.Streets + v.Localities + v.Communes)
	figure := durationFigure(documents, time.Since(began)).With(r.labels("meilisearch", "list documents")...)
	if err := r.Report(figure); err != nil {
		return nil, errors.Join(err, x.Remove(ctx))
	}
	return x, nil
}

// durationFigure returns the figure of one long operation on n things: its speed, and its duration as Max.
func durationFigure(n float64, took time.Duration) measure.Figure {
	return measure.Figure{Value: n / took.Seconds(), Unit: "/s", Max: float64(took.Microseconds()) / 1e3}
}
