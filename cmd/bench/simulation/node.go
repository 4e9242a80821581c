package simulation

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"lieudit/cmd/bench/simulation/customers"
	"lieudit/cmd/bench/simulation/faults"
	"lieudit/cmd/lieudit/instance"
	"lieudit/commands/locations"
	"lieudit/eventstore"
	"lieudit/eventstore/clock"
	"lieudit/eventstore/disk/osfile"
	"lieudit/eventstore/esdb"
	"lieudit/eventstore/memory"
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/vault"
	"lieudit/queries/address/live"
	"lieudit/queries/locations/alert"
	routelive "lieudit/queries/route/live"
	"lieudit/schemas/body"
	"lieudit/schemas/token"
)

// node is a machine that runs an instance, one run after another.
type node struct {
	world  *World
	number int
	wall   *wallClock // may differ from the true one
	deaths atomic.Int64
	before circumstances
	outage outage // of its usage log

	mu         sync.Mutex
	folders    int                   // folders used so far: each death leaves one behind
	supervised context.CancelFunc    // ends the supervision of the current run; nil: the node should not run
	ended      chan struct{}         // closed when the previous supervision has ended; nil after a death, which nobody waits for
	run        *run                  // nil: no run
	struck     map[int]*activeStrike // faults that strike now, and in the runs to come
	nextStrike int
}

// activeStrike is a fault that strikes a node, and the function that ends it in the current run.
type activeStrike struct {
	fault faults.Fault
	mend  func() // nil while there is no run
}

func newNode(w *World, number int) *node {
	return &node{world: w, number: number, wall: w.wall.newOffset(), struck: map[int]*activeStrike{}}
}

// folder returns the folder for the files of the node's next run. n.mu is held.
func (n *node) folder() string {
	return filepath.Join(n.world.folder, fmt.Sprintf("instance-%d-%d", n.number, n.folders))
}

// start keeps an instance running on the node from now on. An instance that refuses to start or ends by itself is started again.
func (n *node) start() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.supervised != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.supervised = cancel
	folder, before, ended := n.folder(), n.ended, make(chan struct{})
	n.ended = ended
	n.world.running.Go(func() {
		defer close(ended)
		if before != nil {
			<-before
		}
		n.supervise(ctx, folder)
	})
}

// restartDelay is the pause before a supervisor restarts an instance that has ended by itself.
const restartDelay = 2 * time.Second

// supervise runs one instance after another until ctx ends.
func (n *node) supervise(ctx context.Context, folder string) {
	for ctx.Err() == nil {
		r, err := n.open(folder)
		if err == nil {
			err = r.live(ctx)
		}
		if ctx.Err() == nil {
			n.world.log.Warn("an instance ended by itself", "instance", n.number, "reason", err)
			clock.Sleep(ctx, restartDelay)
		}
	}
}

// stop ends the instance gracefully, without waiting.
func (n *node) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.supervised != nil {
		n.supervised()
		n.supervised = nil
	}
}

// kill ends the instance at once: from now on none of its calls takes effect. The next run finds the node's own files as they are.
func (n *node) kill() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.killLocked()
}

// die kills the node of a run that a fault has killed, unless the node is already in its next run.
func (r *run) die() {
	n := r.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.run != r {
		return
	}
	if err := n.killLocked(); err != nil {
		n.world.Report(customers.EndsInTime, "instance %d, dying: %v", n.number, err)
	}
}

// killLocked is kill with n.mu held.
func (n *node) killLocked() error {
	if n.supervised == nil {
		return nil
	}
	n.deaths.Add(1)
	before := n.folder()
	n.folders++
	if n.run != nil {
		n.run.injector.Kill()
		n.run.servers.kill()
		close(n.run.died)
		n.run = nil
	}
	n.supervised()
	n.supervised, n.ended = nil, nil
	return copyFolder(n.folder(), before)
}

// strike begins a fault on the node, in the runs to come too, and returns the function that ends it.
func (n *node) strike(f faults.Fault) (mend func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nextStrike++
	id, s := n.nextStrike, &activeStrike{fault: f}
	n.struck[id] = s
	if n.run != nil {
		s.mend = n.run.injector.Strike(f)
	}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.struck, id)
		if s.mend != nil {
			s.mend()
		}
	}
}

