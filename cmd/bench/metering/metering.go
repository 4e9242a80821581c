// Package metering tests that the service counts requests exactly. Several instances share one log node. Several contracts, one of them an agency
// with sub-clients, have small quotas, and clients send more requests than these allow. If chaos is requested, processes are killed and
// connections are cut meanwhile. Then the log is folded again and compared with the clients' answers, account by account and contract by
// contract, and the service itself reconciles its read models with the log. Only a broken promise of the service is a violation, so a request
// without an answer may be billed or not.
//
//	Run ──> startInstances: openContracts ──> startClients: client ──> measure.Client.Send ──> a tally of each account in each process
//	   ├──> injectFaults: killInstance, killNode; cutProxy between instance and node
//	   ├──> foldLog ──> logTotals
//	   ├──> reconcile, by each instance once more ──> reconciliation
//	   └──> buildReport ──> Report with its violations
//
// An instance counts waiting requests in one event of the log, a tick, and serves them once that event counts. A tick that repeats another or
// would exceed the quota does not count: it is void. A request that was counted and could not be served is refunded by a later event. How ticks
// lie in streams is known to fold.go alone.
//
// A request is answered once a complete answer other than 5xx has come; a client sends it again until then. Each process of an instance has a
// key of its own for each account, so that the log shows which process counted what.
package metering

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/bench/measure"
	"lieudit/http/api"
)

// Options are the parameters of a run. All but Postgres, Chaos and Seed are required.
type Options struct {
	Dir         string // on the disk to use
	Postgres    string // of the read models; SQLite when empty
	Instances   int
	Connections int    // to each instance
	Contracts   int    // the last is an agency with three sub-clients, unless it is the only one
	Cap         int64  // requests that the last contract may make; see newContracts
	Requests    int64  // to be answered for each contract, over all connections
	Path        string // that is requested, below the API's base
	Chaos       bool   // inject faults
	Seed        uint64 // of the faults
}

// Incident is a fault that was injected, or the start of a process after one.
type Incident struct {
	At   time.Duration `json:"-"` // after the first request
	Ms   int64         `json:"ms"`
	What string        `json:"what"`
	Cut  bool          `json:"cut,omitempty"` // a connection to the node was cut, of which there are many
}

const nodeName = "node"

// run is one run of the test. All clients use its atomic fields. mu guards the incidents. The other fields are written by Run
// before the clients start; only node, and the service of an instance, are replaced later, by injectFaults.
type run struct {
	Options
	workDir      harness.WorkDir
	node         *harness.Process
	contracts    []*contract
	instances    []*instance
	served       atomic.Int64 // requests answered with 200
	answered     atomic.Int64 // with anything else than 5xx
	began        time.Time
	firstRefusal atomic.Pointer[refusal] // nil: there was none
	done         chan struct{}           // closed when every request is answered

	mu        sync.Mutex
	incidents []Incident
}

// refusal is the state at an answer of 429.
type refusal struct {
	after  time.Duration // the first request
	served int64         // requests by then
}

// instance is one data folder, on which one process after another serves.
type instance struct {
	name      string
	number    int // from 1
	service   *harness.Instance
	proxy     *cutProxy               // to the node; nil: nothing is cut
	processes []*process              // in the order in which they run
	current   atomic.Pointer[process] // that clients connect to
	latencies []*measure.Latencies    // by connection, of what was served
}

// processesPerInstance is the most processes that an instance has, one after another: planFaults kills each instance once.
const processesPerInstance = 2

// process is one process of an instance, from its start to its end, with the counts of its answers.
type process struct {
	name    string
	address string
	tallies []*tally // by account.number
	killed  bool
}

// tally counts the answers of one process to the requests of one account.
type tally struct {
	key     string // the id of its key
	token   string
	request []byte // with its key

	// The number of answers of 200, 429 and 503, of connections that broke before an answer, and of other answers.
	served, refused, unavailable, broken, unexpected atomic.Int64

	// openRefunds is how many requests were answered with 503 since the last served one: their ticks may not have been refunded yet.
	openRefunds atomic.Int64
}

// Run runs the test once and reports on it. The error is the reason why it could not be completed; violations are in the report.
func Run(ctx context.Context, o Options) (_ Report, err error) {
	r := &run{Options: o, contracts: newContracts(o), done: make(chan struct{}), incidents: []Incident{}}
	if r.workDir, err = harness.NewWorkDir(o.Dir); err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, r.workDir.Remove()) }()
	// Everything is started before the clock, so that no fault and no cut connection disturbs a start.
	defer r.killAll()
	if err := r.startInstances(ctx, rand.New(rand.NewPCG(o.Seed, 1))); err != nil {
		return Report{}, err
	}
	faults := r.planFaults(rand.New(rand.NewPCG(o.Seed, 2)))
	r.began = time.Now()
	r.pauseCuts(false)
	var work errgroup.Group
	work.Go(func() error { return r.injectFaults(ctx, faults) })
	r.runClients(ctx)
	took := time.Since(r.began)
	close(r.done)
	if err := work.Wait(); err != nil {
		return Report{}, err
	}
	// The log is complete once the instances have ended: they append what they still hold.
	if err := r.stopInstances(); err != nil {
		return Report{}, err
	}
	totals, err := r.foldLog(ctx)
	if err != nil {
		return Report{}, err
	}
	reconciled, err := r.reconcile(ctx)
	if err != nil {
		return Report{}, err
	}
	// Clients also return if ctx ends, and a report on a part of the requests would show false violations.
	return r.buildReport(totals, reconciled, took), ctx.Err()
}

