package vault

import (
	"context"
	"sync"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

const (
	cacheTTL  = 45 * time.Second // lifetime of an entry: below the minute that the package promises
	maxCached = 50_000           // entries at a time
)

// keyCache keeps keys, and the fact that a key is destroyed, for cacheTTL. It is safe for concurrent use. Cache libraries do
// not fit: the clock is passed in, no goroutine may run, and a destroyed key must win over the result of a slower query.
type keyCache struct {
	clock       func() time.Time // elapsed time
	mu          sync.RWMutex
	entries     map[string]cacheEntry
	forgottenAt time.Time // when all keys were last forgotten: results of earlier queries are not kept
}

// cacheEntry is a result of the database. key is nil for a destroyed key; queriedAt is the time just before the
// query.
type cacheEntry struct {
	key       []byte
	queriedAt time.Time
}

// get returns an entry that has not expired; key is nil for a destroyed key.
func (c *keyCache) get(subject string) (key []byte, found bool) {
	now := c.clock()
	c.mu.RLock()
	defer c.mu.RUnlock()
	entry, ok := c.entries[subject]
	if !ok || now.Sub(entry.queriedAt) >= cacheTTL {
		return nil, false
	}
	return entry.key, true
}

// put stores a result and returns the valid key: nil if the key was found destroyed after the query of this result began. So
// a slow query cannot bring back a destroyed key.
func (c *keyCache) put(subject string, key []byte, queriedAt time.Time) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.entries[subject]; ok && old.key == nil && !queriedAt.After(old.queriedAt) {
		return nil // and the entry keeps its time, for other queries that are slow
	}
	if key != nil && queriedAt.Before(c.forgottenAt) {
		return key
	}
	if c.entries == nil {
		c.entries = map[string]cacheEntry{}
	}
	if len(c.entries) >= maxCached {
		c.shrink()
	}
	c.entries[subject] = cacheEntry{key, queriedAt}
	return key
}

// forget removes the entry of a subject, unless it records that the key is destroyed.
func (c *keyCache) forget(subject string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[subject].key != nil {
		delete(c.entries, subject)
	}
}

// forgetKeys removes all keys. What is known to be destroyed stays known.
func (c *keyCache) forgetKeys() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgottenAt = c.clock()
	for subject, entry := range c.entries {
		if entry.key != nil {
			delete(c.entries, subject)
		}
	}
}

// remove removes the entry of a subject, whatever it records.
func (c *keyCache) remove(subject string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, subject)
}

// clear removes all entries.
func (c *keyCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.entries)
}

// shrink removes expired entries and, if that is not enough, arbitrary ones down to three quarters of maxCached.
// The caller holds the lock.
func (c *keyCache) shrink() {
	now := c.clock()
	for subject, entry := range c.entries {
		if now.Sub(entry.queriedAt) >= cacheTTL || len(c.entries) > maxCached*3/4 {
			delete(c.entries, subject)
		}
	}
}

const (
	replayStreak = 8   // consecutive lookups in the order of creation after which the following rows are prefetched
	prefetchRows = 500 // rows prefetched at a time
)

// replayDetector detects a replay of the log. A replay needs keys in about the order in which they were created, and one query
// for each key would take most of its time. It is safe for concurrent use.
type replayDetector struct {
	mu     sync.Mutex
	last   table.Instant
	streak int
}

// isReplay records a row that was not cached, and reports whether the rows created after it are likely to be needed next:
// after more than replayStreak rows in the order of their creation.
func (d *replayDetector) isReplay(r row) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Created < d.last {
		d.streak = 0
	}
	d.streak++
	d.last = r.Created
	return d.streak > replayStreak
}

// prefetchAfter caches the keys created after r. It ignores errors: a key that is not cached is read on its own.
func (v *Vault) prefetchAfter(ctx context.Context, r row) {
	db, queriedAt := v.db.Load(), v.cache.clock()
	if db == nil {
		return
	}
	rows, err := sqldb.Select(ctx, db.DB, keyTable, "where created >= ? order by created limit ?", int64(r.Created), prefetchRows)
	if err != nil {
		return
	}
	for _, next := range rows {
		if next.Destroyed != 0 {
			v.cache.put(next.Subject, nil, queriedAt)
		} else if key, err := v.wrapper.unwrapKey(next.Subject, next.Key); err == nil {
			v.cache.put(next.Subject, key, queriedAt)
		}
	}
}
