package vault

import (
	"sync"
	"time"
)

const (
	remember = 45 * time.Second // after which a key is asked for again
	most     = 50_000           // subjects remembered at a time
)

// cache remembers keys for a short while, and for as long that there is none any more.
type cache struct {
	clock func() time.Time
	mu    sync.RWMutex
	known map[string]answer
}

// answer is what the database said: a key, or nil for a destroyed one.
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

// put remembers an answer, by when it was asked for, and gives the one that counts: a destroyed key does not come
// back by an answer from before.
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

// forget makes the next find ask again, unless the key is known to be destroyed.
func (c *cache) forget(subject string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[subject].key != nil {
		delete(c.known, subject)
	}
}

// drop forgets what is known of a subject.
func (c *cache) drop(subject string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, subject)
}

// clear forgets everything.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.known)
}

// shrink forgets what is too old, and if need be a quarter of the rest, whichever comes.
func (c *cache) shrink() {
	now := c.clock()
	for subject, a := range c.known {
		if now.Sub(a.asked) >= remember || len(c.known) > most*3/4 {
			delete(c.known, subject)
		}
	}
}
