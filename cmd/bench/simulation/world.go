// Package simulation runs three instances of the service in one process, on a clock that does not wait, with customers and faults, and compares
// their answers with a model. Faults do only what the contracts of the parts allow, so each violation is a defect of the service, or of the
// model.
//
//	Script: acts of customers and faults, drawn from a seed ──> World.Play ──> Verdict
//	                                                               │
//	        customers ──> World.Call ──> instance.API, Area        │   faults ──> Log, Database, clocks, files, deaths
//	                                         │                     │                       │
//	             model <── answers           └──> faults.Log ──> eventstore/memory         │
//	                                              faults.Database ──> SQLite in /dev/shm  <┘
//
// With servers, esdb.Store ──> connections in memory ──> server (node.Node) stands between faults.Log and eventstore/memory.
//
// A history is one script, played in a bubble of testing/synctest: elapsed time passes only when every goroutine waits. The acts of a day take
// about half a minute of it, and its faults up to a minute and a half. Each call on a log or a database first waits for its turn, so that the
// steps of instances interleave; questions about roads, and the bodies of slow clients, take time too. The wall clocks are separate from
// elapsed time: each instance, the logs and the databases have one of their own, and all of them jump to the next day when the acts of a day
// are over.
//
// After the acts of a day nobody asks for 22 s. Then comes its quiet moment: everything that can be seen is checked on every instance.
//
// The simulation covers nearly every handler, the key ring, the projector, the meter, the vault, the closing of periods, leases, deaths and
// restarts, and clients that give up; in two histories of three also the answers about addresses and roads, and the positions of sites found by
// their addresses, from a small region; in one of ten also the client of EventStoreDB (package esdb) and the server that speaks like one
// (package node), over connections in memory. It leaves to the chaos runs (cmd/bench chaos): sockets and proxies, Postgres, a real
// EventStoreDB, the journal's files (which have a simulation of their own disk), Meilisearch, routing servers, imports of addresses and roads,
// files of clients that are too large for memory. One history in two ends an upgrade in the middle: until then the log has the format before the
// last; an older program beside the instances is left to cmd/bench upgrade.
package simulation

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"lieudit/cmd/bench/simulation/customers"
	"lieudit/cmd/bench/simulation/faults"
	"lieudit/eventstore/clock"
	"lieudit/eventstore/memory"
	"lieudit/queries/address/commune"
)

// instanceCount is the number of instances that share the logs, the databases and the vault.
const instanceCount = 3

// World is three instances and the parts they share. It must be made, used and closed inside one bubble.
type World struct {
	folder      string // in memory: files of the databases, and a folder for each instance
	communes    *commune.Table
	region      *region // nil: there is neither a vintage nor a road network
	core, usage *memory.Log
	servers     map[string]*server // before the logs; nil: instances use them without one
	logClock    *wallClock         // stamps events
	dbClock     *wallClock         // leases expire by it
	closing     closing            // of periods of usage
	wall        *wallClock         // the true one; those of instances are off from it
	log         *slog.Logger
	nodes       []*node
	running     sync.WaitGroup // supervisors
	spoiled     sync.Map       // accounts with an event that nobody can decode, until repaired
	lifecycle   chan struct{}  // holds a value while instances are started, or all of them are ended
	people      *customers.Customers
	seed        uint64

	newLogFormat int           // that the logs get first; 0: the highest
	shards       int64         // of usage streams
	runs         atomic.Uint64 // started so far
	epoch        atomic.Int64  // counts how often shared files or logs were replaced under the instances

	mu             sync.Mutex
	violations     []Violation
	operatorToken  string    // "" until the first instance has written it
	striking       int       // faults that strike now
	disturbedUntil time.Time // elapsed time
}

// NewWorld returns a world on empty logs, with no instance started. folder exists and is empty; begin is the wall time, a little before the
// first day.
func NewWorld(folder string, begin time.Time, log *slog.Logger) (*World, error) {
	communes, err := commune.Load()
	if err != nil {
		return nil, err
	}
	w := &World{folder: folder, communes: communes, wall: newWallClock(begin), log: log, lifecycle: make(chan struct{}, 1)}
	w.logClock, w.dbClock = w.wall.newOffset(), w.wall.newOffset()
	w.core, w.usage = memory.New(w.newClock(w.logClock, false, "").Now), memory.New(w.newClock(w.logClock, false, "").Now)
	for i := range instanceCount {
		w.nodes = append(w.nodes, newNode(w, i))
	}
	return w, nil
}

// Start starts all instances.
func (w *World) Start() { w.startNodes(w.nodes) }

