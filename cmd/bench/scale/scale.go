// Package scale measures what many accounts and keys cost that mostly sleep: the memory of each instance, the time until it is ready
// without and with the snapshot of its key ring, the first request of an account, what an account that is awake holds, and the processor
// time of doing nothing. Its constraint: the accounts are written to the log before the instances start, by the codec and the journal
// of the service, because opening so many over HTTP would take hours.
//
//	Run ──> bootstrap (one instance opens the log) ──> generate ──> startInstances, without and with a snapshot ──> figures
//	                                                                    └──> measureFirstRequests, measureIdle ──> figures
package scale

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/bench/measure"
	"lieudit/cmd/lieudit/instance"
	"lieudit/http/api"
)

// Options say what is measured. All are required.
type Options struct {
	Accounts      int
	Keys          int // of all accounts together, at least one of each
	Instances     int
	FirstRequests int           // accounts that are asked for once at each instance
	Idle          time.Duration // how long the processor time of doing nothing is measured
}

// run is one measurement.
type run struct {
	Options
	measure.Output
	harness.WorkDir
	node      *harness.Process
	instances []*harness.Instance
	tokens    []string // one of each account
	nextToken int      // accounts before it are awake at some instance
}

// Run measures, with the processes' folders in dir, and removes these folders.
func Run(ctx context.Context, dir string, o Options, out measure.Output) (err error) {
	w, err := harness.NewWorkDir(dir)
	if err != nil {
		return err
	}
	r := &run{Options: o, Output: out, WorkDir: w, instances: make([]*harness.Instance, o.Instances)}
	defer func() {
		r.killAll()
		err = errors.Join(err, w.Remove())
	}()
	if err := r.bootstrap(ctx); err != nil {
		return fmt.Errorf("the first start: %w", err)
	}
	if err := r.generateLog(ctx); err != nil {
		return fmt.Errorf("writing the accounts: %w", err)
	}
	if r.node, err = harness.StartNode(ctx, w, nodeName); err != nil {
		return err
	}
	if err := r.measureStarts(ctx); err != nil {
		return err
	}
	if err := r.measureIdle("asleep"); err != nil {
		return err
	}
	if err := r.measureFirstRequests(ctx); err != nil {
		return err
	}
	return r.measureIdle("awake")
}

// measureStarts starts all instances with empty folders, then with their read models but without the snapshots of their key rings, and then
// with both. The last ones keep running.
func (r *run) measureStarts(ctx context.Context) error {
	if err := r.startInstances(ctx, "nothing"); err != nil {
		return err
	}
	if err := r.stopInstances(); err != nil {
		return err
	}
	for n := range r.instances {
		if err := os.Remove(filepath.Join(r.Path(instanceName(n)), instance.KeyRingFile)); err != nil {
			return err
		}
	}
	if err := r.startInstances(ctx, "read models"); err != nil {
		return err
	}
	if err := r.stopInstances(); err != nil {
		return err
	}
	return r.startInstances(ctx, "read models, snapshot")
}

const nodeName = "node"

// bootstrap makes the node's log what the service needs, and the folders of the instances.
func (r *run) bootstrap(ctx context.Context) error {
	names := make([]string, len(r.instances))
	for n := range names {
		names[n] = instanceName(n)
	}
	return harness.BootstrapNode(ctx, r.WorkDir, nodeName, "first", names...)
}

// instanceName returns the name of the n-th instance, which names its folder.
func instanceName(n int) string { return fmt.Sprintf("service-%d", n) }

// startInstances starts all instances, one after the other so that they do not share the processor, and reports how long each took.
// start names what is in their folders: nothing, or what an earlier run left.
func (r *run) startInstances(ctx context.Context, start string) error {
	for n := range r.instances {
		r.Progress(fmt.Sprintf("instance %d starts with %s", n+1, start), n, len(r.instances))
		f, err := r.startInstance(ctx, n)
		if err != nil {
			return fmt.Errorf("start with %s: %w", start, err)
		}
		if err := r.Report(f.With(measure.Label{Name: "start with", Value: start}, measure.Label{Name: "instance", Value: n + 1})); err != nil {
			return err
		}
	}
	return nil
}

// startTimeout is how long an instance may take until it is ready.
const startTimeout = 30 * time.Minute

// startInstance starts an instance and returns the seconds until it is ready, and until it answers a request with a key.
func (r *run) startInstance(ctx context.Context, n int) (f measure.Figure, err error) {
	began := time.Now()
	in, err := harness.StartInstance(ctx, r.WorkDir, instanceName(n), harness.AnyPort, r.NodeFlags(nodeName)...)
	if err != nil {
		return f, err
	}
	r.instances[n] = in
	request := measure.EncodeGet(in.API, api.Base+"/me", r.tokens[len(r.tokens)-1])
	if err := harness.Retry(ctx, startTimeout, 20*time.Millisecond, func() error { return measure.SendAll(ctx, in.API, [][]byte{request}) }); err != nil {
		return f, err
	}
	serving := time.Since(began)
	if err := in.WaitReadyWithin(ctx, startTimeout); err != nil {
		return f, err
	}
	f.Value, f.Unit = time.Since(began).Seconds(), "s until ready"
	f.Extra = map[string]float64{
		"s until it serves": serving.Seconds(), "processor s": measure.ProcessorTimeOf(in.PID()).Seconds(),
	}
	return f, r.addMemory(ctx, in, f.Extra)
}