// run is one run of an instance, from its start to its end or death.
type run struct {
	node     *node
	injector *faults.Injector
	servers  connections
	view     *regionView
	logs     []eventstore.Store // clients of servers; closed at the end
	instance *instance.Instance
	registry *sqldb.Registry
	ready    chan struct{}  // closed when it accepts requests
	requests sync.WaitGroup // requests being answered
	counting sync.Mutex     // held while a request is added to requests, so that none is added during a Wait
	died     chan struct{}  // closed by kill
	isEnding atomic.Bool    // it accepts no more requests
	hadKeys  atomic.Bool    // its key ring has reached the log's end
}

// open builds a run on a folder. Faults strike it from its start, see begin.
func (n *node) open(folder string) (*run, error) {
	r := &run{node: n, injector: faults.NewInjector(n.world.nextSeed()), ready: make(chan struct{}), died: make(chan struct{}),
		view: &regionView{region: n.world.region, vintage: live.New(n.world.communes), networks: &routelive.Router{}}}
	r.injector.OnDeath, r.injector.OnStrike, r.injector.LongestTurn = r.die, n.before.noteStrike, longestTurn
	if err := r.build(folder); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// longestTurn is long enough for a call of another instance to come first, and short enough not to delay anything.
const longestTurn = 2 * time.Millisecond

// build makes the run's instance, and opens what it uses.
func (r *run) build(folder string) (err error) {
	n, w := r.node, r.node.world
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if r.registry, err = sqldb.OpenRegistry(w.readModelsFolder()); err != nil {
		return err
	}
	n.before.noteStart(folder)
	log := slog.New(messageHandler{w.log.Handler(), n}).With("instance", n.number)
	r.registry.Log, r.registry.Simulated = log, r.simulated(faults.ReadModels)
	keys, err := vault.New(w.vaultFile(), nil, n.wall.now)
	if err != nil {
		return err
	}
	keys.Simulated = r.simulated(faults.Vault)
	core, err := r.openLog(w.core, faults.CoreLog, faults.CoreServer)
	usage, usageErr := r.openLog(w.usage, faults.UsageLog, faults.UsageServer)
	if err := errors.Join(err, usageErr, r.view.open()); err != nil {
		return err
	}
	r.instance, err = instance.New(instance.Parts{
		AreaURL: func() *url.URL { return &url.URL{Scheme: "https", Host: "espace.exemple.fr"} },
		Settings: instance.Settings{TokenPrefixes: token.DefaultPrefixes, PeriodGrace: w.closing.grace, ClosingInterval: w.closing.interval,
			SnapshotThreshold: snapshotThreshold, SiteEvents: siteEvents, UsageShards: w.shards},
		Core: core, Usage: usage, NewLogFormat: w.newLogFormat,
		Registry: r.registry, Vault: keys, Folder: folder, Disk: osfile.Disk{Room: r.injector.Room},
		Vintage: r.view.vintage, SiteAlerts: alert.NewChecker(w.communes), Router: slowRouter{r.view.networks, r.injector}, Releases: noReleases{}, Readiness: func(context.Context, string) (r body.Readiness) { return r },
		Clock: w.newClock(n.wall, true, filepath.Join(folder, "clock")), Metrics: prometheus.NewRegistry(), Log: log, Out: io.Discard, Version: "simulated",
	})
	return err
}

// openLog returns the run's view of a log, through the log's server if it has one.
func (r *run) openLog(log *memory.Log, part, serverPart string) (eventstore.Store, error) {
	var inner eventstore.Store = log
	if s := r.node.world.servers[serverPart]; s != nil {
		client, err := esdb.OpenOver(context.Background(), r.servers.dialer(s), r.registry.Log)
		if err != nil {
			return nil, err
		}
		inner, r.logs = client, append(r.logs, client)
	}
	l := faults.NewLog(inner, part, r.injector)
	l.ForgetIDs = log.ForgetIDs
	return l, nil
}

// close releases what the run has opened.
func (r *run) close() (err error) {
	if r.instance != nil {
		err = r.instance.Close()
	}
	if r.registry != nil {
		err = errors.Join(err, r.registry.Close())
	}
	for _, l := range r.logs { // the clients of servers
		err = errors.Join(err, l.Close())
	}
	r.view.close()
	return err
}

// snapshotThreshold is small enough that nearly every day an account's sites are saved to a file.
const snapshotThreshold = 8 << 10

// siteEvents are small enough that a sync of five rows is staged, and one of twenty takes several appends.
var siteEvents = locations.EventLimits{Event: 4 << 10, Append: 16 << 10}

// closing is when periods of usage are closed: how long after their ends, and how often the instances look for them; 0: the default.
type closing struct{ grace, interval time.Duration }

var (
	lateClosing = closing{grace: 6 * time.Hour}
	// promptClosing closes periods while requests in them may still be under way.
	promptClosing = closing{4 * time.Second, 3 * time.Second}
)

// live runs the instance until ctx ends or it refuses to continue. It follows the order of package service: keys first, then requests; at the
// end requests stop first, then what watches, then what works.
func (r *run) live(ctx context.Context) error {
	r.node.begin(r)
	defer r.node.end(r)
	err := r.instance.CheckStart(ctx)
	if err == nil {
		err = r.serve(ctx)
	}
	return errors.Join(err, r.close())
}

func (r *run) serve(ctx context.Context) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var ending time.Time // when it stopped accepting requests
	var working errgroup.Group
	working.Go(func() error { return r.instance.Work(background) })

	watching, ctx := errgroup.WithContext(ctx)
	watching.Go(func() error { return r.instance.Watch(ctx) })
	watching.Go(func() error {
		r.instance.WriteFirstStart(ctx)
		return nil
	})
	watching.Go(func() error {
		waiting, cancel := context.WithTimeout(ctx, keyRingTimeout)
		defer cancel()
		r.hadKeys.Store(r.instance.AwaitKeys(waiting) == nil) // an instance that cannot check keys reports it in its answers
		close(r.ready)
		<-ctx.Done()
		ending = time.Now()
		r.isEnding.Store(true)
		return nil
	})
	err := watching.Wait()
	if r.isDead() {
		stop() // its requests wait for background work, which has stopped
	}
	r.counting.Lock() // a request may be about to be added
	r.isEnding.Store(true)
	r.counting.Unlock()
	r.requests.Wait() // even of a dead instance: they open databases until they notice
	stop()
	err = errors.Join(err, working.Wait())
	if !ending.IsZero() && !r.isDead() && r.node.outage.wasSince(ending) {
		r.node.deaths.Add(1) // it gave up waiting for its usage log, and leaves requests that it has counted unsettled
	}
	if err == nil && !r.isDead() {
		r.checkKeyRingFile()
	}
	return err
}

