// Package starts measures how long an instance takes to start on a log with many requests: with nothing but the log and the vault, after it
// was stopped, and after it was killed; until the first request is served, and until all read models have caught up. The log
// holds the events that the service would have written, byte for byte of the same form, and the service must show the very requests that
// were written.
//
//	Run ──> bootstrap (one instance makes the log) ──> logWriter.writeLog ──> readRaw ──> startAndReport, three times ──> checkUsage
//	                                                      ├──> harness.AppendAccounts
//	                                                      ├──> usage.Meter: the first request of each account
//	                                                      └──> tickWriter: all others
package starts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"

	"lieudit/cmd/bench/api"
	"lieudit/cmd/bench/harness"
	"lieudit/cmd/bench/measure"
	"lieudit/eventstore"
	"lieudit/eventstore/esdb"
	serviceapi "lieudit/http/api"
)

// Forms of the log.
const (
	SharedStreams = "shared" // requests of different contracts share ticks, as since log format 6
	OwnStreams    = "own"    // each period has a stream of its own, as in logs before: a request of each of many accounts is an event of its own
)

// Options say what is measured. All are required, but for Profile.
type Options struct {
	Log             string // api.Journal or api.Node
	Form            string // SharedStreams or OwnStreams
	Accounts        int
	Requests        int // on the log
	RequestsPerTick int // in shared streams
	Shards          int // over how many streams the accounts are spread
	Reconcile       bool
	Profile         string // file for a profile of the processor time of the first start; "": none
}

// run is one measurement.
type run struct {
	Options
	measure.Output
	harness.WorkDir
	node     *harness.Process  // nil: the log is a journal in the instance's folder
	instance *harness.Instance // the last one that was started
	accounts []*countedAccount
	ticks    int // events that count requests; of the meter's, all events
}

// Run measures, with the processes' folders in dir, and removes these folders.
func Run(ctx context.Context, dir string, o Options, out measure.Output) (err error) {
	w, err := harness.NewWorkDir(dir)
	if err != nil {
		return err
	}
	r := &run{Options: o, Output: out, WorkDir: w}
	defer func() {
		r.killAll()
		err = errors.Join(err, w.Remove())
	}()
	if err := r.bootstrap(ctx); err != nil {
		return fmt.Errorf("the first start: %w", err)
	}
	if err := r.generateLog(ctx); err != nil {
		return fmt.Errorf("writing the log: %w", err)
	}
	if o.Log == api.Node {
		if r.node, err = harness.StartNode(ctx, w, nodeName); err != nil {
			return err
		}
	}
	return r.measureStarts(ctx)
}

// Names of the processes, which name their folders. bootstrapName is of the instance that makes the log.
const (
	nodeName     = "node"
	instanceName = "service"
)

// bootstrapName is the name of the instance that makes the log. On a node it is another one than that which is measured.
func (r *run) bootstrapName() string {
	if r.Log == api.Node {
		return "first"
	}
	return instanceName
}

// bootstrap makes a log that is ready for accounts and a folder for the instance. The vault cannot be missing.
func (r *run) bootstrap(ctx context.Context) error {
	if r.Log == api.Node {
		return harness.BootstrapNode(ctx, r.WorkDir, nodeName, r.bootstrapName(), instanceName)
	}
	if err := harness.BootstrapInstance(ctx, r.WorkDir, instanceName); err != nil {
		return err
	}
	folder := r.Path(instanceName)
	return errors.Join(os.RemoveAll(filepath.Join(folder, "readmodels")), os.Remove(filepath.Join(folder, "keyring")))
}

// logFolders returns the journals of accounts and of usage, which are the same on a node.
func (r *run) logFolders() (core, usage string) {
	if r.Log == api.Node {
		return r.Path(nodeName), r.Path(nodeName)
	}
	folder := filepath.Join(r.Path(instanceName), "log")
	return filepath.Join(folder, "core"), filepath.Join(folder, "usage")
}

// generateLog writes the log.
func (r *run) generateLog(ctx context.Context) (err error) {
	coreFolder, usageFolder := r.logFolders()
	core, err := harness.OpenJournal(coreFolder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, core.Close()) }()
	w := logWriter{run: r, core: core, usage: core, now: time.Now()}
	if usageFolder != coreFolder {
		own, err := harness.OpenJournal(usageFolder)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, own.Close()) }()
		w.usage = own
	}
	return w.writeLog(ctx)
}

// measureStarts starts the instance three times, and checks in the end that it shows what the log holds.
func (r *run) measureStarts(ctx context.Context) error {
	raw, err := r.readRaw(ctx)
	if err != nil {
		return fmt.Errorf("reading the log: %w", err)
	}
	if err := r.startAndReport(ctx, "nothing", raw); err != nil {
		return err
	}
	if err := r.instance.Stop(); err != nil {
		return err
	}
	if err := r.startAndReport(ctx, "read models", rawRead{}); err != nil {
		return err
	}
	r.instance.Kill()
	if err := r.startAndReport(ctx, "read models, killed", rawRead{}); err != nil {
		return err
	}
	return r.checkUsage(ctx)
}

// rawRead is what it takes to read the whole log through the client of an instance, and nothing else.
type rawRead struct {
	elapsed time.Duration
	events  int
	bytes   int64 // of data
}

