// Package metering puts metering to the proof: real processes of this program on one node, one account with a small
// quota, clients that want more than it gives, and, when asked for, processes that are killed and connections that are
// cut in the middle of it. Then the log is folded again and compared with what the clients were answered.
//
// A request is answered once a whole answer that is no 5xx has come; a client sends it again until then. Each life of
// an instance has a key of its own, so that the log tells which life counted what.
package metering

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"lieudit/cmd/bench/harness"
)

// Options say what a trial is made of.
type Options struct {
	Dir         string // on the disk to use
	Postgres    string // of the read models; SQLite when empty
	Instances   int
	Connections int    // to each instance
	Cap         int64  // of the account
	Requests    int64  // to be answered, of all connections together
	Path        string // that is asked for, below the API's base
	Chaos       bool
	Seed        uint64 // of the chaos
	OnIncident  func(Incident)
}

// Incident is something that was done to the processes, or happened to them, so long after the first request.
type Incident struct {
	At   time.Duration `json:"-"`
	Ms   int64         `json:"ms"`
	What string        `json:"what"`
}

// account is the one that is billed.
const account = "trial"

// run is one trial on its way.
type run struct {
	Options
	workDir      harness.WorkDir
	node         *harness.Process
	instances    []*instance
	unsent       atomic.Int64 // requests nobody has begun
	served       atomic.Int64 // answered with what was asked for
	began        time.Time
	firstRefusal atomic.Int64 // nanoseconds after which the first was refused; 0: none was
	done         chan struct{}

	mu        sync.Mutex
	incidents []Incident
}

// Run runs one trial and reports on it. The error says why it could not be held; violations are in the report.
func Run(ctx context.Context, o Options) (_ Report, err error) {
	r := &run{Options: o, done: make(chan struct{})}
	if r.workDir, err = harness.NewWorkDir(o.Dir); err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, r.workDir.Remove()) }()
	r.unsent.Store(o.Requests)
	defer r.killAll()
	if err := r.startEnvironment(ctx, rand.New(rand.NewPCG(o.Seed, 1))); err != nil {
		return Report{}, err
	}
	faults := r.planFaults(rand.New(rand.NewPCG(o.Seed, 2)))
	r.began = time.Now()
	for _, p := range r.instances {
		p.pauseCuts(false)
	}
	var work errgroup.Group
	work.Go(func() error { return r.injectFaults(ctx, faults) })
	r.runClients(ctx)
	took := time.Since(r.began)
	close(r.done)
	if err := work.Wait(); err != nil {
		return Report{}, err
	}
	if err := r.stopInstances(); err != nil {
		return Report{}, err
	}
	totals, err := foldLog(ctx, r.workDir.SocketPath(nodeName))
	if err != nil {
		return Report{}, err
	}
	return r.buildReport(totals, took), ctx.Err()
}

func (r *run) logIncident(format string, args ...any) {
	at := time.Since(r.began)
	i := Incident{at, at.Milliseconds(), fmt.Sprintf(format, args...)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.incidents = append(r.incidents, i)
	if r.OnIncident != nil {
		r.OnIncident(i)
	}
}

// stopInstances lets all instances end in good order, so that nothing of theirs is under way any more.
func (r *run) stopInstances() error {
	var ends errgroup.Group
	for _, p := range r.instances {
		p.pauseCuts(true)
		ends.Go(p.service.Stop)
	}
	return ends.Wait()
}

func (r *run) killAll() {
	for _, p := range r.instances {
		if p.service != nil {
			p.service.Kill()
		}
		p.closeProxy()
	}
	if r.node != nil {
		r.node.Kill()
	}
}
