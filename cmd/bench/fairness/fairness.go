// Package fairness measures how long a quiet account waits while another account floods the service: with requests beyond its quota,
// or with as many of its quota as it can send. The quiet account sends at a fixed rate, whether or not it is answered, because a
// client that waits for its answer asks less of a slow service. The flood comes from a process of its own with the lowest priority:
// its connections would delay the quiet client in the same process, and with the same priority take the processor from the service,
// as they do not from a machine of their own. An empty net/http handler is flooded at the same rate next to it: what the quiet
// client waits there is the machine's, which the clients share with the service.
//
//	Run ──> harness.StartService ──> openAccounts ──> measureRound ──> quietLoad without and with a flood ──> figures
//	                                                       └──> harness.FloodCommand: Flood ──> Report
package fairness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/bench/measure"
	"lieudit/cmd/lieudit/adminclient"
	"lieudit/http/api"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
)

// Options say what is measured. All are required.
type Options struct {
	Logs          []string // Journal, Node
	Contracts     []string // who pays for the two accounts: TwoContracts, OneAgency, TwoAgencies
	Floods        []string // Exhausted, Served
	Connections   int      // of the flood
	FloodRate     int      // requests a second of a Served flood; an Exhausted one sends as fast as it is answered
	QuietRate     int      // requests a second of the quiet account
	Path          string   // below the API's base, with its query
	RoundDuration time.Duration
	Rounds        int
}

// The logs that a service can be measured on.
const (
	Journal = "journal"
	Node    = "node"
)

// Who pays for the quiet account and for the one that floods.
const (
	TwoContracts = "two"          // each for itself
	OneAgency    = "one agency"   // both are sub-clients of one agency, so that one fold counts both
	TwoAgencies  = "two agencies" // each is a sub-client of another one
)

// The floods.
const (
	Exhausted = "exhausted" // requests of an account that has used its quota
	Served    = "served"    // requests of an account that has quota left
)

// quietConnections is how many connections the quiet client has, so that a slow answer does not delay the next request.
const quietConnections = 8

// Run measures every combination of the options, with the processes' folders in dir, and removes these folders. In a figure, Value is
// the quiet account's p99 with the flood, and Raw without it.
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
	floodNumber  int    // of the last flood's process
}

// measureLog measures every combination on one log, with the same processes.
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
	for n, contracts := range o.Contracts {
		pairs := make([]pair, len(o.Floods))
		for i, flood := range o.Floods {
			if pairs[i], err = r.openAccounts(ctx, fmt.Sprintf("c%d-%d", n, i), contracts, flood); err != nil {
				return err
			}
		}
		r.Progress(fmt.Sprintf("%s, contracts: %s", log, contracts), 0, 0)
		if err := r.ReportMedians(o.Rounds, func() ([]measure.Figure, error) { return r.measureRound(ctx, pairs) }); err != nil {
			return err
		}
	}
	return nil
}

// pair is two accounts, of which one floods.
type pair struct {
	contracts, flood       string
	quietToken, floodToken string
}

// openAccounts opens a pair, and sends one request of each account. An account with an exhausted quota has used it up after that.
func (r *run) openAccounts(ctx context.Context, prefix, contracts, flood string) (p pair, err error) {
	p = pair{contracts: contracts, flood: flood}
	agencies := map[string][2]string{TwoContracts: {}, OneAgency: {prefix + "-agency", prefix + "-agency"}, TwoAgencies: {prefix + "-agency", prefix + "-other"}}[contracts]
	for i, agency := range agencies {
		if agency != "" && (i == 0 || agency != agencies[0]) {
			if err = r.openAgency(ctx, agency); err != nil {
				return p, err
			}
		}
	}
	floodQuota := int64(harness.UnlimitedQuota)
	if flood == Exhausted {
		floodQuota = 1
	}
	if p.quietToken, err = r.openAccount(ctx, prefix+"-quiet", agencies[0], harness.UnlimitedQuota); err != nil {
		return p, err
	}
	p.floodToken, err = r.openAccount(ctx, prefix+"-flood", agencies[1], floodQuota)
	return p, err
}

// openAgency opens an account that can have sub-clients.
func (r *run) openAgency(ctx context.Context, id string) error {
	_, err := r.Admin.OpenAccount(ctx, id, plan.Business, harness.UnlimitedQuota)
	if err == nil {
		_, err = r.Admin.Post(ctx, adminclient.JoinPath("", "accounts", id)+":agency", body.ChangeAgency{})
	}
	return err
}

