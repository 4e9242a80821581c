package vault

import (
	"context"
	"sync"

	"lieudit/schemas/table"
)

const (
	inOrder = 8   // consecutive lookups in the order of creation after which the following rows are prefetched
	ahead   = 500 // rows prefetched at a time
)

// follower detects a replay of the log. A replay needs keys in about the order in which they were created, and one query
// for each key would take most of its time. It is safe for concurrent use.
type follower struct {
	mu     sync.Mutex
	last   table.Instant
	streak int
}

// follows records a row that was not cached, and reports whether the rows created after it are likely to be needed next.
func (f *follower) follows(r row) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Created < f.last {
		f.streak = 0
	}
	f.streak++
	f.last = r.Created
	return f.streak > inOrder
}

// readAhead caches the keys created after r. It ignores errors: a key that is not cached is read on its own.
func (v *Vault) readAhead(ctx context.Context, r row) {
	db, asked := v.db.Load(), v.clock()
	if db == nil {
		return
	}
	next, err := table.Select(ctx, db.DB, keys, "where created >= ? order by created limit ?", int64(r.Created), ahead)
	if err != nil {
		return
	}
	for _, n := range next {
		if n.Destroyed != 0 {
			v.cache.put(n.Subject, nil, asked)
		} else if key, err := v.wrapper.open(n.Subject, n.Key); err == nil {
			v.cache.put(n.Subject, key, asked)
		}
	}
}
