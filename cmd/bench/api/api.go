// Package api measures how many requests a second the API serves while it checks keys, counts every request durably and
// fills its read models, and what a request costs in processor time and in bytes of the usage log. An empty net/http handler
// is measured next to it: its speed is the raw limit, because no service written with net/http can be faster. Service and
// handler are processes of their own and take turns under the same clients, so that they meet the same machine; each figure is
// the median of its turns.
//
//	Run ──> harness.StartService, empty handler ──> openAccounts ──> scenarios
//	    ──> measureRound (one turn of the handler, one of each scenario) ──> measure.Medians ──> figures
//	            └──> readMeters before and after each turn ──> meters.since ──> the extra numbers of a figure
package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/bench/measure"
	"lieudit/http/api"
	"lieudit/schemas/plan"
)

// Options say what is measured. All are required, but EventStoreURL only if EventStore is one of Logs.
type Options struct {
	Logs          []string
	EventStoreURL string
	Paths         []string // below the API's base, with their queries
	Accounts      []int    // over how many accounts the requests are spread
	Connections   []int
	RoundDuration time.Duration
	Rounds        int
}

// The logs that a service can be measured on: its own journal, a node that is started for it, or a server that runs already.
const (
	Journal    = "journal"
	Node       = "node"
	EventStore = "eventstore"
)

// Run measures every combination of the options, with the processes' folders in dir, and removes these folders. What it wrote
// to the server at EventStoreURL stays there. In a figure, Raw is the empty handler's speed in requests a second, and the extra
// numbers are those of meters.since.
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
	tag          string // at the end of the names of accounts, so that they are new on the log
	emptyHandler *harness.Process
	emptyAddress string // of the empty handler
	scenarios    []scenario
}

// scenario is what is requested in a turn: a path with the key of each account in turn.
type scenario struct {
	path     string
	accounts []string // ids
	requests [][]byte // one of each account
}

// measureLog measures every combination of accounts, paths and connections on one log. The same processes and accounts serve
// all combinations, so later rounds run on a log that holds the usage of the earlier ones.
func measureLog(ctx context.Context, dir, log string, o Options, out measure.Output) (err error) {
	r := &run{Options: o, Output: out, log: log}
	if r.Service, err = r.startService(ctx, dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Remove()) }()
	if r.emptyHandler, err = harness.StartProcess(r.WorkDir, "empty", harness.EmptyHandlerCommand); err != nil {
		return err
	}
	defer r.emptyHandler.Kill()
	if r.emptyAddress, err = r.emptyHandler.WaitForLine(ctx, "An empty handler"); err != nil {
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

// startService starts the service on the log that is measured. A server may hold what an earlier run left there, with accounts
// of the same names.
func (r *run) startService(ctx context.Context, dir string) (*harness.Service, error) {
	if r.log != EventStore {
		return harness.StartService(ctx, dir, r.log == Node)
	}
	r.tag = "-" + strconv.FormatInt(time.Now().UnixMilli(), 36)
	return harness.StartServiceOnServer(ctx, dir, r.EventStoreURL)
}

// concurrentOpenings is how many accounts are opened at a time. Appends that are made at the same time share one sync of the
// disk, so many at once take little longer than one.
const concurrentOpenings = 32

// openAccounts opens that many accounts and adds a scenario for each path. It sends each request of a scenario once, so that
// the service has loaded the usage of every account before a turn begins.
func (r *run) openAccounts(ctx context.Context, accounts int) error {
	r.Progress(fmt.Sprintf("%s, %d accounts", r.log, accounts), 0, 0)
	ids, tokens := make([]string, accounts), make([]string, accounts)
	var work errgroup.Group
	work.SetLimit(concurrentOpenings)
	for i := range tokens {
		work.Go(func() error {
			ids[i] = fmt.Sprintf("of-%d-%d%s", accounts, i, r.tag)
			key, err := r.Admin.OpenAccount(ctx, ids[i], plan.Business, harness.UnlimitedQuota)
			tokens[i] = key.Token
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return err
	}
	for _, path := range r.Paths {
		s := scenario{path: path, accounts: ids}
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
	before := measure.ProcessorTimeOf(r.emptyHandler.PID())
	empty, err := load.Run(ctx)
	if err != nil {
		return nil, fmt.Errorf("empty handler: %w", err)
	}
	emptyProcessor := measure.ProcessorTimeOf(r.emptyHandler.PID()) - before
	load.Address = r.API
	var figures []measure.Figure
	for _, s := range r.scenarios {
		f, err := r.measureTurn(ctx, load, s)
		if err != nil {
			return nil, fmt.Errorf("%s of %d accounts: %w", s.path, len(s.accounts), err)
		}
		f.Raw = empty.Value
		f.Extra["empty p99 ms"] = empty.P99
		addProcessorTime(f.Extra, "empty us", emptyProcessor, empty.Samples)
		figures = append(figures, f.With(
			measure.Label{Name: "log", Value: r.log}, measure.Label{Name: "path", Value: s.path},
			measure.Label{Name: "accounts", Value: len(s.accounts)}, measure.Label{Name: "connections", Value: connections},
		))
	}
	return figures, nil
}

// measureTurn measures one turn of a scenario. The difference of the meters before and after is what the turn cost.
func (r *run) measureTurn(ctx context.Context, load measure.Load, s scenario) (f measure.Figure, err error) {
	load.Request = func(connection, n int) []byte { return s.requestOf(connection, load.Connections, n) }
	before, err := r.readMeters(ctx, s.accounts[0])
	if err != nil {
		return f, err
	}
	if f, err = load.Run(ctx); err != nil {
		return f, err
	}
	after, err := r.readMeters(ctx, s.accounts[0])
	if err != nil {
		return f, err
	}
	f.Extra = after.since(before, f.Samples)
	return f, nil
}

// requestOf returns the n-th request of a connection. A connection uses every connections-th account, from its own number on,
// and starts over after the last. Where there are fewer accounts than connections, several connections use one account.
func (s scenario) requestOf(connection, connections, n int) []byte {
	first := connection % len(s.requests)
	share := (len(s.requests) - first + connections - 1) / connections
	return s.requests[first+n%share*connections]
}
