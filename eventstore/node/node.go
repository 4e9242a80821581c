// Package node serves a log over EventStoreDB's own gRPC protocol: streams, gossip and server features, as a single
// node that leads. To a client it is an EventStoreDB 24.6 without projections, persistent subscriptions and
// users; what that server keeps beside its events (metadata, deletions, content types) is kept in the same log.
// Nothing is remembered in memory, so that a node can be killed at any instant and started again.
package node

import (
	"context"
	"hash/maphash"
	"iter"
	"log/slog"
	"sync"
	"time"

	"lieudit/eventstore"
)

// Log is what a node serves: a store, and the whole of it in both directions, system streams included.
type Log interface {
	eventstore.Store

	// Scan yields the events of every stream in the order of their positions, or against it: forward from the event at
	// the position, or after it, up to what was durable when it was called (or somewhat later); backward from the
	// event before the position. 0 and the greatest Position are the two ends. Another position where no event
	// stands may be refused with a *DivergedError.
	Scan(ctx context.Context, from eventstore.Position, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error]

	// Wait returns the position of the last durable event as soon as that is after the given one.
	Wait(ctx context.Context, after eventstore.Position) (eventstore.Position, error)
}

// Options are what a node can be told; the zero value is good.
type Options struct {
	Advertise   string           // host:port that gossip names; empty: the address at which the asking client reached the node
	StopTimeout time.Duration    // how long running calls get to end when a node stops; 5 s when zero
	Logger      *slog.Logger     // slog.Default when nil
	Clock       func() time.Time // for $maxAge; time.Now when nil

	Faults Faults // to test with
}

// Node serves one log. It is safe for concurrent use and does not close the log.
type Node struct {
	log         Log
	options     Options
	lockSeed    maphash.Seed
	streamLocks [256]sync.RWMutex // by stream: appends share, deletions exclude
	inFlight    inFlightAppends   // for the fault that drops repeats
}

// New makes a node that serves log.
func New(log Log, o Options) *Node {
	if o.StopTimeout == 0 {
		o.StopTimeout = 5 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Faults.InsideRecord != InsideRecordRefused {
		log = faultyLog{log, o.Faults.InsideRecord}
	}
	return &Node{log: log, options: o, lockSeed: maphash.MakeSeed()}
}
