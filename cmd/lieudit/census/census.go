// Package census measures customers' places as a customer meets them, over HTTP: how long a sync of a whole referential
// takes, how soon a write is found, and how fast sites are searched while many accounts have theirs. The service is a
// process of its own, alone or on a node and the databases named.
package census

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/cmd/lieudit/caller"
	"lieudit/cmd/lieudit/fleet"
)

// Options say what is measured. All fields but the addresses of servers and Progress are required.
type Options struct {
	Dir         string // on the disk to use
	Node        bool   // the log is on a node, else in the service's own journal
	Postgres    string // of the read models; "" for SQLite
	Meilisearch string // of the search; "" for the service's own
	Sites       int    // of a sync
	Turns       int    // syncs of each kind, each in an account of its own
	Crowds      []Crowd
	Turn        time.Duration // of the searches of a kind
	Connections int
	Progress    func(what string)
}

// Crowd is accounts with so many sites each.
type Crowd struct{ Accounts, Sites int }

// Figure is one measurement, in milliseconds.
type Figure struct {
	What      string  `json:"what"`
	Accounts  int     `json:"accounts"`
	Sites     int     `json:"sites"` // of each account
	Times     int     `json:"times"` // how often it was measured
	PerSecond float64 `json:"per_second,omitempty"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
}

// Run measures everything, and tells figures as they come.
func Run(ctx context.Context, o Options, tell func(Figure) error) (err error) {
	g, err := fleet.NewGround(o.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Clear()) }()
	r := &run{Options: o, tell: tell}
	defer r.end()
	if err := r.raise(ctx, g); err != nil {
		return err
	}
	if err := r.syncs(ctx); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	for _, c := range o.Crowds {
		if err := r.crowd(ctx, c); err != nil {
			return fmt.Errorf("%d accounts of %d sites: %w", c.Accounts, c.Sites, err)
		}
	}
	return nil
}

// run is a census under way.
type run struct {
	Options
	tell    func(Figure) error
	node    *fleet.Process
	service *fleet.Instance
	office  fleet.Office
	places  []place
}

// raise starts the processes.
func (r *run) raise(ctx context.Context, g fleet.Ground) (err error) {
	var on []string
	if r.Node {
		if r.node, err = fleet.Node(ctx, g, "node"); err != nil {
			return err
		}
		on = append(on, "--eventstore", "esdb+unix://"+g.Socket("node"))
	}
	if r.Postgres != "" {
		on = append(on, "--postgres", r.Postgres)
	}
	if r.Meilisearch != "" {
		on = append(on, "--meilisearch", r.Meilisearch)
	}
	if r.service, err = fleet.Serve(ctx, g, "service", "127.0.0.1:0", on...); err != nil {
		return err
	}
	if err = r.service.Ready(ctx); err != nil {
		return err
	}
	if r.office, err = r.service.Office(); err != nil {
		return err
	}
	r.places, err = invented(ctx)
	return err
}

// end ends the processes; their folder is about to go.
func (r *run) end() {
	if r.service != nil {
		r.service.Kill()
	}
	if r.node != nil {
		r.node.Kill()
	}
}

// figure is what times come to.
func figure(what string, accounts, sites int, times caller.Times) Figure {
	times.Sort()
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
	return Figure{What: what, Accounts: accounts, Sites: sites, Times: len(times), P50: ms(times.Quantile(0.5)), P99: ms(times.Quantile(0.99))}
}
