package usage

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

// sumCache keeps sums of lines, for which open pages ask twice a second. They are right while the period has the same number of entries: of
// events in its streams. A log that was restored from a backup can come to that number with other events, but its read model is then another
// generation. The zero value is ready for use. It is safe for concurrent use.
type sumCache struct {
	mu   sync.Mutex
	sums map[string]cachedSums
}

// cachedSums are the sums of a query as of a number of entries.
type cachedSums struct {
	entries    int64
	generation generationID
	total      int64
	lines      []Line
}

// generationID tells a generation of the read model from all others, those of a database that was restored too.
type generationID struct {
	name    string
	created table.Instant
}

const (
	maxCachedSums  = 200  // all are forgotten when there are more
	maxCachedLines = 2000 // of each
)

// cacheKey names what is asked for, and the contract whose stream decides.
func (q Query) cacheKey(contract string) string {
	return fmt.Sprintf("%q %q %s %q %s %q %q", contract, q.Account, q.First, q.GroupBy, q.Day, q.Key, q.Endpoint)
}

// find returns the sums as of a number of entries in a generation.
func (c *sumCache) find(key string, entries int64, g generationID) (cachedSums, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.sums[key]
	return found, ok && found.entries == entries && found.generation == g && entries > 0
}

// size returns how many lines the sums have that are kept, whatever was counted since.
func (c *sumCache) size(key string) (lines int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.sums[key]
	return len(found.lines), ok
}

func (c *sumCache) keep(key string, s cachedSums) {
	if s.entries == 0 || len(s.lines) > maxCachedLines {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sums == nil || len(c.sums) >= maxCachedSums {
		c.sums = map[string]cachedSums{}
	}
	c.sums[key] = s
}

// loadSums sums the lines, or takes the sums that are kept.
func (c *Reader) loadSums(ctx context.Context, db *sqldb.DB, u *Summary, q Query, g generationID) error {
	key := q.cacheKey(u.Contract)
	if kept, ok := c.cache.find(key, u.Entries, g); ok {
		u.Total, u.Lines = kept.total, slices.Clone(kept.lines)
		return nil
	}
	if err := u.sumLines(ctx, db, q); err != nil {
		return err
	}
	others := false // another contract paid too: the entries are not those of its period
	err := db.QueryRow(ctx, "select exists (select 1 from {usage_line} where first = ? and account = ? and (contract < ? or contract > ?))",
		q.First.String(), q.Account, u.Contract, u.Contract).Scan(&others)
	if err == nil && !others {
		c.cache.keep(key, cachedSums{u.Entries, g, u.Total, slices.Clone(u.Lines)})
	}
	return err
}
