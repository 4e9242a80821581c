// Package local searches the sites of accounts in memory: an index for each account that is asked about, loaded from the
// read model, brought up to date when the account's sites changed, and let go of when others need the room. It answers
// as finder says, and nothing that was written before a question is missing from the answer.
package local

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"lieudit/queries/places/finder"
	"lieudit/schemas/table"
)

// Held is how many sites are held in memory unless somebody says otherwise.
const Held = 1_500_000

const (
	loadsAtOnce = 4
	// idle is how long an index is held that nobody asks for: of an account that was erased nobody does.
	idle = time.Hour
)

// Engine is the search in memory. It is safe for concurrent use.
type Engine struct {
	shelf   *table.Shelf
	changed func(account string) uint64
	now     func() time.Time
	bound   int
	loads   chan struct{} // taken by who reads a whole account
	scratch sync.Pool

	mu     sync.Mutex
	held   map[key]*holding
	recent list.List // of *holding, the one used last in front
	sites  int       // what is held weighs
}

// New searches what the copies on a shelf hold. changed says at which position of the log an account's sites changed
// last, as far as is known, 0 when nothing is: no answer is older than that. At most bound sites are held at a time;
// those of the account that was not asked about for longest go first.
func New(shelf *table.Shelf, changed func(account string) uint64, now func() time.Time, bound int) *Engine {
	return &Engine{shelf: shelf, changed: changed, now: now, bound: bound, loads: make(chan struct{}, loadsAtOnce), held: map[key]*holding{},
		scratch: sync.Pool{New: func() any { return new(scratch) }}}
}

// Search answers a question as finder.Engine says.
func (e *Engine) Search(ctx context.Context, q finder.Query) (finder.Result, error) {
	if err := q.Check(); err != nil {
		return finder.Result{}, err
	}
	after, paged, err := q.Place()
	if err != nil {
		return finder.Result{}, err
	}
	if q.Status == "" {
		q.Status = finder.Active
	}
	x, err := e.current(ctx, key{q.Account, q.Status})
	if err != nil {
		return finder.Result{}, err
	}
	s := e.scratch.Get().(*scratch)
	defer e.scratch.Put(s)
	search := search{Query: q, x: x, scratch: s, order: q.Order()}
	if paged {
		search.after = &after
	}
	return search.run()
}

// key names what is held: an account's sites of a status.
type key struct {
	account string
	status  finder.Status
}

func (k key) holds(active bool) bool {
	switch k.status {
	case finder.Active:
		return active
	case finder.Inactive:
		return !active
	}
	return true
}

// holding is the place of an index in memory. Who changes the index takes a turn; who reads it does not wait.
type holding struct {
	key
	turn    chan struct{}
	now     atomic.Pointer[snapshot]
	element *list.Element // nil once it is let go of
	used    time.Time
	weight  int
}

// snapshot is an index and how old it is. Neither changes any more.
type snapshot struct {
	*index
	copy   string // of the read model, which it was read from, and which writing of the account's rows
	at     uint64 // it holds all changes up to this position
	looked time.Time
	strays uint64 // of the shelf, when it was read
}

// holding is the place of a key, which becomes the one used last.
func (e *Engine) holding(k key) *holding {
	e.mu.Lock()
	defer e.mu.Unlock()
	h, ok := e.held[k]
	if !ok {
		h = &holding{key: k, turn: make(chan struct{}, 1), weight: 1}
		h.element = e.recent.PushFront(h)
		e.held[k] = h
		e.sites++
	}
	h.used = e.now()
	e.recent.MoveToFront(h.element)
	e.shrink(h)
	return h
}

// weigh counts what a holding holds now.
func (e *Engine) weigh(h *holding, sites int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h.element == nil {
		return
	}
	e.sites += sites + 1 - h.weight
	h.weight = sites + 1
	e.shrink(h)
}

// shrink lets go of what was used longest ago until all fits and nothing is idle, but not of h.
func (e *Engine) shrink(h *holding) {
	for {
		last := e.recent.Back().Value.(*holding)
		if last == h || e.sites <= e.bound && e.now().Sub(last.used) < idle {
			return
		}
		e.recent.Remove(last.element)
		e.sites -= last.weight
		last.element = nil
		delete(e.held, last.key)
	}
}

// Holds says how many indexes are held at the moment, and how many sites are in them.
func (e *Engine) Holds() (indexes, sites int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.held), e.sites - len(e.held)
}
