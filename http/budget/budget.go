// Package budget shares a scarce resource among accounts: bytes of memory, files on disk, workers. A request holds a share of the
// budget while it uses some of the resource.
//
//	Budget.Acquire ──> wait in the queue of the account ──> the share is held ──> release
//	     ^   ^
//	     │   └── Answer.Reserve: an answer that may become large, until it is sent
//	     └────── LimitBody: a body larger than SmallBody, on its first read, until its request is answered
//
// x/sync/semaphore does not distinguish accounts: it cannot serve them in turn or limit what one of them holds.
package budget

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// MaxWait is how long a request waits for its share of a budget.
	MaxWait = 30 * time.Second
	// maxWaiting limits how many requests for shares wait at once, maxAccountWaiting how many of one account.
	maxWaiting        = 4096
	maxAccountWaiting = maxWaiting / 2
)

// ErrOverloaded means that a share was not granted: not within MaxWait, because too many requests already wait, or because it
// is larger than the part of one account.
var ErrOverloaded = errors.New("no share of a budget")

// Budget limits how many units of a resource are in use at once: in total, and by each account. A share is granted whole or
// not at all. Waiting accounts are served round-robin; within an account shares are granted in the order of arrival. A share that
// does not fit into the total blocks all that come after it, so that small ones cannot starve a large one. An account that would
// exceed its own part is skipped and does not block the others. A Budget is safe for concurrent use.
type Budget struct {
	total, part int64

	mu              sync.Mutex
	used            int64
	waiting         int
	overloaded      int64
	accounts        map[string]*account // by name; those that hold shares or wait for some
	waitingAccounts list.List           // of *account, in the order of their turns

	level          int64
	onLevelCrossed func(above bool)
}

// account holds the granted shares of one account, and the queue of those that it waits for.
type account struct {
	name        string
	used        int64
	held        int           // granted shares; one may have no units
	queue       list.List     // of *share, those that wait
	turnElement *list.Element // in waitingAccounts; nil if the queue is empty
}

// share is a number of units of the budget, from the request for them to their return. Callers hold a granted one as a Share.
type share struct {
	account *account
	units   int64
	element *list.Element // in account.queue; nil once granted
	granted chan struct{} // is closed once the share is granted
}

// New returns a budget of total units, of which one account may hold up to part.
func New(total, part int64) *Budget {
	return &Budget{total: total, part: min(part, total), accounts: make(map[string]*account)}
}

// Watch makes the budget call crossed each time the units in use rise to the level or fall below it. The budget is locked
// during that call, which must not block. Watch itself must be called before the budget is used.
func (b *Budget) Watch(level int64, crossed func(above bool)) {
	b.level, b.onLevelCrossed = level, crossed
}

// Acquire waits up to MaxWait for a share of the budget for the named account, and returns the function that gives it back, which
// may be called more than once. It fails with ErrOverloaded, or with the error of ctx.
func (b *Budget) Acquire(ctx context.Context, name string, units int64) (release func(), err error) {
	s, err := b.AcquireShare(ctx, name, units)
	if err != nil {
		return nil, err
	}
	return s.Release, nil
}

// Exchange is Acquire for a request that holds a share already and waits for its next turn: it joins the queue before giveBack
// returns the old share. If it joined afterwards, it would stand behind an account that giveBack has just given a turn, and that account
// would have two turns for each of its own.
func (b *Budget) Exchange(ctx context.Context, name string, units int64, giveBack func()) (release func(), err error) {
	s, err := b.enqueue(name, units)
	giveBack()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, MaxWait, ErrOverloaded)
	defer cancel()
	if err := b.awaitGrant(ctx, s); err != nil {
		return nil, err
	}
	return (&Share{budget: b, share: s}).Release, nil
}

