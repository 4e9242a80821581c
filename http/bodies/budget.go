package bodies

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// MaxWait is how long a body waits for its share of the budget.
	MaxWait = 30 * time.Second
	// maxWaiting is how many bodies wait at once, maxAccountWaiting how many of one account.
	maxWaiting        = 4096
	maxAccountWaiting = maxWaiting / 2
)

// ErrOverloaded: the budget had no room for a body within MaxWait, or too many waited before it.
var ErrOverloaded = errors.New("no room for a request body")

// Budget bounds the bytes of request bodies that are in memory at once, those of all accounts and those of one. A share
// is taken whole, and once. Accounts that wait take turns; within an account the first come is the first served.
// A share that does not fit yet holds back those whose turn comes later, so that a large one is not passed over for
// ever; an account that holds its part holds back nobody else. A Budget is safe for concurrent use; a nil
// Budget bounds nothing.
type Budget struct {
	total, part int64

	mu         sync.Mutex
	used       int64
	waiting    int
	overloaded int64
	accounts   map[string]*account // those that hold or wait
	turns      list.List           // of *account: those that wait, whose turn is next first

	level   int64
	crossed func(above bool)
}

// account is what one account holds of a budget, and its shares to come.
type account struct {
	name string
	used int64
	wait list.List // of *share
	turn *list.Element
}

// share is bytes that are waited for.
type share struct {
	account *account
	bytes   int64
	place   *list.Element // in account.wait; nil once granted
	granted chan struct{}
}

// NewBudget is a budget of bytes for all bodies and for those of one account.
func NewBudget(total, part int64) *Budget {
	return &Budget{total: total, part: min(part, total), accounts: make(map[string]*account)}
}

// Watch has crossed called each time that the bytes in use rise to a level or fall below it. It is called with the budget locked
// and must not block. Watch is called before the budget is used.
func (b *Budget) Watch(level int64, crossed func(above bool)) { b.level, b.crossed = level, crossed }

// Acquire waits for a share of the budget and returns the function that gives it back, which may be called more than
// once. It fails with ErrOverloaded, or with the error of ctx.
func (b *Budget) Acquire(ctx context.Context, name string, bytes int64) (release func(), err error) {
	if b == nil {
		return func() {}, nil
	}
	s, err := b.enqueue(name, bytes)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, MaxWait, ErrOverloaded)
	defer cancel()
	select {
	case <-s.granted:
		return sync.OnceFunc(func() { b.release(s) }), nil
	case <-ctx.Done():
		err := context.Cause(ctx)
		b.withdraw(s, errors.Is(err, ErrOverloaded))
		return nil, err
	}
}

// enqueue puts a share at the end of its account's line.
func (b *Budget) enqueue(name string, bytes int64) (*share, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[name]
	if bytes > b.part || b.waiting == maxWaiting || a != nil && a.wait.Len() == maxAccountWaiting {
		b.overloaded++
		return nil, ErrOverloaded
	}
	if a == nil {
		a = &account{name: name}
		b.accounts[name] = a
	}
	s := &share{account: a, bytes: bytes, granted: make(chan struct{})}
	s.place = a.wait.PushBack(s)
	if a.turn == nil {
		a.turn = b.turns.PushBack(a)
	}
	b.waiting++
	b.grant()
	return s, nil
}

// release gives a share back.
func (b *Budget) release(s *share) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free(s)
}

// withdraw ends a wait. A share that was granted meanwhile is given back.
func (b *Budget) withdraw(s *share, overloaded bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if overloaded {
		b.overloaded++
	}
	if s.place == nil {
		b.free(s)
		return
	}
	b.dequeue(s)
	b.forget(s.account)
	b.grant() // those that it held back
}

// free takes the bytes of a granted share off. The lock is held.
func (b *Budget) free(s *share) {
	b.use(s.account, -s.bytes)
	b.forget(s.account)
	b.grant()
}

// use notes that an account holds more bytes, or fewer. The lock is held.
func (b *Budget) use(a *account, bytes int64) {
	before := b.used >= b.level
	b.used += bytes
	a.used += bytes
	if above := b.used >= b.level; above != before && b.crossed != nil {
		b.crossed(above)
	}
}

// dequeue takes a share out of its line. The lock is held.
func (b *Budget) dequeue(s *share) {
	a := s.account
	a.wait.Remove(s.place)
	s.place = nil
	b.waiting--
	if a.wait.Len() == 0 {
		b.turns.Remove(a.turn)
		a.turn = nil
	}
}

// forget drops an account that neither holds nor waits. The lock is held.
func (b *Budget) forget(a *account) {
	if a.used == 0 && a.wait.Len() == 0 {
		delete(b.accounts, a.name)
	}
}

// grant gives the accounts that wait what fits, in turn. The lock is held.
func (b *Budget) grant() {
	for turn := b.turns.Front(); turn != nil; {
		a := turn.Value.(*account)
		s := a.wait.Front().Value.(*share)
		if a.used+s.bytes > b.part { // it waits for its own shares
			turn = turn.Next()
			continue
		}
		if b.used+s.bytes > b.total {
			return
		}
		b.use(a, s.bytes)
		b.dequeue(s)
		close(s.granted)
		if a.turn != nil {
			b.turns.MoveToBack(a.turn)
		}
		turn = b.turns.Front()
	}
}

// Status is how a budget stands.
type Status struct {
	Used       int64 // bytes
	Waiting    int   // bodies
	Overloaded int64 // bodies that got no share, since the start
}

// Status tells how the budget stands.
func (b *Budget) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Status{b.used, b.waiting, b.overloaded}
}
