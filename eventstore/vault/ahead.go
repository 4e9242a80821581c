package vault

import (
	"context"
	"sync"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

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

// isReplay records a row that was not cached, and reports whether the rows created after it are likely to be needed next.
func (f *replayDetector) isReplay(r row) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Created < f.last {
		f.streak = 0
	}
	f.streak++
	f.last = r.Created
	return f.streak > replayStreak
}

// prefetchAfter caches the keys created after r. It ignores errors: a key that is not cached is read on its own.
func (v *Vault) prefetchAfter(ctx context.Context, r row) {
	db, queriedAt := v.db.Load(), v.clock()
	if db == nil {
		return
	}
	rows, err := sqldb.Select(ctx, db.DB, keyTable, "where created >= ? order by created limit ?", int64(r.Created), prefetchRows)
	if err != nil {
		return
	}
	for _, n := range rows {
		if n.Destroyed != 0 {
			v.cache.put(n.Subject, nil, queriedAt)
		} else if key, err := v.wrapper.open(n.Subject, n.Key); err == nil {
			v.cache.put(n.Subject, key, queriedAt)
		}
	}
}
