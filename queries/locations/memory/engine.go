// Package memory searches the sites of accounts in memory: an index for each account that is asked about, loaded from the
// read model, brought up to date when the account's sites changed, and let go of when others need the room. It answers
// as finder says, and nothing that was written before a question is missing from the answer.
package memory

import (
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
	"lieudit/schemas/table"
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
	loadSlots  *semaphore.Weighted // one is held while a whole account is read
	bufferPool sync.Pool

	mu          sync.Mutex
	entries     map[cacheKey]*cacheEntry
	lru         list.List // of *holding, the one used last in front
	totalWeight int       // what is held weighs
}

// New searches what the copies on a registry hold. changed says at which position of the log an account's sites changed
// last, as far as is known, 0 when nothing is: no answer is older than that. At most bound sites are held at a time;
// those of the account that was not asked about for longest go first.
func New(registry *sqldb.Registry, lastChange func(account string) uint64, now func() time.Time, maxSites int) *Engine {
	return &Engine{registry: registry, lastChange: lastChange, now: now, maxSites: maxSites, loadSlots: semaphore.NewWeighted(maxConcurrentLoads), entries: map[cacheKey]*cacheEntry{},
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
	execution := indexSearch{Query: q, index: x, buffers: buffers, order: q.EffectiveSort()}
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

// cacheEntry is the place of an index in memory. Who changes the index takes a turn; who reads it does not wait.
type cacheEntry struct {
	cacheKey
	refreshing *semaphore.Weighted // held by the one caller that refreshes the entry
	current    atomic.Pointer[snapshot]
	element    *list.Element // nil once it is let go of
	lastUsed   time.Time
	weight     int
}

// snapshot is an index and how old it is. Neither changes any more.
type snapshot struct {
	*index
	source      string // of the read model, which it was read from, and which writing of the account's rows
	position    uint64 // it holds all changes up to this position
	checkedAt   time.Time
	divergences uint64 // of the registry, when it was read
}

// cacheEntryFor is the place of a key, which becomes the one used last.
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

const (
	// maxWait is how long a question waits for what was written to be in the read model.
	maxWait      = 2 * time.Second
	pollInterval = 5 * time.Millisecond
	// checkInterval is how long an index is used before the tables are asked whether it is all there is, although
	// nobody told of a change: a copy may be filled anew.
	checkInterval = 30 * time.Second
)

// currentIndex is the index of a key with all that is known to be written in it.
func (e *Engine) currentIndex(ctx context.Context, k cacheKey) (*index, error) {
	h, position := e.cacheEntryFor(k), e.lastChange(k.account)
	if s := e.loadedSnapshot(h); s.covers(position) && e.now().Sub(s.checkedAt) < checkInterval {
		return s.index, nil
	}
	waitCtx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	s, err := e.refreshEntry(ctx, waitCtx, h, position)
	if err != nil {
		return nil, fmt.Errorf("sites of %s: %w", k.account, err)
	}
	return s.index, nil
}

// covers says whether all changes up to a position are in the snapshot.
func (s *snapshot) covers(position uint64) bool { return s != nil && s.position >= position }

// loadedSnapshot is the snapshot of a holding. One of rows that turned out not to be on the log counts as none.
func (e *Engine) loadedSnapshot(h *cacheEntry) *snapshot {
	if s := h.current.Load(); s != nil && s.divergences == e.registry.CountDivergences(table.LocationsModel) {
		return s
	}
	return nil
}

// refreshEntry refreshes a holding, one caller at a time. It waits for the read model until waiting ends.
func (e *Engine) refreshEntry(ctx, waitCtx context.Context, h *cacheEntry, position uint64) (*snapshot, error) {
	if err := h.refreshing.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer h.refreshing.Release(1)
	divergences, old := e.registry.CountDivergences(table.LocationsModel), e.loadedSnapshot(h)
	if old.covers(position) && e.now().Sub(old.checkedAt) < checkInterval { // somebody else did it meanwhile
		return old, nil
	}
	r := snapshotReader{ctx: ctx, key: h.cacheKey, old: old, position: position, now: e.now, loadSlots: e.loadSlots}
	oldSuffices := old.covers(position)
	if oldSuffices {
		r.ctx = waitCtx
	}
	fresh, err := e.readUntilCovered(&r, waitCtx)
	var stopped *table.StoppedError
	if errors.As(err, &stopped) { // what is held may be of before its rows were written again
		h.current.Store(nil)
		e.setWeight(h, 0)
		return nil, err
	}
	if err != nil && oldSuffices { // it was only to be looked whether all is well
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

// readUntilCovered reads until the read model has passed the position.
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

// snapshotReader makes a snapshot of a copy of the read model, out of an old one where that will do.
type snapshotReader struct {
	ctx       context.Context
	key       cacheKey
	old       *snapshot
	position  uint64
	now       func() time.Time
	loadSlots *semaphore.Weighted
}

// readSnapshot gives nil while the copy has not passed the position. How far the copy is is read before its rows: these may be
// newer, and are then read again next time.
func (r *snapshotReader) readSnapshot(c sqldb.Generation, db *sqldb.DB) (*snapshot, error) {
	fresh := &snapshot{checkedAt: r.now()}
	if err := db.QueryRow(r.ctx, "select position from checkpoint").Scan(&fresh.position); err != nil || fresh.position < r.position {
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

// loadAll reads all sites. Few do so at once: while it lasts it takes several times the room of what is held then.
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

// loadChanges reads the sites that changed. No site is ever deleted; where an account's are all gone it was erased.
func (r *snapshotReader) loadChanges(db *sqldb.DB) (*index, error) {
	rows, err := sqldb.Select(r.ctx, db, table.Sites, "where account = ? and position > ?", r.key.account, int64(r.old.position))
	if err != nil {
		return nil, err
	}
	if len(rows) > 0 {
		return r.old.withChanges(rows, r.key.status.Includes)
	}
	remaining := 0
	row := db.QueryRow(r.ctx, "select count(*) from (select 1 from site where account = ? limit 1) any_site", r.key.account)
	if err := row.Scan(&remaining); err != nil || remaining > 0 {
		return r.old.index, err
	}
	return new(index), nil
}