// startInstances starts the node and the instances and opens the accounts, with keys for each process that any instance may
// have. The first instance starts alone, because the first one of a log leaves the operator's token in its folder.
func (r *run) startInstances(ctx context.Context, rng *rand.Rand) (err error) {
	if r.node, err = harness.StartNode(ctx, r.workDir, nodeName); err != nil {
		return err
	}
	for n := range r.Instances {
		i := &instance{name: fmt.Sprintf("instance %d", n+1), number: n + 1}
		for range r.Connections {
			i.latencies = append(i.latencies, measure.NewLatencies())
		}
		r.instances = append(r.instances, i)
		if r.Chaos {
			if i.proxy, err = newCutProxy(ctx, r, i, rng.Uint64()); err != nil {
				return err
			}
		}
	}
	if err := r.startReady(ctx, r.instances[0]); err != nil {
		return err
	}
	// The keys are issued while the other instances start.
	var others errgroup.Group
	others.Go(func() error { return r.openContracts(ctx) })
	for _, i := range r.instances[1:] {
		others.Go(func() error { return r.startReady(ctx, i) })
	}
	if err := others.Wait(); err != nil {
		return err
	}
	for _, i := range r.instances {
		for _, p := range i.processes {
			p.address = i.service.API
			for _, t := range p.tallies {
				t.request = measure.EncodeGet(p.address, api.Base+r.Path, t.token)
			}
		}
		if err := i.waitKeyKnown(ctx); err != nil {
			return err
		}
		i.current.Store(i.processes[0])
	}
	return nil
}

// startReady starts the first process of an instance and waits until it is ready.
func (r *run) startReady(ctx context.Context, i *instance) error {
	if err := r.startInstance(ctx, i, harness.AnyPort); err != nil {
		return err
	}
	return i.service.WaitReady(ctx)
}

// startInstance starts the next process of an instance, and returns once its listeners are open. If connections are to be cut, the instance
// reaches the node through its proxy.
func (r *run) startInstance(ctx context.Context, i *instance, listen string) (err error) {
	flags := append(r.workDir.NodeFlags(nodeName), "--no-demo")
	if i.proxy != nil {
		flags = append(r.workDir.NodeFlags(i.proxy.name), "--no-demo")
	}
	switch {
	case r.Postgres != "":
		flags = append(flags, "--postgres", r.Postgres)
	case i.number > 1: // the first instance has the vault; no request to the others needs data sealed in it
		flags = append(flags, "--accept-lost-keys")
	}
	i.service, err = harness.StartInstance(ctx, r.workDir, fmt.Sprintf("instance-%d", i.number), listen, flags...)
	return err
}

// waitKeyKnown waits until an instance knows its last key, and so the earlier ones. It requests a path that does not exist:
// with a valid key the answer is 404, and the request is not counted.
func (i *instance) waitKeyKnown(ctx context.Context) error {
	c, err := measure.Dial(ctx, i.service.API)
	if err != nil {
		return err
	}
	defer c.Close()
	last := i.processes[len(i.processes)-1].tallies
	request := measure.EncodeGet(i.service.API, api.Base+"/nowhere", last[len(last)-1].token)
	return harness.Retry(ctx, 10*time.Second, 5*time.Millisecond, func() error {
		status, err := c.Send(request)
		switch {
		case err != nil:
			return backoff.Permanent(err)
		case status != http.StatusNotFound:
			return fmt.Errorf("%s still does not know its keys: %d", i.name, status)
		}
		return nil
	})
}

// logIncident records a kill or a start at the current time. It is safe for concurrent use.
func (r *run) logIncident(format string, args ...any) {
	r.addIncident(Incident{What: fmt.Sprintf(format, args...)})
}

func (r *run) addIncident(i Incident) {
	i.At = time.Since(r.began)
	i.Ms = i.At.Milliseconds()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.incidents = append(r.incidents, i)
}

// stopInstances lets all instances end in good order, so that all their appends are done. Connections are no longer cut.
func (r *run) stopInstances() error {
	r.pauseCuts(true)
	var stops errgroup.Group
	for _, i := range r.instances {
		stops.Go(i.service.Stop)
	}
	return stops.Wait()
}

// killAll ends all processes and proxies. After a complete run only the node still runs; after an error anything may.
func (r *run) killAll() {
	for _, i := range r.instances {
		if i.service != nil {
			i.service.Kill()
		}
		if i.proxy != nil {
			i.proxy.close()
		}
	}
	if r.node != nil {
		r.node.Kill()
	}
}
