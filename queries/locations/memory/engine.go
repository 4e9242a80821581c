// Package memory searches the sites of accounts in memory: an index for each account and Status that is asked about. The
// index is loaded from the read model, brought up to date when the account's sites changed, and dropped when others need
// the room. An answer never misses anything that was written before the query.
//
//	Search ── currentIndex ──► cacheEntry ── snapshot still covers the last change? ──► index
//	                              │ no: refreshEntry, one caller at a time
//	                              ▼
//	                        readSnapshot: table.Site rows ── withChanges ──► the next index, which shares records
//	index ── indexSearch.run: rank by text, filter ── topCandidates ── buildPage ──► search.Result
//
// In an index each site has an ordinal: its rank in the order of names. Words and facets map to ordinals (invertedIndex),
// and ordinals to records, which are sites in a compact form (siteRecord).
//
// An index never changes once it is made, so queries read it without locks. The cache is our own, because no LRU library
// evicts by weight and idle time without a goroutine of its own.
package memory

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"lieudit/eventstore/sqldb"
	"lieudit/queries/locations/search"
	"lieudit/queries/worker"
	"lieudit/schemas/table"
)

// DefaultMaxSites is how many sites of all accounts are kept in memory by default.
const DefaultMaxSites = 1_500_000

const (
	maxConcurrentLoads = 4 // accounts that are read whole concurrently: each takes several times the memory of its index
	// maxIdle is how long an unused index is kept, such as that of an erased account.
	maxIdle = time.Hour
)

// Engine is the search in memory. It is safe for concurrent use.
type Engine struct {
	registry   *sqldb.Registry
	lastChange func(account string) uint64
	now        func() time.Time
	maxSites   int
	loadSlots  *semaphore.Weighted // one is held while a whole account is read
	bufferPool sync.Pool

	mu          sync.Mutex
	entries     map[cacheKey]*cacheEntry
	lru         list.List // of *cacheEntry, the last used in front
	totalWeight int       // of all entries
}

// New returns an Engine of a registry's read model. lastChange returns the log position at which an account's sites last
// changed, as far as this instance knows, or 0: no answer is older than that. At most maxSites sites are kept; those of the
// least recently queried account are dropped first.
func New(registry *sqldb.Registry, lastChange func(account string) uint64, now func() time.Time, maxSites int) *Engine {
	return &Engine{registry: registry, lastChange: lastChange, now: now, maxSites: maxSites, loadSlots: semaphore.NewWeighted(maxConcurrentLoads), entries: map[cacheKey]*cacheEntry{},
		bufferPool: sync.Pool{New: func() any { return new(rankBuffers) }}}
}

// Search implements search.Engine.
func (e *Engine) Search(ctx context.Context, q search.Query) (search.Result, error) {
	after, hasCursor, err := q.ParseCursor()
	if err != nil {
		return search.Result{}, cmp.Or(q.Validate(), err)
	}
	var r search.Result
	err = e.runSearch(ctx, q, func(s *indexSearch) (err error) {
		if hasCursor {
			s.after = &after
		}
		r, err = s.findSites()
		return err
	})
	return r, err
}

// Count implements search.Engine.
func (e *Engine) Count(ctx context.Context, q search.Query, facets []search.Facet) (search.Counts, error) {
	var counts search.Counts
	err := e.runSearch(ctx, q, func(s *indexSearch) (err error) {
		counts, err = s.countSites(facets)
		return err
	})
	return counts, err
}

// runSearch runs a query on the index of its account, with buffers of its own.
func (e *Engine) runSearch(ctx context.Context, q search.Query, run func(*indexSearch) error) error {
	if err := q.Validate(); err != nil {
		return err
	}
	if q.Status == "" {
		q.Status = search.Active
	}
	x, err := e.currentIndex(ctx, cacheKey{q.Account, q.Status})
	if err != nil {
		return err
	}
	buffers := e.bufferPool.Get().(*rankBuffers)
	defer e.bufferPool.Put(buffers)
	return run(&indexSearch{Query: q, ctx: ctx, index: x, buffers: buffers, order: q.EffectiveSort()})
}

// cacheKey names an index: an account's sites of a status.
type cacheKey struct {
	account string
	status  search.Status
}