// readRaw reads the log of usage without decoding an event. The time to open a journal is a part of it.
func (r *run) readRaw(ctx context.Context) (raw rawRead, err error) {
	r.Progress("the log is read", 0, 0)
	began := time.Now()
	log, err := r.openLog(ctx)
	if err != nil {
		return raw, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	for signal, err := range log.ReadAll(ctx, eventstore.Checkpoint{}, eventstore.Filter{"usage"}) {
		if err != nil {
			return raw, err
		}
		if signal.Kind == eventstore.EventAppeared {
			raw.events++
			raw.bytes += int64(len(signal.Event.Data))
		}
	}
	raw.elapsed = time.Since(began)
	return raw, nil
}

// openLog opens the log of usage as an instance does.
func (r *run) openLog(ctx context.Context) (eventstore.Store, error) {
	if r.Log == api.Node {
		return esdb.Open(ctx, "esdb+unix://"+r.SocketPath(nodeName), slog.New(slog.DiscardHandler))
	}
	_, folder := r.logFolders()
	return harness.OpenJournal(folder)
}

// startTimeout is how long an instance may take until it is ready.
const startTimeout = time.Hour

// startAndReport starts the instance and reports how long it takes. start names what is in its folder.
func (r *run) startAndReport(ctx context.Context, start string, raw rawRead) error {
	r.Progress("the instance starts with "+start, 0, 0)
	f, err := r.startInstance(ctx)
	if err != nil {
		return fmt.Errorf("start with %s: %w", start, err)
	}
	if raw.events > 0 {
		f.Raw, f.Bytes = raw.elapsed.Seconds(), raw.bytes
		f.Extra["events"] = float64(raw.events)
	}
	return r.Report(f.With(
		measure.Label{Name: "log", Value: r.Log}, measure.Label{Name: "streams", Value: r.Form}, measure.Label{Name: "requests", Value: r.Requests},
		measure.Label{Name: "ticks", Value: r.ticks}, measure.Label{Name: "start with", Value: start},
	))
}

// startInstance starts the instance and measures the seconds until it is ready, which it is once all read models have caught up, and until
// it answers a request with a key.
func (r *run) startInstance(ctx context.Context) (f measure.Figure, err error) {
	nodeBefore := r.nodeTime()
	began := time.Now()
	flags := []string{"--drain", "0s"}
	if r.Log == api.Node {
		flags = append(flags, r.NodeFlags(nodeName)...)
	}
	in, err := harness.StartInstance(ctx, r.WorkDir, instanceName, harness.AnyPort, flags...)
	if err != nil {
		return f, err
	}
	r.instance = in
	f.Extra = map[string]float64{}
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return r.profile(ctx) })
	work.Go(func() error {
		request := measure.EncodeGet(in.API, serviceapi.Base+"/me", r.accounts[0].Token)
		err := harness.Retry(ctx, startTimeout, 20*time.Millisecond, func() error { return measure.SendAll(ctx, in.API, [][]byte{request}) })
		f.Extra["s until it serves"] = time.Since(began).Seconds()
		return err
	})
	var ready time.Duration
	var processor time.Duration
	work.Go(func() error {
		err := r.waitReady(ctx, in)
		ready, processor = time.Since(began), measure.ProcessorTimeOf(in.PID())
		return err
	})
	if err := work.Wait(); err != nil {
		return f, err
	}
	r.accounts[0].requests++
	resident, err := measure.ResidentBytesOf(in.PID())
	f.Value, f.Unit = ready.Seconds(), "s until ready"
	f.Extra["processor s"], f.Extra["resident MiB"] = processor.Seconds(), float64(resident)/(1<<20)
	if r.node != nil {
		f.Extra["node processor s"] = (r.nodeTime() - nodeBefore).Seconds()
	}
	return f, err
}

// readyInterval is how often the instance is asked whether it is ready. It reads the log to answer, so that asking more often would be a part
// of what is measured.
const readyInterval = 100 * time.Millisecond

// waitReady waits until the instance is ready, or has ended.
func (r *run) waitReady(ctx context.Context, in *harness.Instance) error {
	return harness.Retry(ctx, startTimeout, readyInterval, func() error {
		select {
		case <-in.Exited():
			return backoff.Permanent(fmt.Errorf("the instance ended: %s", in.LastStderr()))
		default:
		}
		_, err := in.ReadOps(ctx, "/readyz")
		return err
	})
}

// nodeTime is the processor time of the node, 0 without one.
func (r *run) nodeTime() time.Duration {
	if r.node == nil {
		return 0
	}
	return measure.ProcessorTimeOf(r.node.PID())
}

// profiledSeconds is how much of the first start a profile is of.
const profiledSeconds = 10

// profile writes the profile that the options ask for, of one start.
func (r *run) profile(ctx context.Context) error {
	if r.Profile == "" {
		return nil
	}
	file := r.Profile
	r.Profile = ""
	profile, err := r.instance.ReadOps(ctx, fmt.Sprint("/debug/pprof/profile?seconds=", profiledSeconds))
	if err != nil {
		return err
	}
	return os.WriteFile(file, profile, 0o600)
}

// killAll kills what runs.
func (r *run) killAll() {
	if r.instance != nil {
		r.instance.Kill()
	}
	if r.node != nil {
		r.node.Kill()
	}
}
