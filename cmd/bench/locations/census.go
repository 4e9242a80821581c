// Package locations measures customers' places as a customer meets them, over HTTP: how long a sync of a whole referential
// takes, how soon a write is found, and how fast sites are searched while many accounts have theirs. The service is a
// process of its own, alone or on a node and the databases named.
package locations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/bench/loadclient"
)

// Options say what is measured. All fields but the addresses of servers and Progress are required.
type Options struct {
	Dir            string // on the disk to use
	Node           bool   // the log is on a node, else in the service's own journal
	Postgres       string // of the read models; "" for SQLite
	Meilisearch    string // of the search; "" for the service's own
	Sites          int    // of a sync
	Rounds         int    // syncs of each kind, each in an account of its own
	Groups         []AccountGroup
	SearchDuration time.Duration // of the searches of a kind
	Connections    int
	Progress       func(what string)
}

// AccountGroup is accounts with so many sites each.
type AccountGroup struct{ Accounts, Sites int }

// Figure is one measurement, in milliseconds.
type Figure struct {
	Operation string  `json:"what"`
	Accounts  int     `json:"accounts"`
	Sites     int     `json:"sites"` // of each account
	Samples   int     `json:"times"` // how often it was measured
	PerSecond float64 `json:"per_second,omitempty"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
}

// Run measures everything, and tells figures as they come.
func Run(ctx context.Context, o Options, report func(Figure) error) (err error) {
	workDir, err := harness.NewWorkDir(o.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, workDir.Remove()) }()
	r := &run{Options: o, report: report}
	defer r.killProcesses()
	if err := r.startProcesses(ctx, workDir); err != nil {
		return err
	}
	if err := r.measureSyncs(ctx); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	for _, c := range o.Groups {
		if err := r.measureGroup(ctx, c); err != nil {
			return fmt.Errorf("%d accounts of %d sites: %w", c.Accounts, c.Sites, err)
		}
	}
	return nil
}

// run is a census under way.
type run struct {
	Options
	report    func(Figure) error
	node      *harness.Process
	service   *harness.Instance
	admin     harness.AdminClient
	addresses []syntheticAddress
}

// startProcesses starts the processes.
func (r *run) startProcesses(ctx context.Context, workDir harness.WorkDir) (err error) {
	var flags []string
	if r.Node {
		if r.node, err = harness.StartNode(ctx, workDir, "node"); err != nil {
			return err
		}
		flags = append(flags, "--eventstore", "esdb+unix://"+workDir.SocketPath("node"))
	}
	if r.Postgres != "" {
		flags = append(flags, "--postgres", r.Postgres)
	}
	if r.Meilisearch != "" {
		flags = append(flags, "--meilisearch", r.Meilisearch)
	}
	if r.service, err = harness.StartInstance(ctx, workDir, "service", "127.0.0.1:0", flags...); err != nil {
		return err
	}
	if err = r.service.WaitReady(ctx); err != nil {
		return err
	}
	if r.admin, err = r.service.AdminClient(); err != nil {
		return err
	}
	r.addresses, err = readSyntheticAddresses(ctx)
	return err
}

// killProcesses ends the processes; their folder is about to go.
func (r *run) killProcesses() {
	if r.service != nil {
		r.service.Kill()
	}
	if r.node != nil {
		r.node.Kill()
	}
}

// newFigure is what times come to.
func newFigure(what string, accounts, sites int, latencies loadclient.Latencies) Figure {
	latencies.Sort()
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
	return Figure{Operation: what, Accounts: accounts, Sites: sites, Samples: len(latencies), P50: ms(latencies.Quantile(0.5)), P99: ms(latencies.Quantile(0.99))}
}
