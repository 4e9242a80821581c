package vault

import (
	"fmt"
	"testing"
	"time"
)

func TestTheCacheIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Now()
	c := keyCache{clock: func() time.Time { return now }}
	for i := range 3 * maxCached {
		subject := fmt.Sprint(i)
		c.put(subject, []byte{1}, now)
		if _, known := c.get(subject); !known || len(c.entries) > maxCached {
			t.Fatalf("put %d: known %v, %d held", i, known, len(c.entries))
		}
	}
	now = now.Add(cacheTTL)
	c.put("x", []byte{1}, now)
	for len(c.entries) < maxCached {
		c.put(fmt.Sprint("y", len(c.entries)), []byte{1}, now)
	}
	c.put("z", []byte{1}, now)
	if _, known := c.get("0"); known || len(c.entries) > maxCached {
		t.Errorf("known when too old: %v, %d held", known, len(c.entries))
	}
}

func TestASlowQueryDoesNotBringBackADestroyedKey(t *testing.T) {
	t.Parallel()
	now := time.Now()
	c := keyCache{clock: func() time.Time { return now }}
	c.put("a", []byte{1}, now)
	c.forget("a")
	if _, known := c.get("a"); known {
		t.Error("forgotten and known")
	}
	c.put("a", nil, now)
	c.forget("a")
	for _, age := range []time.Duration{2 * time.Millisecond, time.Millisecond} { // the one that began first is stored first
		if key := c.put("a", []byte{1}, now.Add(-age)); key != nil {
			t.Errorf("got %x back from a query that began %v before", key, age)
		}
	}
	if key, known := c.get("a"); key != nil || !known {
		t.Errorf("got %x, %v, want a destroyed key", key, known)
	}
}

func TestForgottenKeysAreAskedForAgainAndDestroyedOnesStayKnown(t *testing.T) {
	t.Parallel()
	now := time.Now()
	c := keyCache{clock: func() time.Time { return now }}
	c.put("a", []byte{1}, now)
	c.put("gone", nil, now)
	before := now
	now = now.Add(time.Second)
	c.forgetKeys()
	if _, known := c.get("a"); known {
		t.Error("a forgotten key is known")
	}
	if key, known := c.get("gone"); key != nil || !known {
		t.Errorf("got %x, %v, want a destroyed key", key, known)
	}
	if key := c.put("a", []byte{1}, before); key == nil {
		t.Error("a query that was under way got no key")
	}
	if _, known := c.get("a"); known {
		t.Error("a query that was under way brought the key back")
	}
	if c.put("a", []byte{1}, now); c.entries["a"].key == nil {
		t.Error("a later query is not kept")
	}
}
