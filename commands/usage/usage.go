// Package usage admits and bills requests by the same event: a tick in the stream in which the contract's period is counted. A tick is
// how many requests were made with each key of each account, by endpoint. Exactly the served requests are billed, and caps are exact,
// on any number of instances without a lease or a lock. Ticks are appended without an expected revision, so they never
// conflict. Whether what a tick has for a period counts, and so is billed, or is void follows from the fold of the stream up to it
// (schemas/usagefold), which is the same for every reader of the log.
//
// Requests of different contracts share ticks, because their periods share a stream: one for each month and shard, with the periods
// that begin in the month. A period stays in one stream from its beginning to its end, so nothing is carried from one stream to the
// next; the price is that in most of a month two streams of a shard are in use. Where a period is counted, the first event of its own
// stream decides, once for all programs:
//
//	usage-mende-2026-11-21   UsageOpened: it is counted in this stream, as in logs of a lower format
//	                         UsageCountedIn: it is counted in usage-2026-11.3; here are its lines and its closing in the end
//	usage-2026-11.3          ticks, caps, revocations and refunds of many periods
//	usage-2026-11            over how many shards the contracts of the month are spread
//
// Periods that are open when the log's format is raised go on in their own streams until they end. A program that does not know shared
// streams cannot decode UsageCountedIn, and so cannot count what is counted elsewhere.
//
// A contract is an account that pays, for itself or as an agency for its sub-clients. Its period is a month of its own, and a line of the
// period is how many requests an account made on a day with a key to an endpoint.
//
// One request passes through the files in this order; from batch.go on in a worker of its stream, of which one runs at a time:
//
//	admit.go    Charge ──> the activePeriod of the contract that pays, with the account's cap in it
//	queue.go    submit ──> a pendingRequest, which waits for the next batch of its period's stream
//	batch.go    flushBatch ──> a batch: all that wait; draftTick decides who would count
//	append.go   prepareAppend, AppendUntilKnown ──> one tick with refunds on the log
//	stream.go   applyEvent ──> usagefold's verdicts on the tick, one for each period
//	batch.go    respondFolded ──> nil to the requests of periods whose lines count
//	            respondRefused ──> *QuotaExceededError or ErrRevoked to those that would not count
//	            failRequests ──> ErrUnavailable to those that could not be counted
//
// A request that meets a period that has ended is counted in the next one. The outcome of a batch is settled before the next batch of
// the same activeStream, however long the log takes; other events of its stream may be appended meanwhile (appendNamed). Each
// request only waits for a limited time (wait.go). If a request leaves without an answer, its count is refunded.
//
// Around that path: period.go opens and switches periods, shared.go puts them into shared streams, clock.go compares the clock with the
// log's, run.go follows the accounts and ends the instance, closing.go closes and corrects periods, ahead.go takes back what was counted
// in a period that has not begun. An audit folds the whole log again in queries/usage/reconcile.
package usage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/clock"
	"lieudit/eventstore/waitlimit"
	"lieudit/schemas/grant"
)

var (
	// ErrRevoked means that the key was revoked, or that its account or the account's agency was closed, perhaps a moment ago.
	ErrRevoked = errors.New("key or account has ended")
	// ErrUnavailable means that the request could not be counted, so it must not be served.
	ErrUnavailable = errors.New("usage cannot be counted")
)

// QuotaExceededError reports that too few requests of the period are left. Limit is the cap that would be exceeded, the
// account's or its agency's.
type QuotaExceededError struct{ Limit int64 }

func (e *QuotaExceededError) Error() string {
	return fmt.Sprintf("too few of the %d requests of the period are left", e.Limit)
}

// Quotas reads from the accounts' own streams how much they may use. It must be safe for concurrent use.
type Quotas interface {
	// QuotaAt returns an account's own requests a month at an instant, and the position of the last event of its stream.
	QuotaAt(ctx context.Context, account string, at time.Time) (requests int64, asOf eventstore.Position, err error)
}

// Terms reads the terms of accounts from memory, as the key ring's Terms does. It must be safe for concurrent use. It returns
// false for an account that is unknown or closed.
type Terms func(account string, at time.Time) (grant.Terms, bool)

// Meter counts the requests of one instance. It is safe for concurrent use. Run must be running: it ends the Meter's
// goroutines and makes revocations reach the periods.
type Meter struct {
	// Shards is the number of shared streams of each month that this instance is the first to open: at least 1. It must not change once Run
	// runs.
	Shards int64

	store       eventstore.Store
	codec       *eventstore.Codec
	quotas      Quotas
	termsAt     Terms
	clock       *clock.Clock // wall time: periods and days
	log         *slog.Logger
	instanceID  uuid.UUID    // new for each run of an instance
	comparisons atomic.Int64 // of the clock with the log's
	sequence    atomic.Int64 // of the last tick or refund, over all streams: a number is never used twice, even if the log is restored

	// The wait of requests for a log that does not answer, see wait.go.
	waitLimiter *waitlimit.Limiter
	epoch       time.Time    // elapsed times count from here; it is earlier than New, so that no silence begins at 0
	silentSince atomic.Int64 // nanoseconds after epoch since which the log has not answered; 0 if it answers
	requestPool sync.Pool    // of *pendingRequest
	tasks       sharedTasks

	// The path of a request, see the package comment.
	isFailing       atomic.Bool        // the last batch failed, and that was logged
	loads           loads              // what batches have done
	contracts       sync.Map           // contract id -> *contract
	months          sync.Map           // month -> int64, how many shards it has
	openings        atomic.Int64       // of periods in shared streams, to name them
	idleWorkers     chan *activeStream // hands a stream to a worker that has none
	streams         sync.Map           // name -> *activeStream: shared ones
	idleWorkerCount atomic.Int32

	// The end of the meter, see Run: first servingCtx ends, then the workers and shared tasks, then runCtx.
	servingCtx     context.Context // ends when the meter begins to stop
	stopServing    context.CancelFunc
	runCtx         context.Context // of all appends and reads; ends later than servingCtx
	cancelRun      context.CancelFunc
	goroutines     goroutineGroup
	hasCutRequests atomic.Bool // see NoteCutRequests
}

// New returns the meter of a new run of an instance, over the log that has the usage streams. The meter's own work also counts
// in the limiter of the instance's requests.
func New(
	store eventstore.Store, codec *eventstore.Codec, quotas Quotas, terms Terms, limiter *waitlimit.Limiter, wall *clock.Clock, log *slog.Logger,
) *Meter {
	m := &Meter{
		Shards: 1, store: store, codec: codec, quotas: quotas, termsAt: terms, clock: wall, log: log, instanceID: uuid.New(),
		waitLimiter: limiter, epoch: time.Now().Add(-time.Hour),
		requestPool: sync.Pool{New: func() any { return newPendingRequest() }}, tasks: sharedTasks{running: map[string]*sharedTask{}},
	}
	m.idleWorkers = make(chan *activeStream)
	m.servingCtx, m.stopServing = context.WithCancel(context.Background())
	m.runCtx, m.cancelRun = context.WithCancel(context.Background())
	return m
}

// InstanceID returns the id of this run of the program, which is in all events that it appends.
func (m *Meter) InstanceID() string { return m.instanceID.String() }