// AcquirePatiently is Acquire without MaxWait: it waits until ctx ends. It is for work whose answer has begun, so that only the
// client can give up.
func (b *Budget) AcquirePatiently(ctx context.Context, name string, units int64) (release func(), err error) {
	s, err := b.enqueue(name, units)
	if err == nil {
		err = b.awaitGrant(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	return (&Share{budget: b, share: s}).Release, nil
}

// AcquireShare is Acquire for a share that is resized later.
func (b *Budget) AcquireShare(ctx context.Context, name string, units int64) (*Share, error) {
	if s := b.grantAtOnce(name, units); s != nil {
		return s, nil
	}
	s, err := b.enqueue(name, units)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, MaxWait, ErrOverloaded)
	defer cancel()
	if err := b.awaitGrant(ctx, s); err != nil {
		return nil, err
	}
	return &Share{budget: b, share: s}, nil
}

// awaitGrant waits until a share is granted or ctx ends.
func (b *Budget) awaitGrant(ctx context.Context, s *share) error {
	select {
	case <-s.granted:
		return nil
	case <-ctx.Done():
		err := context.Cause(ctx)
		b.withdraw(s, errors.Is(err, ErrOverloaded))
		return err
	}
}

// enqueue adds a share to the end of its account's queue, and grants it at once if its turn has come and it fits.
func (b *Budget) enqueue(name string, units int64) (*share, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[name]
	if units > b.part || b.waiting == maxWaiting || a != nil && a.queue.Len() == maxAccountWaiting {
		b.overloaded++
		return nil, ErrOverloaded
	}
	a = b.accountOf(name)
	s := &share{account: a, units: units, granted: make(chan struct{})}
	s.element = a.queue.PushBack(s)
	if a.turnElement == nil {
		a.turnElement = b.waitingAccounts.PushBack(a)
	}
	b.waiting++
	b.grantShares()
	return s, nil
}

// withdraw removes a share from the queue. If the share was granted meanwhile, its units are given back.
func (b *Budget) withdraw(s *share, overloaded bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if overloaded {
		b.overloaded++
	}
	if s.element == nil {
		b.returnUnits(s)
		return
	}
	b.dequeue(s)
	b.dropIfIdle(s.account)
	b.grantShares() // this share may have blocked others
}

// returnUnits gives the units of a granted share back and grants waiting shares. The lock is held.
func (b *Budget) returnUnits(s *share) {
	b.addUsed(s.account, -s.units)
	s.account.held--
	b.dropIfIdle(s.account)
	b.grantShares()
}

// addUsed adds units to those that an account holds; units may be negative. The lock is held.
func (b *Budget) addUsed(a *account, units int64) {
	before := b.used >= b.level
	b.used += units
	a.used += units
	if above := b.used >= b.level; above != before && b.onLevelCrossed != nil {
		b.onLevelCrossed(above)
	}
}

// dequeue removes a share from its account's queue. The lock is held.
func (b *Budget) dequeue(s *share) {
	a := s.account
	a.queue.Remove(s.element)
	s.element = nil
	b.waiting--
	if a.queue.Len() == 0 {
		b.waitingAccounts.Remove(a.turnElement)
		a.turnElement = nil
	}
}

// dropIfIdle removes an account that holds no share and waits for none. The lock is held.
func (b *Budget) dropIfIdle(a *account) {
	if a.held == 0 && a.queue.Len() == 0 {
		delete(b.accounts, a.name)
	}
}

// grantShares grants the waiting shares that fit, round-robin among accounts. The lock is held.
func (b *Budget) grantShares() {
	for turn := b.waitingAccounts.Front(); turn != nil; {
		a := turn.Value.(*account)
		s := a.queue.Front().Value.(*share)
		if a.used+s.units > b.part { // the account has to give shares back first
			turn = turn.Next()
			continue
		}
		if b.used+s.units > b.total {
			return
		}
		b.addUsed(a, s.units)
		a.held++
		b.dequeue(s)
		close(s.granted)
		if a.turnElement != nil {
			b.waitingAccounts.MoveToBack(a.turnElement)
		}
		turn = b.waitingAccounts.Front()
	}
}

// Part returns how many units one account may hold.
func (b *Budget) Part() int64 { return b.part }

// Status holds the figures of a budget.
type Status struct {
	Used       int64 // units
	Waiting    int   // shares in queues
	Overloaded int64 // shares that were not granted, since the start
}

// Status returns the current figures.
func (b *Budget) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Status{b.used, b.waiting, b.overloaded}
}
