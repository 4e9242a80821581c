// Package placing writes addresses with known positions as people write those of their sites, has the sites placed, and counts which of them
// are placed, where, and in which department. It calls only what a sync calls, Geocoder, so it can judge any engine behind that.
//
//	Run ──> accuracy.OpenVintage      files of the base and invented rows, built once and kept
//	    ──> accuracy.ReadQuestions ──> split ──> parts of an address
//	    ──> writings of parts      ──> site: its content, and the codes that it says
//	    ──> Geocoder.Resolve       ──> judgement ──> tally ──> measure.Figure, one a writing and set
//	                                             ──> a figure for each site that is placed in another department
//
// This command runs it on the test data set, with a vintage that the next run uses again:
//
//	D=../shared/data; go run ./cmd/bench placing --vintage /var/tmp/bench.vintage \
//	    --file $D/questions/real-rows.csv.gz --file $D/ban/adresses-48.csv.gz --file $D/ban/adresses-93010-bondy.csv.gz \
//	    --questions $D/questions/questions.csv --out placed.csv
package placing

import (
	"context"
	"errors"

	"lieudit/cmd/bench/address/accuracy"
	"lieudit/cmd/bench/measure"
	"lieudit/queries/address"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/live"
	"lieudit/queries/locations/geocode"
	"lieudit/schemas/geo"
)

// Options select the sites and the vintage. If Vintage exists, neither files nor invented rows are read.
type Options struct {
	Files     []string // of the address base
	Invented  int      // additional rows
	Seed      uint64   // of the invented rows
	Vintage   string   // used, or built and kept; empty: one is built in the folder of the run
	Questions []string // files of questions
	Out       string   // file of results; empty: none
}

// Run places all sites, one after another. It reports a figure for each writing of each set, whose value is the percentage of placed sites, and
// then one for each site that is placed in another department than its address names.
func Run(ctx context.Context, dir string, o Options, out measure.Output) (err error) {
	questions, err := accuracy.ReadQuestions(o.Questions)
	if err != nil {
		return err
	}
	communes, err := commune.Load()
	if err != nil {
		return err
	}
	v, err := accuracy.OpenVintage(ctx, dir, communes,
		accuracy.Options{Files: o.Files, Invented: o.Invented, Seed: o.Seed, Vintage: o.Vintage}, out)
	if err != nil {
		return err
	}
	addresses := live.New(communes)
	addresses.Swap(v)         // which owns it now
	defer addresses.Swap(nil) // and closes it
	engine := address.New(v, communes)
	results, err := newResultWriter(o.Out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, results.close()) }()
	r := run{geocoder: geocode.New(addresses), results: results,
		judge: judge{view: engine.View, communes: communes}, splitter: splitter{communes}, out: out}
	return r.placeAll(ctx, questions)
}

// run is one run of the benchmark.
type run struct {
	geocoder *geocode.Geocoder
	results  *resultWriter
	judge    judge
	splitter splitter
	out      measure.Output
}

// placeAll places the sites of all questions, writing by writing.
func (r *run) placeAll(ctx context.Context, questions []accuracy.Question) error {
	var all []parts
	for _, q := range questions {
		all = append(all, r.splitter.split(q))
	}
	var counts tallies
	for _, w := range writings {
		for i := range all {
			r.out.Progress(w.name, i, len(all))
			if err := r.placeSite(ctx, &w, &all[i], &counts); err != nil {
				return err
			}
		}
	}
	return counts.report(r.out)
}

// placeSite places the site of one address in one writing. It skips an address that lacks a part that the writing needs.
func (r *run) placeSite(ctx context.Context, w *writing, p *parts, counts *tallies) error {
	site, ok := w.write(r.splitter.communes, p)
	if !ok {
		return nil
	}
	m, isPlaced, err := r.geocoder.Resolve(ctx, site)
	if err != nil {
		return err
	}
	j := r.judge.judge(p, site.Address, m, isPlaced)
	if w.isUnjudged {
		j = judgement{isPlaced: j.isPlaced, isElsewhere: j.isElsewhere}
	}
	counts.add(w.name, p, site.Address, m, j)
	return r.results.write(w.name, p, site.Address, m, j)
}

// metres returns the distance between two records.
func metres(a, b *address.Record) float64 {
	return geo.Distance(geo.Point{Lon: a.Lon, Lat: a.Lat}, geo.Point{Lon: b.Lon, Lat: b.Lat})
}
