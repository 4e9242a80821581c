// Package journal says how fast a journal is on the disk at hand, and beside every figure what the bare disk or
// the bare memory does with the same bytes in the same minutes, since a figure alone says little on a shared machine.
// Journal and raw limit take turns; each figure is the median of its turns.
package journal

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Figure is one figure. Raw is what the machine does without a journal, in the same unit, and Ratio how much of it
// the journal reaches; both are 0 where there is nothing to compare with.
type Figure struct {
	Name  string
	Value float64
	Unit  string
	Raw   float64
	Ratio float64
}

// Options say how long to measure.
type Options struct {
	RoundDuration time.Duration // of one turn of appends; half a second when zero
	Rounds        int           // of journal and raw limit each; 5 when zero
	Events        int           // in the log that is read and opened; a million when zero
}

func (o Options) withDefaults() Options {
	if o.RoundDuration == 0 {
		o.RoundDuration = 500 * time.Millisecond
	}
	if o.Rounds == 0 {
		o.Rounds = 5
	}
	if o.Events == 0 {
		o.Events = 1_000_000
	}
	return o
}

// Measure measures in dir, which should be empty and on the disk that matters; what it leaves there is about half a
// gigabyte with a million events.
func Measure(ctx context.Context, dir string, o Options) ([]Figure, error) {
	o = o.withDefaults()
	rows, err := MeasureAppends(ctx, dir, o, 1, 32, 512)
	if err != nil {
		return nil, fmt.Errorf("measure appends: %w", err)
	}
	more, err := MeasureReads(ctx, dir, o)
	if err != nil {
		return nil, fmt.Errorf("measure reads: %w", err)
	}
	return append(rows, more...), nil
}

func newFigure(name, unit string, values, raws []float64) Figure {
	r := Figure{Name: name, Unit: unit, Value: median(values), Raw: median(raws)}
	if r.Raw > 0 {
		r.Ratio = r.Value / r.Raw
	}
	return r
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
