// Package api measures how many requests a second the API serves while it checks keys, counts every request durably and
// fills its read models. An empty net/http handler is measured next to it: its speed is the raw limit, because no service
// written with net/http can be faster. Its constraint: service and handler are processes of their own and take turns under
// the same clients, so that they meet the same machine; each figure is the median of its turns.
//
//	Run ──> harness.StartService, empty handler ──> openAccounts ──> scenarios
//	    ──> measureRound (one turn of the handler, one of each scenario) ──> measure.Medians ──> figures
package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/bench/measure"
	"lieudit/http/api"
	"lieudit/schemas/plan"
)

// Options say what is measured. All are required.
type Options struct {
	Logs          []string
	Paths         []string // below the API's base, with their queries
	Accounts      []int    // over how many accounts the requests are spread
	Connections   []int
	RoundDuration time.Duration
	Rounds        int
}

// The logs that a service can be measured on.
const (
	Journal = "journal"
	Node    = "node"
)

// EventsPerMillion is the name of the extra number that says how many events of usage a million requests wrote. It shows how
// many requests the service counts in one event.
const EventsPerMillion = "events per million"

// Run measures every combination of the options, with the processes' folders in dir, and removes these folders. In a figure,
// Raw is the empty handler's speed in requests a second.
func Run(ctx context.Context, dir string, o Options, out measure.Output) error {
	for _, log := range o.Logs {
		if err := measureLog(ctx, dir, log, o, out); err != nil {
			return fmt.Errorf("on the %s: %w", log, err)
		}
	}
	return nil
}

// run is the measurement of one log.
type run struct {
	Options
	measure.Output
	*harness.Service
	log          string
	emptyAddress string // of the empty handler
	scenarios    []scenario
}

// scenario is what is requested in a turn: a path with the key of each account in turn.
type scenario struct {
	path     string
	accounts int
	requests [][]byte // one of each account
}

// measureLog measures every combination of accounts, paths and connections on one log. The same processes and accounts serve
// all combinations, so later rounds run on a log that holds the usage of the earlier ones.
func measureLog(ctx context.Context, dir, log string, o Options, out measure.Output) (err error) {
	r := &run{Options: o, Output: out, log: log}
	if r.Service, err = harness.StartService(ctx, dir, log == Node); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Remove()) }()
	emptyHandler, err := harness.StartProcess(r.WorkDir, "empty", harness.EmptyHandlerCommand)
	if err != nil {
		return err
	}
	defer emptyHandler.Kill()
	if r.emptyAddress, err = emptyHandler.WaitForLine(ctx, "An empty handler"); err != nil {
		return err
	}
	for _, accounts := range o.Accounts {
		if err := r.openAccounts(ctx, accounts); err != nil {
			return err
		}
	}
	for _, connections := range o.Connections {
		r.Progress(fmt.Sprintf("%s, %d connections", log, connections), 0, 0)
		if err := r.ReportMedians(o.Rounds, func() ([]measure.Figure, error) { return r.measureRound(ctx, connections) }); err != nil {
			return err
		}
	}
	return nil
}

// concurrentOpenings is how many accounts are opened at a time. Appends that are made at the same time share one sync of the
// disk, so many at once take little longer than one.
const concurrentOpenings = 32

// openAccounts opens that many accounts and adds a scenario for each path. It sends each request of a scenario once, so that
// the service has loaded the usage of every account before a turn begins.
func (r *run) openAccounts(ctx context.Context, accounts int) error {
	r.Progress(fmt.Sprintf("%s, %d accounts", r.log, accounts), 0, 0)
	tokens := make([]string, accounts)
	var work errgroup.Group
	work.SetLimit(concurrentOpenings)
	for i := range tokens {
		work.Go(func() error {
			key, err := r.Admin.OpenAccount(ctx, fmt.Sprintf("of-%d-%d", accounts, i), plan.Business, harness.UnlimitedQuota)
			tokens[i] = key.Token
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return err
	}
	for _, path := range r.Paths {
		s := scenario{path: path, accounts: accounts}
		for _, token := range tokens {
			s.requests = append(s.requests, measure.EncodeGet(r.API, api.Base+path, token))
		}
		if err := measure.SendAll(ctx, r.API, s.requests); err != nil {
			return fmt.Errorf("first request: %w", err)
		}
		r.scenarios = append(r.scenarios, s)
	}
	return nil
}

// measureRound measures one turn of the empty handler and one of each scenario. The read models have caught up before, so
// that they do not work in the empty handler's turn.
func (r *run) measureRound(ctx context.Context, connections int) ([]measure.Figure, error) {
	if err := r.Admin.WaitCaughtUp(ctx); err != nil {
		return nil, err
	}
	load := measure.Load{Address: r.emptyAddress, Connections: connections, Duration: r.RoundDuration, Accept: []int{http.StatusOK}}
	request := measure.EncodeGet(r.emptyAddress, "/", "none")
	load.Request = func(int, int) []byte { return request }
	empty, err := load.Run(ctx)
	if err != nil {
		return nil, fmt.Errorf("empty handler: %w", err)
	}
	load.Address = r.API
	var figures []measure.Figure
	for _, s := range r.scenarios {
		before, err := r.countUsageEvents(ctx)
		if err != nil {
			return nil, err
		}
		// The difference of the service's counter is what this turn wrote.
		load.Request = func(connection, n int) []byte { return s.requestOf(connection, connections, n) }
		f, err := load.Run(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s of %d accounts: %w", s.path, s.accounts, err)
		}
		after, err := r.countUsageEvents(ctx)
		if err != nil {
			return nil, err
		}
		f.Raw = empty.Value
		f.Extra = map[string]float64{"empty p99 ms": empty.P99, EventsPerMillion: (after - before) / float64(f.Samples) * 1e6}
		figures = append(figures, f.With(
			measure.Label{Name: "log", Value: r.log}, measure.Label{Name: "path", Value: s.path},
			measure.Label{Name: "accounts", Value: s.accounts}, measure.Label{Name: "connections", Value: connections},
		))
	}
	return figures, nil
}

// requestOf returns the n-th request of a connection. A connection uses every connections-th account, from its own number on,
// and starts over after the last. Where there are fewer accounts than connections, several connections use one account.
func (s scenario) requestOf(connection, connections, n int) []byte {
	first := connection % len(s.requests)
	share := (len(s.requests) - first + connections - 1) / connections
	return s.requests[first+n%share*connections]
}

// eventsMetric is the metric of the service that counts the events of usage that it has written.
const eventsMetric = "lieudit_usage_events_total"

// countUsageEvents is how many events of usage the service has written so far.
func (r *run) countUsageEvents(ctx context.Context) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.Ops+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), eventsMetric+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("the service has no metric %s", eventsMetric)
}