// startNodes starts an instance on each node, but not while the files of all are being changed.
func (w *World) startNodes(nodes []*node) {
	w.lifecycle <- struct{}{}
	defer func() { <-w.lifecycle }()
	for _, n := range nodes {
		n.start()
	}
}

// Stop ends all instances gracefully, and waits for every run that there ever was.
func (w *World) Stop() {
	for _, n := range w.nodes {
		n.stop()
	}
	w.running.Wait()
	if err := w.endServers(); err != nil {
		w.Report(customers.EndsInTime, "servers: %v", err)
	}
}

// Violation is a rule that an answer, or the state at a quiet moment, breaks.
type Violation struct {
	Rule   customers.Rule `json:"rule"`
	Text   string         `json:"text"`
	Before string         `json:"before"` // the last that had happened to each instance
}

// String returns the whole violation, with Before at the end of the first line.
func (v Violation) String() string {
	first, rest, _ := strings.Cut(v.Text, "\n")
	return strings.TrimSuffix(fmt.Sprintf("%s: %s (%s)\n%s", v.Rule, first, v.Before, rest), "\n")
}

// Report implements customers.World.
func (w *World) Report(rule customers.Rule, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, Violation{rule, fmt.Sprintf(format, args...), w.describeCircumstances()})
}

// Violations returns the violations so far.
func (w *World) Violations() []Violation {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.violations)
}

// Instances implements customers.World.
func (w *World) Instances() int { return len(w.nodes) }

// awaitEnds waits until every run that was ended is over.
func (w *World) awaitEnds() { w.running.Wait() }

// nextSeed returns a new seed for one run's faults.
func (w *World) nextSeed() uint64 { return w.seed + w.runs.Add(1) }

// wallClock is a wall clock that jumps on demand, and otherwise runs with elapsed time. Its values have no monotonic reading, so that nobody
// can measure elapsed time with them.
type wallClock struct {
	begin  time.Time    // the wall time at start
	start  time.Time    // the elapsed time then
	jumped atomic.Int64 // nanoseconds
	base   *wallClock   // nil: an independent clock; otherwise it is off from base by jumped
}

func newWallClock(begin time.Time) *wallClock { return &wallClock{begin: begin, start: time.Now()} }

// newOffset returns a clock that runs with c and can be set apart from it.
func (c *wallClock) newOffset() *wallClock { return &wallClock{base: c} }

// jump sets the clock forward, or back if d is negative.
func (c *wallClock) jump(d time.Duration) { c.jumped.Add(int64(d)) }

func (c *wallClock) now() time.Time {
	off := time.Duration(c.jumped.Load())
	if c.base != nil {
		return c.base.now().Add(off)
	}
	return c.begin.Add(time.Since(c.start) + off)
}

// farAhead is how far a clock is ahead for a moment: more than a whole period of usage.
const farAhead = 40 * 24 * time.Hour

// newClock returns the clock of a process on a machine. The days that the world skips are elapsed time, as if all machines slept through them.
// No machine is booted again.
func (w *World) newClock(machine *wallClock, isCompared bool, file string) *clock.Clock {
	elapsed := func() time.Duration { return w.wall.now().Sub(w.wall.begin) }
	sources := clock.Sources{Wall: machine.now, Elapsed: elapsed, Boot: func() (string, time.Duration) { return "the only one", elapsed() }}
	return clock.New(clock.Options{Sources: sources, IsCompared: isCompared, File: file, Log: w.log})
}

// now returns the instance's time: the node's wall clock, unless the instance does not believe that. While no instance runs it returns the true
// time, because no instance may believe that wall clock.
func (n *node) now() time.Time {
	if r := n.current(); r != nil {
		return r.instance.Now()
	}
	return n.world.wall.now()
}

// strikeFarAhead sets wall clocks 40 days ahead for a while: of an instance, of the logs' machine, or of all machines. The model does not learn
// it, since nobody may follow them.
func (w *World) strikeFarAhead(f faults.Fault) error {
	var ahead []*wallClock
	if f.Choice%3 != 0 {
		ahead = append(ahead, w.logClock)
	}
	for _, n := range w.nodes {
		isStruck := f.Instance < 0 || f.Instance == n.number
		if f.Choice%3 == 2 || f.Choice%3 == 0 && isStruck {
			ahead = append(ahead, n.wall)
		}
	}
	for _, c := range ahead {
		c.jump(farAhead)
		defer c.jump(-farAhead)
	}
	time.Sleep(f.For)
	return nil
}
