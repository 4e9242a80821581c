// Package yardstick measures the address engine on invented vintages of any size: how fast one is built, and
// throughput and latency of every operation, in the engine on one processor and over HTTP on all of them.
package yardstick

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
	Dir         string        // for the vintages
	Sizes       []int         // rows
	Turn        time.Duration // for each figure
	Connections int           // over HTTP
	Progress    func(what string, done, total int)
}

// Figure is one operation at one size.
type Figure struct {
	Rows      int     `json:"lignes"`
	Where     string  `json:"ou"` // engine, http or disk
	Operation string  `json:"operation"`
	PerSecond float64 `json:"par_seconde"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
	Max       float64 `json:"max_ms"`
	Bytes     int64   `json:"octets,omitempty"` // of the vintage
}

// Run measures all sizes and tells each figure when it is there.
func Run(ctx context.Context, o Options, tell func(Figure) error) error {
	communes, err := commune.Load()
	if err != nil {
		return err
	}
	for _, rows := range o.Sizes {
		if err := o.size(ctx, communes, rows, tell); err != nil {
			return err
		}
	}
	return nil
}

// size measures one size.
func (o Options) size(ctx context.Context, communes *commune.Table, rows int, tell func(Figure) error) error {
	path := filepath.Join(o.Dir, "bench.vintage")
	f, built, err := o.build(ctx, communes, path, rows)
	if err != nil {
		return err
	}
	if err := tell(built); err != nil {
		return err
	}
	v, err := vintage.Open(path)
	if err != nil {
		return err
	}
	held := atlas.New(communes)
	held.Swap(v)
	defer held.Swap(nil)
	engine := address.New(v, communes)
	for _, op := range operations() {
		o.Progress("engine: "+op.name, 0, 0)
		figure, err := o.alone(ctx, op, engine, f)
		if err := errors.Join(err, tell(figure.of(rows, "engine", op.name))); err != nil {
			return err
		}
	}
	return o.web(ctx, held, f, func(op string, figure Figure) error { return tell(figure.of(rows, "http", op)) })
}

func (f Figure) of(rows int, where, operation string) Figure {
	f.Rows, f.Where, f.Operation = rows, where, operation
	return f
}

// alone asks one question after the other.
func (o Options) alone(ctx context.Context, op operation, e *address.Engine, f *field) (Figure, error) {
	for i := range min(200, len(f.questions)) { // what it needs is in memory then
		if err := answered(op.ask(ctx, e, &f.questions[i])); err != nil {
			return Figure{}, err
		}
	}
	var took []time.Duration
	began := time.Now()
	for i := 0; time.Since(began) < o.Turn; i++ {
		if err := ctx.Err(); err != nil {
			return Figure{}, err
		}
		q := &f.questions[i%len(f.questions)]
		at := time.Now()
		if err := answered(op.ask(ctx, e, q)); err != nil {
			return Figure{}, err
		}
		took = append(took, time.Since(at))
	}
	return summary(took, time.Since(began)), nil
}

// summary is throughput and latency of questions that took so long each.
func summary(took []time.Duration, all time.Duration) Figure {
	if len(took) == 0 {
		return Figure{}
	}
	slices.Sort(took)
	at := func(part float64) float64 {
		return float64(took[min(int(part*float64(len(took))), len(took)-1)].Nanoseconds()) / 1e6
	}
	return Figure{PerSecond: float64(len(took)) / all.Seconds(), P50: at(0.50), P99: at(0.99), Max: at(1)}
}