// openAccount opens an account, of an agency unless that is "", issues a key, sends one request with it and returns the key.
func (r *run) openAccount(ctx context.Context, id, agency string, quota int64) (token string, err error) {
	key, err := r.Admin.OpenAccountOf(ctx, id, agency, plan.Business, quota)
	if err != nil {
		return "", err
	}
	return key.Token, measure.SendAll(ctx, r.API, [][]byte{measure.EncodeGet(r.API, api.Base+r.Path, key.Token)})
}

// measureRound measures the quiet account of each pair without and with the flood. The read models have caught up before, so that
// what a flood left does not count for the next turn.
func (r *run) measureRound(ctx context.Context, pairs []pair) (figures []measure.Figure, err error) {
	for _, p := range pairs {
		f, err := r.measurePair(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("contracts %s, flood %s: %w; the service: %s", p.contracts, p.flood, err, r.LastStderr())
		}
		figures = append(figures, f)
	}
	return figures, nil
}

// measurePair measures one turn of a pair: the quiet account alone, with the flood, and a flooded empty handler.
func (r *run) measurePair(ctx context.Context, p pair) (measure.Figure, error) {
	if err := r.Admin.WaitCaughtUp(ctx); err != nil {
		return measure.Figure{}, err
	}
	quiet := measure.EncodeGet(r.API, api.Base+r.Path, p.quietToken)
	alone, err := r.quietLoad(ctx, r.API, quiet)
	if err != nil {
		return measure.Figure{}, err
	}
	options := FloodOptions{Address: r.API, Path: api.Base + r.Path, Token: p.floodToken, Connections: r.Connections, Rate: r.FloodRate, Accept: http.StatusOK}
	if p.flood == Exhausted {
		options.Rate, options.Accept = 0, http.StatusTooManyRequests
	}
	flooded, flood, err := r.quietDuring(ctx, options, quiet)
	if err != nil {
		return measure.Figure{}, err
	}
	emptyOptions := options // a flood that asks of the empty handler what the service answered
	emptyOptions.Address, emptyOptions.Path, emptyOptions.Accept, emptyOptions.Rate = r.emptyAddress, "/", http.StatusOK, int(flood.PerSecond)
	empty, emptyFlood, err := r.quietDuring(ctx, emptyOptions, measure.EncodeGet(r.emptyAddress, "/", "none"))
	if err != nil {
		return measure.Figure{}, fmt.Errorf("empty handler: %w", err)
	}
	flooded.Value, flooded.Unit, flooded.Raw = flooded.P99, "ms", alone.P99
	flooded.Extra = map[string]float64{
		"alone p50 ms": alone.P50, "flood a second": flood.PerSecond, "flood p50 ms": flood.P50,
		"empty p99 ms": empty.P99, "empty flood a second": emptyFlood.PerSecond,
	}
	return flooded.With(
		measure.Label{Name: "log", Value: r.log}, measure.Label{Name: "contracts", Value: p.contracts}, measure.Label{Name: "flood", Value: p.flood},
	), nil
}

// quietDuring runs the quiet load during a flood, which has begun before and ends after it.
func (r *run) quietDuring(ctx context.Context, o FloodOptions, request []byte) (quiet measure.Figure, flood Report, err error) {
	r.floodNumber++
	text, err := json.Marshal(o)
	if err != nil {
		return quiet, flood, err
	}
	process, err := harness.StartProcess(r.WorkDir.WithLowPriority(), "flood-"+strconv.Itoa(r.floodNumber), harness.FloodCommand, string(text))
	if err != nil {
		return quiet, flood, err
	}
	defer process.Kill()
	if _, err = process.WaitForLine(ctx, floodingLine); err != nil {
		return quiet, flood, err
	}
	if quiet, err = r.quietLoad(ctx, o.Address, request); err != nil {
		return quiet, flood, err
	}
	if err = process.Stop(); err != nil {
		return quiet, flood, err
	}
	word, err := process.WaitForLine(ctx, floodedLine)
	if err == nil {
		err = json.Unmarshal([]byte(word), &flood)
	}
	return quiet, flood, err
}

// quietLoad sends the quiet account's requests at their rate. Each must be answered with 200.
func (r *run) quietLoad(ctx context.Context, address string, request []byte) (measure.Figure, error) {
	l := pacedLoad{address: address, request: request, connections: quietConnections, rate: r.QuietRate, accept: http.StatusOK}
	latencies, err := l.run(ctx, r.RoundDuration)
	return latencies.Figure(), err
}
