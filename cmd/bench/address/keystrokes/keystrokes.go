// Package keystrokes types real addresses letter by letter, asks for suggestions after each key, and counts the keys until the expected address
// is among them. A geocoder gets exactly the questions of a field that completes addresses, so that any other one can be measured along with
// the engine.
//
//	Run ──> accuracy.OpenVintage     files of the base and invented rows, built once and kept
//	    ──> drawRows                 real rows of the files
//	    ──> ways                     the lines in which somebody writes each of them
//	    ──> typeLine                 asks after each key: the engine, and a peer if there is one
//	    ──> tally ──> measure.Figure, one for each way, with and without a bias, and each geocoder
//
// On the data set for tests:
//
//	D=../shared/data; go run ./cmd/bench address --keystrokes 200 --vintage /var/tmp/bench.vintage \
//	    --file $D/questions/real-rows.csv.gz --file $D/ban/adresses-48.csv.gz --file $D/ban/adresses-93010-bondy.csv.gz
package keystrokes

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"time"

	"lieudit/cmd/bench/address/accuracy"
	"lieudit/cmd/bench/measure"
	"lieudit/cmd/lieudit/vintages"
	"lieudit/queries/address"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/text"
	"lieudit/schemas/geo"
)

// Options select what is typed, and who is asked for suggestions.
type Options struct {
	accuracy.Options        // Files, Invented, Seed, Vintage and Out; the files are required
	Addresses        int    // number of addresses typed
	Peer             string // URL of another geocoder with addok's interface, filled with the same rows; empty: none
}

// Run types the addresses and reports the figures.
func Run(ctx context.Context, dir string, o Options, out measure.Output) (err error) {
	communes, err := commune.Load()
	if err != nil {
		return err
	}
	v, err := accuracy.OpenVintage(ctx, dir, communes, o.Options, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	rows, err := drawRows(ctx, o)
	if err != nil {
		return err
	}
	log, err := newLog(o.Out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.close()) }()
	engine := address.New(v, communes)
	geocoders := []geocoder{{"engine", engineCompleter(engine)}}
	if o.Peer != "" {
		geocoders = append(geocoders, geocoder{"peer", peerCompleter(o.Peer)})
	}
	r := run{Output: out, geocoders: geocoders, log: log}
	return r.typeAll(ctx, newTypedAddresses(engine, rows, o.Seed))
}

// drawRows draws a uniform sample of the house numbers of the files. The same files and the same seed give the same rows.
func drawRows(ctx context.Context, o Options) (drawn []ban.Row, err error) {
	sources, err := vintages.OpenSources(ctx, o.Files)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sources.Close()) }()
	return sampleHouses(sources.Rows, rand.New(rand.NewPCG(o.Seed, 5)), o.Addresses)
}

// sampleHouses keeps a uniform sample of the rows with a house number, by reservoir sampling.
func sampleHouses(rows iter.Seq2[ban.Row, error], rng *rand.Rand, size int) (sample []ban.Row, err error) {
	seen := 0
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		if row.Kind != ban.HouseNumber {
			continue
		}
		if seen++; len(sample) < size {
			sample = append(sample, row)
		} else if i := rng.IntN(seen); i < size {
			sample[i] = row
		}
	}
	return sample, nil
}

// typedAddress is an address of the base that somebody types.
type typedAddress struct {
	record, street address.Record
	bias           geo.Point
}

// newTypedAddresses looks the rows up in the vintage. It omits those that the vintage does not have.
func newTypedAddresses(engine *address.Engine, rows []ban.Row, seed uint64) (all []typedAddress) {
	rng := rand.New(rand.NewPCG(seed, 6))
	for i := range rows {
		record, isKnown := engine.View(rows[i].ID)
		street, hasStreet := engine.View(streetID(rows[i].ID))
		if isKnown && hasStreet && record.Postcode != "" {
			all = append(all, typedAddress{record, street, nearby(rng, record.Lon, record.Lat)})
		}
	}
	return all
}

const biasMetres = 2_000 // between an address and the person who types it

// nearby returns a point at biasMetres from another one, in a random direction.
func nearby(rng *rand.Rand, lon, lat float64) geo.Point {
	north, east := math.Sincos(2 * math.Pi * rng.Float64())
	return geo.PlaneAt(geo.Point{Lon: lon, Lat: lat}).At(biasMetres*east, biasMetres*north)
}

// run is one run of the benchmark.
type run struct {
	measure.Output
	geocoders []geocoder
	log       *log
}

// typeAll types all addresses in every way, without a bias and with one. All geocoders get a question before the next one is
// asked, so that a busy minute of the machine affects all of them.
func (r *run) typeAll(ctx context.Context, addresses []typedAddress) error {
	for _, w := range ways() {
		for _, isBiased := range []bool{false, true} {
			tallies, err := r.typeWay(ctx, w, isBiased, addresses)
			if err != nil {
				return err
			}
			for i, t := range tallies {
				if err := r.Report(t.figure(w.name, biasName(isBiased), r.geocoders[i].name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// biasName returns the label of a figure.
func biasName(isBiased bool) string {
	if isBiased {
		return "near"
	}
	return "none"
}

// typeWay types all addresses in one way. It returns a tally for each geocoder.
func (r *run) typeWay(ctx context.Context, w way, isBiased bool, addresses []typedAddress) ([]*tally, error) {
	tallies := make([]*tally, len(r.geocoders))
	for i := range tallies {
		tallies[i] = newTally()
	}
	for n := range addresses {
		a := &addresses[n]
		r.Progress(w.name+", bias: "+biasName(isBiased), n, len(addresses))
		l, ok := w.line(a)
		if !ok {
			continue
		}
		if isBiased {
			l.bias = &a.bias
		}
		for i, g := range r.geocoders {
			if err := r.typeLine(ctx, g, w, l, tallies[i]); err != nil {
				return nil, fmt.Errorf("%s: %q: %w", g.name, l.text, err)
			}
		}
	}
	return tallies, nil
}

// typeLine types one line and asks one geocoder after each key.
func (r *run) typeLine(ctx context.Context, g geocoder, w way, l line, t *tally) error {
	var typed typing
	for keys, prefix := range prefixes(l.text) {
		began := time.Now()
		found, err := g.complete(ctx, prefix, l.bias)
		took := time.Since(began)
		isUnparsable := errors.Is(err, address.ErrUnparsable)
		if err != nil && !isUnparsable {
			return fmt.Errorf("%q: %w", prefix, err)
		}
		t.latencies.Record(took)
		if what := typed.add(keys, l.rank(found), len(found), isUnparsable); what != "" {
			if err := r.log.write(g.name, w.name, biasName(l.bias != nil), what, prefix, l, found); err != nil {
				return err
			}
		}
	}
	typed.keys = len([]rune(l.text))
	t.add(typed)
	return nil
}

// shortest is the minimum number of letters and digits in a text that is asked. One of them must be a letter: digits alone do not identify an
// address.
const shortest = 3

// prefixes yields the texts that are asked while a line is typed, with the number of keys that each takes.
func prefixes(line string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		runes := []rune(line)
		for keys := 1; keys <= len(runes); keys++ {
			prefix := string(runes[:keys])
			length, hasLetter := 0, false
			for _, w := range text.Words(prefix) {
				length += len(w.Text) + len(w.Tail)
				hasLetter = hasLetter || !w.Number()
			}
			if length >= shortest && hasLetter && !yield(keys, prefix) {
				return
			}
		}
	}
}