// cacheEntry is the entry of an index in the cache. One caller at a time refreshes it; queries read current without
// waiting.
type cacheEntry struct {
	cacheKey
	refreshing *semaphore.Weighted // held by the one caller that refreshes the entry
	current    atomic.Pointer[snapshot]
	element    *list.Element // in Engine.lru; nil once the entry is evicted
	lastUsed   time.Time
	weight     int // its number of sites plus 1
}

// snapshot is an index with its freshness. It is immutable: a refresh makes a new one and stores it in the entry, while
// queries continue with the one they have.
type snapshot struct {
	*index
	source      string // the generation it was read from, and how often the account's rows were refolded (written again)
	position    uint64 // it has all changes up to this log position
	checkedAt   time.Time
	divergences uint64 // sqldb.Registry.CountDivergences before it was read
}

// cacheEntryFor returns the entry of a key, which it adds if there is none. The entry becomes the most recently used.
func (e *Engine) cacheEntryFor(k cacheKey) *cacheEntry {
	e.mu.Lock()
	defer e.mu.Unlock()
	h, ok := e.entries[k]
	if !ok {
		h = &cacheEntry{cacheKey: k, refreshing: semaphore.NewWeighted(1), weight: 1}
		h.element = e.lru.PushFront(h)
		e.entries[k] = h
		e.totalWeight++
	}
	h.lastUsed = e.now()
	e.lru.MoveToFront(h.element)
	e.evict(h)
	return h
}

// setWeight records how many sites an entry's index has, and evicts other entries if the limit is exceeded. An entry that
// was evicted meanwhile does not count.
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

// evict drops the least recently used entries until the rest fits and is not idle, but never inUse. So even an account with
// more sites than the limit can be searched. The caller holds mu.
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

// CacheSize returns how many indexes are cached, and how many sites are in them. If an account is searched by several
// statuses, a site counts once for each.
func (e *Engine) CacheSize() (indexes, sites int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.entries), e.totalWeight - len(e.entries)
}

const (
	// maxWait is how long a query waits for the read model to reach the account's last change. After that the query fails
	// with search.ErrStaleIndex.
	maxWait      = 2 * time.Second
	pollInterval = 5 * time.Millisecond
	// checkInterval is how long an index is used before the read model is checked for changes that were not notified: a
	// rebuilt generation may differ.
	checkInterval = 30 * time.Second
)

// currentIndex returns the index of a key with everything that is known to be written, usually from the cache. The last
// change is read before the snapshot: a change in between belongs to a later query.
func (e *Engine) currentIndex(ctx context.Context, k cacheKey) (*index, error) {
	h, position := e.cacheEntryFor(k), e.lastChange(k.account)
	if s := e.loadedSnapshot(h); s.covers(position) && e.now().Sub(s.checkedAt) < checkInterval {
		return s.index, nil
	}
	worker.Release(ctx) // the database may not answer
	waitCtx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	s, err := e.refreshEntry(ctx, waitCtx, h, position)
	if err != nil {
		return nil, fmt.Errorf("sites of %s: %w", k.account, err)
	}
	return s.index, nil
}

// covers reports whether the snapshot has all changes up to a position. A nil snapshot has none.
func (s *snapshot) covers(position uint64) bool { return s != nil && s.position >= position }

// loadedSnapshot returns the snapshot of an entry, or nil if rows that it was made of turned out not to be on the log.
func (e *Engine) loadedSnapshot(h *cacheEntry) *snapshot {
	if s := h.current.Load(); s != nil && s.divergences == e.registry.CountDivergences(table.LocationsModel) {
		return s
	}
	return nil
}

// refreshEntry brings an entry up to date, one caller at a time. It waits for the read model until waitCtx ends; reading
// the rows may continue until ctx ends. If the index already covers the position and only the check fails, the index is
// used anyway.
func (e *Engine) refreshEntry(ctx, waitCtx context.Context, h *cacheEntry, position uint64) (*snapshot, error) {
	if err := h.refreshing.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer h.refreshing.Release(1)
	divergences, old := e.registry.CountDivergences(table.LocationsModel), e.loadedSnapshot(h)
	if old.covers(position) && e.now().Sub(old.checkedAt) < checkInterval { // another caller refreshed it meanwhile
		return old, nil
	}
	r := snapshotReader{ctx: ctx, key: h.cacheKey, old: old, position: position, now: e.now, loadSlots: e.loadSlots}
	oldSuffices := old.covers(position)
	if oldSuffices {
		r.ctx = waitCtx
	}
	fresh, err := e.readUntilCovered(&r, waitCtx)
	var stopped *table.StoppedError
	if errors.As(err, &stopped) { // the snapshot may be older than a refold of the account
		h.current.Store(nil)
		e.setWeight(h, 0)
		return nil, err
	}
	if err != nil && oldSuffices { // only the check failed
		rechecked := *old
		rechecked.checkedAt = e.now()
		fresh, err = &rechecked, nil
	}
	if err == nil {
		fresh.divergences = divergences
		h.current.Store(fresh)
		e.setWeight(h, len(fresh.recordRefs))
	}
	return fresh, err
}

