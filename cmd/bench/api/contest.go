// Package api measures how much of an empty net/http handler's requests a second the service reaches while
// it checks keys, counts every request durably and fills its read models. Service and handler are processes of their
// own, asked by the same clients in turns of the same minutes; each figure is the median of its turns.
package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/bench/loadclient"
)

// Options say what is measured. All fields but Progress are required.
type Options struct {
	Dir           string // on the disk to use
	Logs          []string
	Paths         []string // below the API's base, with their queries
	Accounts      []int    // over how many accounts requests are spread
	Connections   []int
	RoundDuration time.Duration
	Rounds        int
	Progress      func(what string)
}

// The logs a service can be measured on.
const (
	Journal = "journal"
	Node    = "node"
)

// Figure is what came of one combination.
type Figure struct {
	Log              string  `json:"log"`
	Path             string  `json:"path"`
	Accounts         int     `json:"accounts"`
	Connections      int     `json:"connections"`
	PerSecond        float64 `json:"per_second"`
	P50              float64 `json:"p50_ms"`
	P99              float64 `json:"p99_ms"`
	EmptyPerSecond   float64 `json:"empty_per_second"` // the empty handler's, in between
	EmptyP99         float64 `json:"empty_p99_ms"`
	Ratio            float64 `json:"ratio"`
	EventsPerMillion float64 `json:"events_per_million"` // of usage, written for a million requests
}

// Run measures every combination, and tells figures as they come.
func Run(ctx context.Context, o Options, report func(Figure) error) error {
	for _, log := range o.Logs {
		if err := o.measureLog(ctx, log, report); err != nil {
			return fmt.Errorf("on the %s: %w", log, err)
		}
	}
	return nil
}

func (o Options) measureLog(ctx context.Context, log string, report func(Figure) error) (err error) {
	g, err := harness.NewWorkDir(o.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Remove()) }()
	f, err := o.startEnvironment(ctx, g, log)
	defer f.killProcesses()
	if err != nil {
		return err
	}
	for _, connections := range o.Connections {
		figures, err := f.compare(ctx, connections)
		if err != nil {
			return err
		}
		for _, g := range figures {
			if err := report(g); err != nil {
				return err
			}
		}
	}
	return nil
}

// results are the turns of one competitor.
type results []result

func (t results) median(metric func(result) float64) float64 {
	values := make([]float64, len(t))
	for i, one := range t {
		values[i] = metric(one)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func perSecond(t result) float64 { return t.perSecond }
func p50(t result) float64       { return t.p50 }
func p99(t result) float64       { return t.p99 }

// compare lets the empty handler and the service take turns over so many connections.
func (f *environment) compare(ctx context.Context, connections int) ([]Figure, error) {
	var empty results
	service := make([]results, len(f.scenarios))
	figures := make([]Figure, len(f.scenarios))
	for n := range f.Rounds {
		f.Progress(fmt.Sprintf("%s, %d connections, turn %d", f.log, connections, n+1))
		if err := f.waitCaughtUp(ctx); err != nil {
			return nil, err
		}
		got, err := f.measureRound(ctx, f.emptyAddress, connections, [][]byte{loadclient.EncodeGet(f.emptyAddress, "/", "none")})
		if err != nil {
			return nil, fmt.Errorf("empty handler: %w", err)
		}
		empty = append(empty, got)
		for i, c := range f.scenarios {
			if got, err = f.measureRound(ctx, f.service.API, connections, c.requests); err != nil {
				return nil, fmt.Errorf("%s of %d accounts: %w", c.path, c.accounts, err)
			}
			service[i] = append(service[i], got)
		}
	}
	for i, c := range f.scenarios {
		figures[i] = Figure{
			Log: f.log, Path: c.path, Accounts: c.accounts, Connections: connections,
			PerSecond: service[i].median(perSecond), P50: service[i].median(p50), P99: service[i].median(p99),
			EmptyPerSecond: empty.median(perSecond), EmptyP99: empty.median(p99),
			Ratio:            service[i].median(perSecond) / empty.median(perSecond),
			EventsPerMillion: service[i].median(func(t result) float64 { return t.events / t.requests * 1e6 }),
		}
	}
	return figures, nil
}

// killProcesses ends the processes; their folder is about to go.
func (f *environment) killProcesses() {
	for _, p := range []*harness.Process{f.serviceProcess(), f.emptyHandler, f.node} {
		if p != nil {
			p.Kill()
		}
	}
}
