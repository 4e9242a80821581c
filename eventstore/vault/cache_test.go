package vault

import (
	"fmt"
	"testing"
	"time"
)

func TestTheCacheHoldsNoMoreThanItMay(t *testing.T) {
	t.Parallel()
	now := time.Now()
	c := cache{clock: func() time.Time { return now }}
	for i := range 3 * most {
		subject := fmt.Sprint(i)
		c.put(subject, []byte{1}, now)
		if _, known := c.find(subject); !known || len(c.known) > most {
			t.Fatalf("put %d: known %v, %d held", i, known, len(c.known))
		}
	}
	now = now.Add(remember)
	c.put("x", []byte{1}, now)
	for len(c.known) < most {
		c.put(fmt.Sprint("y", len(c.known)), []byte{1}, now)
	}
	c.put("z", []byte{1}, now)
	if _, known := c.find("0"); known || len(c.known) > most {
		t.Errorf("known when too old: %v, %d held", known, len(c.known))
	}
}

func TestAnAnswerFromBeforeTheDestructionDoesNotUndoIt(t *testing.T) {
	t.Parallel()
	now := time.Now()
	c := cache{clock: func() time.Time { return now }}
	c.put("a", []byte{1}, now)
	c.forget("a")
	if _, known := c.find("a"); known {
		t.Error("forgotten and known")
	}
	c.put("a", nil, now)
	c.forget("a")
	if key := c.put("a", []byte{1}, now.Add(-time.Millisecond)); key != nil {
		t.Errorf("got %x back", key)
	}
	if key, known := c.find("a"); key != nil || !known {
		t.Errorf("got %x, %v, want a destroyed key", key, known)
	}
}
