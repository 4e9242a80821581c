package vault

import (
	"sync"
	"time"
)

const (
	remember = 45 * time.Second // lifetime of an entry: below the minute that the package promises
	most     = 50_000           // entries at a time
)

// cache keeps keys, and the fact that a key is destroyed, for the time remember. It is safe for concurrent use.
type cache struct {
	clock func() time.Time
	mu    sync.RWMutex
	known map[string]answer
}

// answer is a result of the database. key is nil for a destroyed key; asked is the time just before the query.
type answer struct {
	key   []byte
	asked time.Time
}

func (c *cache) find(subject string) (key []byte, known bool) {
	now := c.clock()
	c.mu.RLock()
	defer c.mu.RUnlock()
	a, ok := c.known[subject]
	if !ok || now.Sub(a.asked) >= remember {
		return nil, false
	}
	return a.key, true
}

// put stores an answer and returns the key that is valid: nil where the key was found destroyed after this answer's
// query began. So a slow query cannot bring a destroyed key back.
func (c *cache) put(subject string, key []byte, asked time.Time) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.known[subject]; ok && old.key == nil && !asked.After(old.asked) {
		key = nil
	}
	if c.known == nil {
		c.known = map[string]answer{}
	}
	if len(c.known) >= most {
		c.shrink()
	}
	c.known[subject] = answer{key, asked}
	return key
}

// forget removes the entry of a subject, unless it says that the key is destroyed.
func (c *cache) forget(subject string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[subject].key != nil {
		delete(c.known, subject)
	}
}

// remove removes the entry of a subject, whatever it says.
func (c *cache) remove(subject string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, subject)
}

// clear removes all entries.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.known)
}

// shrink removes expired entries and, if that is not enough, arbitrary ones down to three quarters of most. The lock is held.
func (c *cache) shrink() {
	now := c.clock()
	for subject, a := range c.known {
		if now.Sub(a.asked) >= remember || len(c.known) > most*3/4 {
			delete(c.known, subject)
		}
	}
}
