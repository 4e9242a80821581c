package address

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"

	"lieudit/cmd/lieudit/vintages"
	"lieudit/queries/address"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/synthetic"
	"lieudit/queries/address/vintage"
	"lieudit/schemas/geo"
)

// questionCount is the largest number of rows that become questions. There are enough that repeated questions do not come from the same few
// parts of the vintage.
const questionCount = 5000

// questionSet is a sample of the rows of a vintage, drawn while it is built.
type questionSet struct {
	questions []question
	sample    []ban.Row // rows with a house number, of files only, for damaged questions
}

// question is a row as the input of each operation: verify takes line, autocomplete prefix, view id, proximity position, and
// localities locality.
type question struct {
	line     string // the whole address
	prefix   string // a part of it, as somebody types it
	id       string
	position geo.Point
	locality string
}

// operation is one operation of the engine, both as a call and as the path below the API's base that runs it over HTTP.
type operation struct {
	name         string
	searchesText bool // by words, so in the index under test
	run          func(context.Context, *address.Engine, *question) error
	path         func(*question) string
}

// operations returns all operations of the address API. The engine is called as the API calls it, with the same limits.
func operations() []operation {
	// infallible makes an operation of a call that returns no error.
	infallible := func(run func(*address.Engine, *question)) func(context.Context, *address.Engine, *question) error {
		return func(_ context.Context, e *address.Engine, q *question) error { run(e, q); return nil }
	}
	return []operation{
		{"verify", true, func(ctx context.Context, e *address.Engine, q *question) error {
			_, err := e.Verify(ctx, address.Query{Text: q.line, Limit: 5})
			return err
		}, func(q *question) string { return "/address/verify?q=" + url.QueryEscape(q.line) }},
		{"autocomplete", true, func(ctx context.Context, e *address.Engine, q *question) error {
			_, err := e.Complete(ctx, address.Query{Text: q.prefix, Limit: 5})
			return err
		}, func(q *question) string { return "/address/autocomplete?q=" + url.QueryEscape(q.prefix) }},
		{"view", false, infallible(func(e *address.Engine, q *question) { e.View(q.id) }),
			func(q *question) string { return "/address/view/" + q.id }},
		{"proximity", false, infallible(func(e *address.Engine, q *question) { e.Near(q.position, 500, 10, address.Filter{}) }),
			func(q *question) string {
				return fmt.Sprintf("/address/proximity?lon=%v&lat=%v", q.position.Lon, q.position.Lat)
			}},
		{"localities", false, infallible(func(e *address.Engine, q *question) { e.Localities(address.LocalityQuery{Text: q.locality, Limit: 20}) }),
			func(q *question) string { return "/locality/search?q=" + url.QueryEscape(q.locality) }},
	}
}

// unexpectedError returns the error of an operation, or nil if the error is a right answer to the question: it is too short or not an address.
func unexpectedError(err error) error {
	if errors.Is(err, address.ErrShort) || errors.Is(err, address.ErrUnparsable) {
		return nil
	}
	return err
}

// buildSynthetic builds a vintage of invented rows and draws the questions at the same time. The seed is constant: equal sizes have equal rows.
func (r *run) buildSynthetic(ctx context.Context, rows int) (*questionSet, error) {
	r.rows = rows
	drawn := &questionSet{}
	invented := synthetic.Rows(ctx, r.communes, synthetic.Options{Addresses: rows, Seed: 1})
	return drawn, r.buildVintage(ctx, "invent and build", drawn.sampleQuestions(invented), vintage.Options{
		Millesime: "bench", Synthetic: true,
		Progress: func(stage string, done, _ int) { r.Progress(fmt.Sprintf("%d rows: %s", rows, stage), done, rows) },
	})
}

