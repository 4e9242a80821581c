// Package usage admits requests and bills them by one and the same event: a tick in the stream of the contract's
// period. Ticks are appended whatever the stream holds, and whether one counts is what the fold of the stream up to it says
// (schemas/ledger); so any number of instances share a cap exactly, without a lease, a lock or a conflict. Requests
// that wait while an append is on its way share the next tick. What became of an append is always found out
// before the next one of the same stream, however long the log takes; each request waits only its own time, and what
// is counted for one that left without an answer is refunded.
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
	"lieudit/eventstore/waitlimit"
	"lieudit/schemas/access"
	"lieudit/schemas/event"
)

var (
	// ErrRevoked: the key, its account or the account's agency ended a moment ago.
	ErrRevoked = errors.New("key or account has ended")
	// ErrUnavailable: it could not be counted, so it must not be served.
	ErrUnavailable = errors.New("usage cannot be counted")
)

// QuotaExceededError says that the requests of the period are used up.
type QuotaExceededError struct{ Limit int64 }

func (e *QuotaExceededError) Error() string {
	return fmt.Sprintf("all %d requests of the period are used", e.Limit)
}

// Quotas are what accounts may use, as their own streams say.
type Quotas interface {
	// QuotaAt is an account's own monthly requests at an instant, and the position of the last event of its stream.
	QuotaAt(ctx context.Context, account string, at time.Time) (requests int64, asOf eventstore.Position, err error)
}

// Meter counts the requests of one instance. It is safe for concurrent use; Run must be running.
type Meter struct {
	store      eventstore.Store
	codec      *eventstore.Codec
	quotas     Quotas
	clock      func() time.Time
	log        *slog.Logger
	instanceID uuid.UUID
	sequence   atomic.Int64 // of what the incarnation says, in all streams: never used twice, whatever becomes of a log

	waitLimiter *waitlimit.Limiter
	epoch       time.Time    // what troubled counts from
	silentSince atomic.Int64 // since when the log does not answer; 0: it does
	requestPool sync.Pool
	tasks       sharedTasks

	isFailing       atomic.Bool        // since the last flight that did not
	eventsAppended  atomic.Int64       // that were appended
	requestsCounted atomic.Int64       // that were counted
	contracts       sync.Map           // id -> *contract
	idleWorkers     chan *activePeriod // to the workers that have none
	idleWorkerCount atomic.Int32
	servingCtx      context.Context // ends when no request comes any more
	stopServing     context.CancelFunc
	runCtx          context.Context
	cancelRun       context.CancelFunc
	goroutines      sync.WaitGroup
}

// New is the ledger of an instance that has just begun, over the log that holds the ticks.
func New(store eventstore.Store, codec *eventstore.Codec, quotas Quotas, clock func() time.Time, log *slog.Logger) *Meter {
	m := &Meter{
		store: store, codec: codec, quotas: quotas, clock: clock, log: log, instanceID: uuid.New(),
		waitLimiter: waitlimit.New(waitlimit.MaxRequests), epoch: time.Now().Add(-time.Hour),
		requestPool: sync.Pool{New: func() any { return newPendingRequest() }}, tasks: sharedTasks{running: map[string]*sharedTask{}},
	}
	m.idleWorkers = make(chan *activePeriod)
	m.servingCtx, m.stopServing = context.WithCancel(context.Background())
	m.runCtx, m.cancelRun = context.WithCancel(context.Background())
	return m
}

// InstanceID is the id of this instance in all the events that it appends.
func (m *Meter) InstanceID() string { return m.instanceID.String() }

// SetWaitLimiter has requests wait in a room that others use too, instead of one of the ledger's own. Nothing may have been
// asked of the ledger yet.
func (m *Meter) SetWaitLimiter(limiter *waitlimit.Limiter) { m.waitLimiter = limiter }

// Totals is how many events this instance has written to count, and how many requests it has counted, since it began.
func (m *Meter) Totals() (events, requests int64) {
	return m.eventsAppended.Load(), m.requestsCounted.Load()
}

