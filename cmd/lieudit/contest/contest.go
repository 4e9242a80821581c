// Package contest measures how much of an empty net/http handler's requests a second the service reaches while
// it checks keys, counts every request durably and fills its read models. Service and handler are processes of their
// own, asked by the same clients in turns of the same minutes; each figure is the median of its turns.
package contest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lieudit/cmd/lieudit/caller"
	"lieudit/cmd/lieudit/fleet"
)

// Options say what is measured. All fields but Progress are required.
type Options struct {
	Dir         string // on the disk to use
	Logs        []string
	Paths       []string // below the API's base, with their queries
	Accounts    []int    // over how many accounts requests are spread
	Connections []int
	Turn        time.Duration
	Turns       int
	Progress    func(what string)
}

// The logs a service can be measured on.
const (
	Journal = "journal"
	Node    = "node"
)

// Figure is what came of one combination.
type Figure struct {
	Log         string  `json:"log"`
	Path        string  `json:"path"`
	Accounts    int     `json:"accounts"`
	Connections int     `json:"connections"`
	PerSecond   float64 `json:"per_second"`
	P50         float64 `json:"p50_ms"`
	P99         float64 `json:"p99_ms"`
	Empty       float64 `json:"empty_per_second"` // the empty handler's, in between
	EmptyP99    float64 `json:"empty_p99_ms"`
	Ratio       float64 `json:"ratio"`
	Events      float64 `json:"events_per_million"` // of usage, written for a million requests
}

// Run measures every combination, and tells figures as they come.
func Run(ctx context.Context, o Options, tell func(Figure) error) error {
	for _, log := range o.Logs {
		if err := o.on(ctx, log, tell); err != nil {
			return fmt.Errorf("on the %s: %w", log, err)
		}
	}
	return nil
}

func (o Options) on(ctx context.Context, log string, tell func(Figure) error) (err error) {
	g, err := fleet.NewGround(o.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Clear()) }()
	f, err := o.prepare(ctx, g, log)
	defer f.end()
	if err != nil {
		return err
	}
	for _, connections := range o.Connections {
		figures, err := f.compare(ctx, connections)
		if err != nil {
			return err
		}
		for _, g := range figures {
			if err := tell(g); err != nil {
				return err
			}
		}
	}
	return nil
}

// EmptyCommand is the hidden command that serves an empty handler.
var EmptyCommand = [...]string{"bench", "empty"}

// tries are the turns of one competitor.
type tries []try

func (t tries) median(of func(try) float64) float64 {
	values := make([]float64, len(t))
	for i, one := range t {
		values[i] = of(one)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func perSecond(t try) float64 { return t.perSecond }
func p50(t try) float64       { return t.p50 }
func p99(t try) float64       { return t.p99 }

// compare lets the empty handler and the service take turns over so many connections.
func (f *field) compare(ctx context.Context, connections int) ([]Figure, error) {
	var empty tries
	service := make([]tries, len(f.courses))
	figures := make([]Figure, len(f.courses))
	for n := range f.Turns {
		f.Progress(fmt.Sprintf("%s, %d connections, turn %d", f.log, connections, n+1))
		if err := f.settle(ctx); err != nil {
			return nil, err
		}
		got, err := f.turn(ctx, f.empty, connections, [][]byte{caller.Request(f.empty, "/", "none")})
		if err != nil {
			return nil, fmt.Errorf("empty handler: %w", err)
		}
		empty = append(empty, got)
		for i, c := range f.courses {
			if got, err = f.turn(ctx, f.service.API, connections, c.requests); err != nil {
				return nil, fmt.Errorf("%s of %d accounts: %w", c.path, c.accounts, err)
			}
			service[i] = append(service[i], got)
		}
	}
	for i, c := range f.courses {
		figures[i] = Figure{
			Log: f.log, Path: c.path, Accounts: c.accounts, Connections: connections,
			PerSecond: service[i].median(perSecond), P50: service[i].median(p50), P99: service[i].median(p99),
			Empty: empty.median(perSecond), EmptyP99: empty.median(p99),
			Ratio:  service[i].median(perSecond) / empty.median(perSecond),
			Events: service[i].median(func(t try) float64 { return t.events / t.requests * 1e6 }),
		}
	}
	return figures, nil
}

// end ends the processes; their folder is about to go.
func (f *field) end() {
	for _, p := range []*fleet.Process{f.serving(), f.handler, f.node} {
		if p != nil {
			p.Kill()
		}
	}
}
