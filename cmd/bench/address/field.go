package address

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"strings"
	"time"

	"lieudit/queries/address"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/specimen"
	"lieudit/queries/address/vintage"
)

// questionCount is how many rows questions are made of.
const questionCount = 5000

// questionSet is what questions are asked about.
type questionSet struct {
	rows      int // of all that there are
	questions []question
	sample    []ban.Row // house numbers, of files alone
}

// question is a row in the words of each operation.
type question struct {
	line     string // the whole address
	prefix   string // as far as it may be typed
	id       string
	position address.Position
	locality string
}

// operation is one that is measured, in the engine and as a path with parameters.
type operation struct {
	name         string
	searchesText bool // by words
	run          func(context.Context, *address.Engine, *question) error
	path         func(*question) (path string, parameters []string)
}

func operations() []operation {
	return []operation{
		{"verify", true, func(ctx context.Context, e *address.Engine, q *question) error {
			_, err := e.Verify(ctx, address.Query{Text: q.line, Limit: 5})
			return err
		}, func(q *question) (string, []string) { return "/address/verify", []string{"q", q.line} }},
		{"autocomplete", true, func(ctx context.Context, e *address.Engine, q *question) error {
			_, err := e.Complete(ctx, address.Query{Text: q.prefix, Limit: 5})
			return err
		}, func(q *question) (string, []string) { return "/address/autocomplete", []string{"q", q.prefix} }},
		{"view", false, withoutError(func(e *address.Engine, q *question) { e.View(q.id) }),
			func(q *question) (string, []string) { return "/address/view/" + q.id, nil }},
		{"proximity", false, withoutError(func(e *address.Engine, q *question) { e.Near(q.position, 500, 10) }),
			func(q *question) (string, []string) {
				return "/address/proximity", []string{"lon", fmt.Sprint(q.position.Lon), "lat", fmt.Sprint(q.position.Lat)}
			}},
		{"localities", false, withoutError(func(e *address.Engine, q *question) { e.Localities(address.LocalityQuery{Text: q.locality, Limit: 20}) }),
			func(q *question) (string, []string) { return "/locality/search", []string{"q", q.locality} }},
	}
}

// withoutError is an operation without errors.
func withoutError(ask func(*address.Engine, *question)) func(context.Context, *address.Engine, *question) error {
	return func(_ context.Context, e *address.Engine, q *question) error {
		ask(e, q)
		return nil
	}
}

// unexpectedError is an error of an operation, unless it is an answer to what was asked.
func unexpectedError(err error) error {
	if errors.Is(err, address.ErrShort) || errors.Is(err, address.ErrUnparsable) {
		return nil
	}
	return err
}

// buildSynthetic invents the rows and builds a vintage of them, drawing questions on the way.
func (o Options) buildSynthetic(ctx context.Context, communes *commune.Table, path string, rows int) (*questionSet, Figure, error) {
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := specimen.Write(ctx, w, communes, specimen.Order{Addresses: rows, Seed: 1})
		w.CloseWithError(err)
		written <- err
	}()
	f, began := &questionSet{rows: rows}, time.Now()
	sum, err := vintage.Build(ctx, path, f.sampleQuestions(ban.Read(r, "specimen", &ban.Report{})), vintage.Options{
		Millesime: "bench", Synthetic: true,
		Progress: func(stage string, done, _ int) { o.Progress(fmt.Sprintf("%d rows: %s", rows, stage), done, rows) },
	})
	r.CloseWithError(io.ErrClosedPipe) // ends a writer nobody reads
	took := time.Since(began)
	built := Figure{PerSecond: float64(rows) / took.Seconds(), Max: took.Seconds() * 1e3, Bytes: sum.Bytes}
	return f, built.withLabels(rows, "disk", "invent and build"), errors.Join(err, <-written)
}

// sampleQuestions passes rows on and keeps a fair sample of them as questions.
func (f *questionSet) sampleQuestions(rows iter.Seq2[ban.Row, error]) iter.Seq2[ban.Row, error] {
	return func(yield func(ban.Row, error) bool) {
		rng, seen := rand.New(rand.NewPCG(1, 2)), 0
		for row, err := range rows {
			if !yield(row, err) || err != nil {
				return
			}
			seen++
			if len(f.questions) < questionCount {
				f.questions = append(f.questions, newQuestion(&row, rng))
			} else if i := rng.IntN(seen); i < questionCount {
				f.questions[i] = newQuestion(&row, rng)
			}
		}
	}
}

func newQuestion(r *ban.Row, rng *rand.Rand) question {
	street := strings.TrimSpace(r.Rep + " " + r.Voie)
	if r.Kind == ban.HouseNumber {
		street = fmt.Sprintf("%d%s", r.Numero, street)
		if r.Rep == "" {
			street = fmt.Sprintf("%d %s", r.Numero, r.Voie)
		}
	}
	line := []rune(street + " " + r.CodePostal + " " + r.Commune)
	typed := line[:min(len(line), 4+rng.IntN(len(line)))]
	return question{line: string(line), prefix: string(typed), id: r.ID, position: address.Position{Lon: r.Lon, Lat: r.Lat}, locality: r.Commune}
}