// buildFiles builds a vintage of the files, draws the questions at the same time, and keeps a sample of rows for scoreEngines.
func (r *run) buildFiles(ctx context.Context) (*questionSet, error) {
	sources, err := vintages.OpenSources(ctx, r.Files)
	if err != nil {
		return nil, err
	}
	defer sources.Close()
	r.rows = 0
	drawn := &questionSet{}
	return drawn, r.buildVintage(ctx, "read and build", drawn.sampleQuestions(drawn.sampleRows(sources.Rows)), vintage.Options{
		Millesime: "bench",
		Progress:  func(stage string, done, _ int) { r.Progress(stage, done, 0) },
	})
}

// buildVintage builds a vintage and reports rows a second and the size of the file. If r.rows is 0 it becomes the number of addresses in the
// vintage.
func (r *run) buildVintage(ctx context.Context, operation string, rows iter.Seq2[ban.Row, error], o vintage.Options) error {
	began := time.Now()
	summary, err := vintage.Build(ctx, r.path, rows, o)
	if err != nil {
		return err
	}
	took := time.Since(began)
	if r.rows == 0 {
		r.rows = summary.Addresses
	}
	figure := durationFigure(float64(r.rows), took)
	figure.Bytes = summary.Bytes
	return r.Report(figure.With(r.labels("disk", operation)...))
}

// maxSample limits how many rows with a house number are kept, so that the memory does not grow with the files.
const maxSample = 200_000

// sampleRows passes rows on and keeps a uniform sample of those with a house number. Its random numbers have a constant seed:
// the same files give the same sample.
func (f *questionSet) sampleRows(rows iter.Seq2[ban.Row, error]) iter.Seq2[ban.Row, error] {
	return reservoirSample(rows, rand.New(rand.NewPCG(3, 4)), maxSample, &f.sample,
		func(row *ban.Row) bool { return row.Kind == ban.HouseNumber }, func(row *ban.Row) ban.Row { return *row })
}

// sampleQuestions passes rows on and keeps a uniform sample of them as questions.
func (f *questionSet) sampleQuestions(rows iter.Seq2[ban.Row, error]) iter.Seq2[ban.Row, error] {
	rng := rand.New(rand.NewPCG(1, 2))
	return reservoirSample(rows, rng, questionCount, &f.questions,
		func(*ban.Row) bool { return true }, func(row *ban.Row) question { return newQuestion(row, rng) })
}

// reservoirSample passes rows on and keeps a uniform sample of the accepted ones, by reservoir sampling: the n-th accepted row replaces a
// random kept one with the probability size/n. Only kept rows are converted. A row at which the consumer stops, or that came with an error, is
// not sampled.
func reservoirSample[T any](rows iter.Seq2[ban.Row, error], rng *rand.Rand, size int, sample *[]T, accepts func(*ban.Row) bool, convert func(*ban.Row) T) iter.Seq2[ban.Row, error] {
	return func(yield func(ban.Row, error) bool) {
		seen := 0
		for row, err := range rows {
			if !yield(row, err) || err != nil {
				return
			}
			if !accepts(&row) {
				continue
			}
			if seen++; len(*sample) < size {
				*sample = append(*sample, convert(&row))
			} else if i := rng.IntN(seen); i < size {
				(*sample)[i] = convert(&row)
			}
		}
	}
}

// newQuestion makes a question of a row: its line as somebody would write the address, such as "12 bis rue du Four 48000 Mende", and as prefix
// the beginning of that line, cut at a random point after the fourth letter.
func newQuestion(r *ban.Row, rng *rand.Rand) question {
	street := strings.TrimSpace(r.Rep + " " + r.Voie)
	if r.Kind == ban.HouseNumber {
		street = fmt.Sprintf("%d%s", r.Numero, street)
		if r.Rep == "" {
			street = fmt.Sprintf("%d %s", r.Numero, r.Voie)
		}
	}
	line := []rune(street + " " + r.CodePostal + " " + r.Commune)
	prefix := line[:min(len(line), 4+rng.IntN(len(line)))]
	return question{line: string(line), prefix: string(prefix), id: r.ID, position: geo.Point{Lon: r.Lon, Lat: r.Lat}, locality: r.Commune}
}