// readUntilCovered reads snapshots until one covers the position. It also waits while no generation is serving. Other
// errors of the database end it at once.
func (e *Engine) readUntilCovered(r *snapshotReader, waitCtx context.Context) (*snapshot, error) {
	for {
		var fresh *snapshot
		err := e.registry.ReadGeneration(r.ctx, table.LocationsModel, func(c sqldb.Generation, db *sqldb.DB) (err error) {
			fresh, err = r.readSnapshot(c, db)
			return err
		})
		if fresh != nil || err != nil && (r.old.covers(r.position) || !errors.Is(err, sqldb.ErrNotReady)) {
			return fresh, err
		}
		select {
		case <-r.ctx.Done():
			return nil, r.ctx.Err()
		case <-waitCtx.Done():
			return nil, errors.Join(search.ErrStaleIndex, err)
		case <-time.After(pollInterval):
		}
	}
}

// snapshotReader makes a snapshot of a generation. If the old snapshot is of the same source, it reads only the rows that
// changed since; otherwise it reads all.
type snapshotReader struct {
	ctx       context.Context
	key       cacheKey
	old       *snapshot
	position  uint64
	now       func() time.Time
	loadSlots *semaphore.Weighted
}

// readSnapshot returns nil while the generation has not reached the position. It reads the checkpoint before the rows,
// which may be newer and are then read again next time.
func (r *snapshotReader) readSnapshot(c sqldb.Generation, db *sqldb.DB) (*snapshot, error) {
	fresh := &snapshot{checkedAt: r.now()}
	if err := db.QueryRow(r.ctx, "select position from {checkpoint}").Scan(&fresh.position); err != nil || fresh.position < r.position {
		return nil, err
	}
	status, err := sqldb.LoadAccountStatus(r.ctx, db, r.key.account)
	if err == nil && status.IsStopped() {
		err = &table.StoppedError{AccountStatus: status}
	}
	if err != nil {
		return nil, err
	}
	fresh.source = fmt.Sprintf("%s, refolded %d times", c.Name, status.RefoldCount)
	if old := r.old; old == nil || old.source != fresh.source || old.position > fresh.position || old.needsNewDictionary() {
		fresh.index, err = r.loadAll(db)
	} else {
		fresh.index, err = r.loadChanges(db)
	}
	return fresh, err
}

// loadAll reads all sites of the account. At most maxConcurrentLoads callers do so at once, because it takes several times
// the memory of the index.
func (r *snapshotReader) loadAll(db *sqldb.DB) (*index, error) {
	if err := r.loadSlots.Acquire(r.ctx, 1); err != nil {
		return nil, err
	}
	defer r.loadSlots.Release(1)
	where := map[search.Status]string{search.Active: " and active", search.Inactive: " and not active"}[r.key.status]
	rows, err := sqldb.Select(r.ctx, db, table.Sites, "where account = ?"+where, r.key.account)
	if err != nil {
		return nil, err
	}
	return new(index).withChanges(rows, r.key.status.Includes)
}

// loadChanges reads the sites that changed since the old snapshot. Projections never delete a single site; if all sites of
// an account are gone, it was erased.
func (r *snapshotReader) loadChanges(db *sqldb.DB) (*index, error) {
	rows, err := sqldb.Select(r.ctx, db, table.Sites, "where account = ? and position > ?", r.key.account, int64(r.old.position))
	if err != nil {
		return nil, err
	}
	if len(rows) > 0 {
		return r.old.withChanges(rows, r.key.status.Includes)
	}
	remaining := 0
	row := db.QueryRow(r.ctx, "select count(*) from (select 1 from {site} where account = ? limit 1) any_site", r.key.account)
	if err := row.Scan(&remaining); err != nil || remaining > 0 {
		return r.old.index, err
	}
	return new(index), nil
}
