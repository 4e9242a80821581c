// Package memory searches the sites of accounts in memory: an index for each account that is asked about, loaded from the
// read model, brought up to date when the account's sites changed, and let go of when others need the room. It answers
// as finder says, and nothing that was written before a question is missing from the answer.
package memory

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/queries/locations/search"
)

// DefaultMaxSites is how many sites are held in memory unless somebody says otherwise.
const DefaultMaxSites = 1_500_000

const (
	maxConcurrentLoads = 4
	// maxIdle is how long an index is held that nobody asks for: of an account that was erased nobody does.
	maxIdle = time.Hour
)

// Engine is the search in memory. It is safe for concurrent use.
type Engine struct {
	registry   *sqldb.Registry
	lastChange func(account string) uint64
	now        func() time.Time
	maxSites   int
	loadSlots  chan struct{} // taken by who reads a whole account
	bufferPool sync.Pool

	mu          sync.Mutex
	entries     map[cacheKey]*cacheEntry
	lru         list.List // of *holding, the one used last in front
	totalWeight int       // what is held weighs
}

// New searches what the copies on a shelf hold. changed says at which position of the log an account's sites changed
// last, as far as is known, 0 when nothing is: no answer is older than that. At most bound sites are held at a time;
// those of the account that was not asked about for longest go first.
func New(registry *sqldb.Registry, lastChange func(account string) uint64, now func() time.Time, maxSites int) *Engine {
	return &Engine{registry: registry, lastChange: lastChange, now: now, maxSites: maxSites, loadSlots: make(chan struct{}, maxConcurrentLoads), entries: map[cacheKey]*cacheEntry{},
		bufferPool: sync.Pool{New: func() any { return new(rankBuffers) }}}
}

// Search answers a question as finder.Engine says.
func (e *Engine) Search(ctx context.Context, q search.Query) (search.Result, error) {
	if err := q.Validate(); err != nil {
		return search.Result{}, err
	}
	after, hasCursor, err := q.ParseCursor()
	if err != nil {
		return search.Result{}, err
	}
	if q.Status == "" {
		q.Status = search.Active
	}
	x, err := e.currentIndex(ctx, cacheKey{q.Account, q.Status})
	if err != nil {
		return search.Result{}, err
	}
	buffers := e.bufferPool.Get().(*rankBuffers)
	defer e.bufferPool.Put(buffers)
	execution := indexSearch{Query: q, index: x, rankBuffers: buffers, order: q.EffectiveSort()}
	if hasCursor {
		execution.after = &after
	}
	return execution.run()
}

// cacheKey names what is held: an account's sites of a status.
type cacheKey struct {
	account string
	status  search.Status
}

func (k cacheKey) includes(active bool) bool {
	switch k.status {
	case search.Active:
		return active
	case search.Inactive:
		return !active
	}
	return true
}

// cacheEntry is the place of an index in memory. Who changes the index takes a turn; who reads it does not wait.
type cacheEntry struct {
	cacheKey
	refreshSlot chan struct{}
	current     atomic.Pointer[snapshot]
	element     *list.Element // nil once it is let go of
	lastUsed    time.Time
	weight      int
}

// snapshot is an index and how old it is. Neither changes any more.
type snapshot struct {
	*index
	source      string // of the read model, which it was read from, and which writing of the account's rows
	position    uint64 // it holds all changes up to this position
	checkedAt   time.Time
	divergences uint64 // of the shelf, when it was read
}

// cacheEntryFor is the place of a key, which becomes the one used last.
func (e *Engine) cacheEntryFor(k cacheKey) *cacheEntry {
	e.mu.Lock()
	defer e.mu.Unlock()
	h, ok := e.entries[k]
	if !ok {
		h = &cacheEntry{cacheKey: k, refreshSlot: make(chan struct{}, 1), weight: 1}
		h.element = e.lru.PushFront(h)
		e.entries[k] = h
		e.totalWeight++
	}
	h.lastUsed = e.now()
	e.lru.MoveToFront(h.element)
	e.evict(h)
	return h
}

// setWeight counts what a holding holds now.
func (e *Engine) setWeight(h *cacheEntry, sites int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h.element == nil {
		return
	}
	e.totalWeight += sites + 1 - h.weight
	h.weight = sites + 1
	e.evict(h)
}

// evict lets go of what was used longest ago until all fits and nothing is idle, but not of h.
func (e *Engine) evict(inUse *cacheEntry) {
	for {
		oldest := e.lru.Back().Value.(*cacheEntry)
		if oldest == inUse || e.totalWeight <= e.maxSites && e.now().Sub(oldest.lastUsed) < maxIdle {
			return
		}
		e.lru.Remove(oldest.element)
		e.totalWeight -= oldest.weight
		oldest.element = nil
		delete(e.entries, oldest.cacheKey)
	}
}

// CacheSize says how many indexes are held at the moment, and how many sites are in them.
func (e *Engine) CacheSize() (indexes, sites int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.entries), e.totalWeight - len(e.entries)
}