// checkKeyRingFile checks that a run that ended gracefully has left its key ring for the next one, which otherwise reads all of the log.
func (r *run) checkKeyRingFile() {
	if !r.hadKeys.Load() || r.injector.HadNoRoom() {
		return
	}
	if _, err := os.Stat(filepath.Join(r.instance.Folder, instance.KeyRingFile)); err != nil {
		r.node.world.Report(customers.OwnFilesAreUsed, "instance %d ended gracefully and left no key ring: %v", r.node.number, err)
	}
}

// keyRingTimeout is how long an instance delays requests until its key ring is loaded.
const keyRingTimeout = 10 * time.Second

func (r *run) isDead() bool {
	select {
	case <-r.died:
		return true
	default:
		return false
	}
}

// begin makes a run the node's current one.
func (n *node) begin(r *run) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.run = r
	for _, s := range n.struck {
		s.mend = r.injector.Strike(s.fault)
	}
}

// end forgets a run.
func (n *node) end(r *run) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.run == r {
		n.run = nil
	}
}

// current returns the current run, nil for none.
func (n *node) current() *run {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.run
}

// simulated returns the seams of one of the run's databases.
func (r *run) simulated(part string) sqldb.Simulated {
	return sqldb.Simulated{
		Clock:     r.node.world.dbClock.now,
		Connector: func(c driver.Connector) driver.Connector { return faults.NewDatabase(c, part, r.injector) },
	}
}

// noReleases reports neither vintages nor road networks.
type noReleases struct{}

func (noReleases) Vintages(context.Context) (v body.ServedVintages) { return v }
func (noReleases) Networks(context.Context) (v body.ServedNetworks) { return v }

// OperatorToken implements customers.World. The instance that issued the token wrote it into its folder; the operator keeps it from then on.
func (w *World) OperatorToken() (string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		if w.operatorToken != "" {
			break
		}
		if text, err := os.ReadFile(filepath.Join(n.currentFolder(), instance.OperatorTokenFile)); err == nil {
			w.operatorToken = strings.TrimSpace(string(text))
		}
	}
	return w.operatorToken, w.operatorToken != ""
}

// readModelsFolder is a folder that the instances share, and so is vaultFile.
func (w *World) readModelsFolder() string { return filepath.Join(w.folder, "readmodels") }
func (w *World) vaultFile() string        { return filepath.Join(w.folder, "vault.db") }

// currentFolder returns the folder of the current run, or of the next.
func (n *node) currentFolder() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.folder()
}