// CheckQuota says whether a request would count as things stand, and counts nothing. It is never refused on what an
// instance merely remembers.
func (m *Meter) CheckQuota(ctx context.Context, g access.Grant, endpoint string) error {
	_, err := m.withCurrentPeriod(ctx, g, endpoint, func(p *activePeriod, e entry, arrivedAt time.Time) (entry, error) {
		if p.hasQuotaLeft(e) {
			return e, nil
		}
		return p.submit(ctx, probeRequest, e, arrivedAt)
	})
	return err
}

// QuotaUsage is how much of a quota is used.
type QuotaUsage struct {
	Used, Limit int64
	Position    eventstore.Position // of the last event that was folded to know

	reservation Reservation // the request it was asked with; zero: none was counted
}

// Refund refunds the request that was counted last. It returns when that is durable; where it fails, it is tried on
// behind.
func (u QuotaUsage) Refund(ctx context.Context) error {
	if u.reservation.period == nil {
		return nil
	}
	_, err := u.reservation.period.submit(ctx, refundRequest, u.reservation.entry, time.Now())
	return err
}

// CountRequest counts one request, durably, or says why it must not be served. The spending is its account's, this request
// and those before it included.
func (m *Meter) CountRequest(ctx context.Context, g access.Grant, endpoint string) (QuotaUsage, error) {
	r, err := m.withCurrentPeriod(ctx, g, endpoint, func(p *activePeriod, e entry, arrivedAt time.Time) (entry, error) {
		return p.submit(ctx, chargeRequest, e, arrivedAt)
	})
	if err != nil {
		return QuotaUsage{}, err
	}
	u := r.period.quotaUsage(g.Account)
	u.reservation = r
	return u, nil
}

// Reservation is what was counted for one request that may still have to be refunded.
type Reservation struct {
	period *activePeriod
	entry  entry
}

// Reserve is Count for a request whose work comes after. Keep or Refund has to be called once.
func (m *Meter) Reserve(ctx context.Context, g access.Grant, endpoint string) (Reservation, error) {
	return m.withCurrentPeriod(ctx, g, endpoint, func(p *activePeriod, e entry, arrivedAt time.Time) (entry, error) {
		e, err := p.submit(ctx, chargeRequest, e, arrivedAt)
		if err == nil {
			p.openReservations.Add(1)
		}
		return e, err
	})
}

// Confirm ends the hold: the request is answered, and stays counted.
func (r Reservation) Confirm() { r.period.openReservations.Add(-1) }

// Refund takes back what was counted. It returns when that is durable; where it fails, it is tried on behind.
func (r Reservation) Refund(ctx context.Context) error {
	_, err := r.period.submit(ctx, refundRequest, r.entry, time.Now())
	r.Confirm()
	return err
}

// maxPeriodTries is how many books a request may find ended: one closed, and one put away, are already unusual.
const maxPeriodTries = 5

// withCurrentPeriod does something in the book of the grant's contract at this moment, and again in the next one when that has
// just ended. Books that go on ending are of a log that is being restored. A request waits once for all of it, from when
// it came.
func (m *Meter) withCurrentPeriod(ctx context.Context, g access.Grant, endpoint string, do func(*activePeriod, entry, time.Time) (entry, error)) (Reservation, error) {
	arrivedAt := time.Now()
	for tries := 1; ; tries++ {
		p, err := m.currentPeriod(ctx, g, arrivedAt)
		if err != nil {
			return Reservation{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		e := entry{p.billingDay(m.clock()), event.UsageCount{Account: g.Account, Key: g.KeyID, Endpoint: endpoint, Requests: 1}}
		if e, err = do(p, e, arrivedAt); !errors.Is(err, errRetired) {
			return Reservation{p, e}, err
		}
		if tries == maxPeriodTries || ctx.Err() != nil {
			return Reservation{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
}

// ReadQuotaUsage is how much the grant's account has used of its quota in the period, by all that is on the log.
func (m *Meter) ReadQuotaUsage(ctx context.Context, g access.Grant) (QuotaUsage, error) {
	arrivedAt := time.Now()
	p, err := m.currentPeriod(ctx, g, arrivedAt)
	if err != nil {
		return QuotaUsage{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	_, err = p.submit(ctx, probeRequest, entry{count: event.UsageCount{Account: g.Account, Key: g.KeyID}}, arrivedAt)
	if spent := new(QuotaExceededError); err != nil && !errors.As(err, &spent) {
		return QuotaUsage{}, err
	}
	return p.quotaUsage(g.Account), nil
}
