package yardstick

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

// asked is how many rows questions are made of.
const asked = 5000

// field is what questions are asked about.
type field struct {
	rows      int // of all that there are
	questions []question
	sample    []ban.Row // house numbers, of files alone
}

// question is a row in the words of each operation.
type question struct {
	line     string // the whole address
	typed    string // as far as it may be typed
	id       string
	at       address.Position
	locality string
}

// operation is one that is measured, in the engine and as a path with parameters.
type operation struct {
	name     string
	searches bool // by words
	ask      func(context.Context, *address.Engine, *question) error
	path     func(*question) (path string, parameters []string)
}

func operations() []operation {
	return []operation{
		{"verify", true, func(ctx context.Context, e *address.Engine, q *question) error {
			_, err := e.Verify(ctx, address.Query{Text: q.line, Limit: 5})
			return err
		}, func(q *question) (string, []string) { return "/address/verify", []string{"q", q.line} }},
		{"autocomplete", true, func(ctx context.Context, e *address.Engine, q *question) error {
			_, err := e.Complete(ctx, address.Query{Text: q.typed, Limit: 5})
			return err
		}, func(q *question) (string, []string) { return "/address/autocomplete", []string{"q", q.typed} }},
		{"view", false, unfailing(func(e *address.Engine, q *question) { e.View(q.id) }),
			func(q *question) (string, []string) { return "/address/view/" + q.id, nil }},
		{"proximity", false, unfailing(func(e *address.Engine, q *question) { e.Near(q.at, 500, 10) }),
			func(q *question) (string, []string) {
				return "/address/proximity", []string{"lon", fmt.Sprint(q.at.Lon), "lat", fmt.Sprint(q.at.Lat)}
			}},
		{"localities", false, unfailing(func(e *address.Engine, q *question) { e.Localities(address.LocalityQuery{Text: q.locality, Limit: 20}) }),
			func(q *question) (string, []string) { return "/locality/search", []string{"q", q.locality} }},
	}
}

// unfailing is an operation without errors.
func unfailing(ask func(*address.Engine, *question)) func(context.Context, *address.Engine, *question) error {
	return func(_ context.Context, e *address.Engine, q *question) error {
		ask(e, q)
		return nil
	}
}

// answered is an error of an operation, unless it is an answer to what was asked.
func answered(err error) error {
	if errors.Is(err, address.ErrShort) || errors.Is(err, address.ErrUnparsable) {
		return nil
	}
	return err
}

// build invents the rows and builds a vintage of them, drawing questions on the way.
func (o Options) build(ctx context.Context, communes *commune.Table, path string, rows int) (*field, Figure, error) {
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := specimen.Write(ctx, w, communes, specimen.Order{Addresses: rows, Seed: 1})
		w.CloseWithError(err)
		written <- err
	}()
	f, began := &field{rows: rows}, time.Now()
	sum, err := vintage.Build(ctx, path, f.draw(ban.Read(r, "specimen", &ban.Report{})), vintage.Options{
		Millesime: "bench", Synthetic: true,
		Progress: func(stage string, done, _ int) { o.Progress(fmt.Sprintf("%d rows: %s", rows, stage), done, rows) },
	})
	r.CloseWithError(io.ErrClosedPipe) // ends a writer nobody reads
	took := time.Since(began)
	built := Figure{PerSecond: float64(rows) / took.Seconds(), Max: took.Seconds() * 1e3, Bytes: sum.Bytes}
	return f, built.of(rows, "disk", "invent and build"), errors.Join(err, <-written)
}

// draw passes rows on and keeps a fair sample of them as questions.
func (f *field) draw(rows iter.Seq2[ban.Row, error]) iter.Seq2[ban.Row, error] {
	return func(yield func(ban.Row, error) bool) {
		rng, seen := rand.New(rand.NewPCG(1, 2)), 0
		for row, err := range rows {
			if !yield(row, err) || err != nil {
				return
			}
			seen++
			if len(f.questions) < asked {
				f.questions = append(f.questions, ask(&row, rng))
			} else if i := rng.IntN(seen); i < asked {
				f.questions[i] = ask(&row, rng)
			}
		}
	}
}

func ask(r *ban.Row, rng *rand.Rand) question {
	street := strings.TrimSpace(r.Rep + " " + r.Voie)
	if r.Kind == ban.HouseNumber {
		street = fmt.Sprintf("%d%s", r.Numero, street)
		if r.Rep == "" {
			street = fmt.Sprintf("%d %s", r.Numero, r.Voie)
		}
	}
	line := []rune(street + " " + r.CodePostal + " " + r.Commune)
	typed := line[:min(len(line), 4+rng.IntN(len(line)))]
	return question{line: string(line), typed: string(typed), id: r.ID, at: address.Position{Lon: r.Lon, Lat: r.Lat}, locality: r.Commune}
}
