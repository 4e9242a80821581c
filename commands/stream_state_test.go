package commands

import (
	"fmt"
	"testing"
)

// cachedIDs returns those candidates whose states are in the cache.
func cachedIDs(c *stateCache[int], candidates ...string) (ids string) {
	for _, id := range candidates {
		if _, ok := c.states[id]; ok {
			ids += id
		}
	}
	return ids
}

func TestStateCacheEvictsTheLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	c := newStateCache[int]("c", 10)
	for _, id := range []string{"a", "b", "c"} {
		c.updateWeight(c.findOrCreate(id), 3)
	}
	c.findOrCreate("a")
	c.updateWeight(c.findOrCreate("d"), 4)
	if got := cachedIDs(&c, "a", "b", "c", "d"); got != "acd" || c.totalWeight != 10 {
		t.Errorf("got %s of weight %d, want acd of 10", got, c.totalWeight)
	}
	c.updateWeight(c.findOrCreate("c"), 1)
	if c.totalWeight != 8 {
		t.Errorf("got weight %d once c was lighter, want 8", c.totalWeight)
	}
}

func TestStateCacheKeepsOneStateThatWeighsMoreThanItsLimit(t *testing.T) {
	t.Parallel()
	c := newStateCache[int]("c", 10)
	c.findOrCreate("a")
	s := c.findOrCreate("b")
	c.updateWeight(s, 100)
	if got := cachedIDs(&c, "a", "b"); got != "b" || c.findOrCreate("b") != s {
		t.Errorf("got %s, want b", got)
	}
	c.findOrCreate("c")
	if got := cachedIDs(&c, "a", "b", "c"); got != "c" || c.totalWeight != 1 {
		t.Errorf("got %s of weight %d, want c of 1", got, c.totalWeight)
	}
	c.updateWeight(s, 200) // it is not in the cache
	if c.totalWeight != 1 {
		t.Errorf("got weight %d, want 1", c.totalWeight)
	}
}

func TestStateCacheIsBoundedByNumberToo(t *testing.T) {
	t.Parallel()
	c := newStateCache[int]("c", 10)
	for n := range 100 {
		c.findOrCreate(fmt.Sprint(n))
	}
	if len(c.states) != 10 || c.recent.Len() != 10 {
		t.Errorf("got %d folds, want 10", len(c.states))
	}
}
