package vault

import (
	"context"
	"sync"

	"lieudit/schemas/table"
)

const (
	inOrder = 8   // rows asked for in the order they were made before the next ones are read ahead
	ahead   = 500 // rows read ahead at a time
)

// follower notices who replays a log: such a reader asks for keys in about the order they were made, and asking the
// database for each alone would be the slowest part of it.
type follower struct {
	mu     sync.Mutex
	last   table.Instant
	streak int
}

// follows notes a row that had to be asked for, and says whether the next ones are likely to be.
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

// readAhead remembers the keys made after r's. It is a favour: where it fails, they are asked for one by one.
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