// addMemory adds what an instance holds after a garbage collection.
func (r *run) addMemory(ctx context.Context, in *harness.Instance, extra map[string]float64) error {
	m, err := readMemory(ctx, in)
	extra["heap MiB"], extra["resident MiB"] = mebibytes(m.heap), mebibytes(m.resident)
	return err
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

// stopInstances ends all instances in good order, so that each leaves a snapshot.
func (r *run) stopInstances() (err error) {
	for _, in := range r.instances {
		err = errors.Join(err, in.Stop())
	}
	return err
}

// measureFirstRequests asks every instance for accounts that it has not met since it started, and reports how long their first requests
// take, and what an account holds afterwards.
func (r *run) measureFirstRequests(ctx context.Context) error {
	for n, in := range r.instances {
		before, err := readMemory(ctx, in)
		if err != nil {
			return err
		}
		latencies, err := r.sendFirstRequests(ctx, in)
		if err != nil {
			return err
		}
		after, err := readMemory(ctx, in)
		if err != nil {
			return err
		}
		f := latencies.Figure(measure.Label{Name: "first requests of", Value: "accounts asleep"}, measure.Label{Name: "instance", Value: n + 1})
		f.Extra = map[string]float64{"heap bytes an account": float64(after.heap-before.heap) / float64(max(1, f.Samples))}
		if err := r.Report(f); err != nil {
			return err
		}
	}
	return nil
}

// sendFirstRequests sends the first requests of the next accounts over one connection.
func (r *run) sendFirstRequests(ctx context.Context, in *harness.Instance) (*measure.Latencies, error) {
	latencies := measure.NewLatencies()
	c, err := measure.Dial(ctx, in.API)
	if err != nil {
		return latencies, err
	}
	defer c.Close()
	for range r.FirstRequests {
		request := measure.EncodeGet(in.API, api.Base+"/me", r.tokens[r.nextToken%len(r.tokens)])
		r.nextToken++
		began := time.Now()
		status, err := c.Send(request)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("a first request is answered %d", status)
		}
		if err != nil {
			return latencies, err
		}
		latencies.Record(time.Since(began))
	}
	return latencies, nil
}

// measureIdle reports the processor time of each instance, and of the node, in a minute without a request. state names the accounts.
func (r *run) measureIdle(state string) error {
	type process struct {
		name string
		pid  int
		used time.Duration
	}
	all := []process{{name: nodeName, pid: r.node.PID()}}
	for n, in := range r.instances {
		all = append(all, process{name: fmt.Sprint("instance ", n+1), pid: in.PID()})
	}
	r.Progress("nothing happens, accounts "+state, 0, 0)
	time.Sleep(min(settleTime, r.Idle))
	for i := range all {
		all[i].used = measure.ProcessorTimeOf(all[i].pid)
	}
	began := time.Now()
	time.Sleep(r.Idle)
	elapsed := time.Since(began)
	for _, p := range all {
		used := measure.ProcessorTimeOf(p.pid) - p.used
		f := measure.Figure{Value: used.Seconds() * time.Minute.Seconds() / elapsed.Seconds(), Unit: "processor s a minute"}
		if err := r.Report(f.With(measure.Label{Name: "nothing happens, accounts", Value: state}, measure.Label{Name: "process", Value: p.name})); err != nil {
			return err
		}
	}
	return nil
}

// settleTime is how long what was started or asked for before may still cost processor time. A run that is short anyway waits no longer than
// it measures.
const settleTime = 3 * time.Second

// killAll kills what runs.
func (r *run) killAll() {
	for _, in := range r.instances {
		if in != nil {
			in.Kill()
		}
	}
	if r.node != nil {
		r.node.Kill()
	}
}

// memory is what a process holds, in bytes.
type memory struct{ heap, resident int64 }

// readMemory reads what an instance holds after a garbage collection.
func readMemory(ctx context.Context, in *harness.Instance) (m memory, err error) {
	if _, err = in.ReadOps(ctx, "/debug/pprof/heap?gc=1"); err != nil {
		return m, err
	}
	heap, err := in.ReadMetric(ctx, "go_memstats_heap_alloc_bytes")
	if err != nil {
		return m, err
	}
	m.heap = int64(heap)
	m.resident, err = measure.ResidentBytesOf(in.PID())
	return m, err
}
