package vault_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/vault"
	"lieudit/schemas/table/tabletest"
)

// clock is a time that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func open(t *testing.T, address string, master []byte, now func() time.Time) *vault.Vault {
	t.Helper()
	v, err := vault.New(tabletest.File(address), master, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

func key(t *testing.T, v eventstore.Vault, subject string, create bool) []byte {
	t.Helper()
	k, err := v.Key(t.Context(), subject, create)
	if err != nil {
		t.Fatalf("key of %s: %v", subject, err)
	}
	if len(k) != 32 {
		t.Fatalf("key of %d bytes, want 32", len(k))
	}
	return k
}

func refused(t *testing.T, v eventstore.Vault, subject string, create bool) {
	t.Helper()
	if k, err := v.Key(t.Context(), subject, create); !errors.Is(err, eventstore.ErrDestroyed) {
		t.Errorf("key of %s: got %x, %v, want ErrDestroyed", subject, k, err)
	}
}

func destroy(t *testing.T, v eventstore.Vault, subject string) {
	t.Helper()
	if err := v.Destroy(t.Context(), subject); err != nil {
		t.Fatal(err)
	}
}

// each runs a test on both databases, with and without a master key.
func each(t *testing.T, test func(t *testing.T, address string, master []byte)) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		for name, master := range map[string][]byte{"plain": nil, "wrapped": bytes.Repeat([]byte{7}, 32)} {
			t.Run(name, func(t *testing.T) { test(t, address, master) })
		}
	})
}

func TestAKeyIsMadeOnceAndKept(t *testing.T) {
	each(t, func(t *testing.T, address string, master []byte) {
		v, s := open(t, address, master, time.Now), t.Name()
		if k, err := v.Key(t.Context(), s, false); !errors.Is(err, eventstore.ErrNoKey) {
			t.Errorf("before it is made: got %x, %v, want ErrNoKey", k, err)
		}
		want := key(t, v, s, true)
		for _, create := range []bool{true, false} {
			if got := key(t, open(t, address, master, time.Now), s, create); !bytes.Equal(got, want) {
				t.Errorf("create %v: got %x, want %x", create, got, want)
			}
		}
		if other := key(t, v, s+"2", true); bytes.Equal(other, want) {
			t.Error("two subjects have the same key")
		}
	})
}

func TestInstancesThatMakeAKeyAtOnceAgreeOnIt(t *testing.T) {
	each(t, func(t *testing.T, address string, master []byte) {
		got := make([][]byte, 8)
		var all sync.WaitGroup
		for i := range got {
			v := open(t, address, master, time.Now)
			all.Go(func() { got[i], _ = v.Key(t.Context(), t.Name(), true) })
		}
		all.Wait()
		for i := range got {
			if len(got[i]) != 32 || !bytes.Equal(got[i], got[0]) {
				t.Errorf("instance %d: got %x, want %x", i, got[i], got[0])
			}
		}
	})
}

func TestADestroyedKeyStaysDestroyed(t *testing.T) {
	each(t, func(t *testing.T, address string, master []byte) {
		v, s := open(t, address, master, time.Now), t.Name()
		key(t, v, s, true)
		for range 2 { // twice is once
			destroy(t, v, s)
			refused(t, v, s, false)
			refused(t, v, s, true)
		}
		refused(t, open(t, address, master, time.Now), s, true)
	})
}

func TestASubjectDestroyedBeforeItHadAKeyNeverGetsOne(t *testing.T) {
	each(t, func(t *testing.T, address string, master []byte) {
		v := open(t, address, master, time.Now)
		destroy(t, v, t.Name())
		refused(t, v, t.Name(), true)
	})
}

func TestOtherInstancesRefuseADestroyedKeyWithinAMinute(t *testing.T) {
	each(t, func(t *testing.T, address string, master []byte) {
		c := newClock()
		one, two := open(t, address, master, c.Now), open(t, address, master, c.Now)
		key(t, one, t.Name(), true)
		key(t, two, t.Name(), false)
		destroy(t, one, t.Name())
		refused(t, one, t.Name(), false)
		c.pass(time.Minute)
		refused(t, two, t.Name(), false)
	})
}

func TestKeysAreTheSameInWhateverOrderTheyAreAskedFor(t *testing.T) {
	each(t, func(t *testing.T, address string, master []byte) {
		const subjects = 600 // more than are read ahead at a time
		subject := func(i int) string { return fmt.Sprint(t.Name(), i) }
		v, want := open(t, address, master, time.Now), make([][]byte, subjects)
		for i := range want {
			want[i] = key(t, v, subject(i), true)
		}
		gone := subject(subjects / 2)
		destroy(t, v, gone)
		for name, order := range map[string]func(i int) int{
			"as made": func(i int) int { return i },
			"back":    func(i int) int { return subjects - 1 - i },
			"mixed":   func(i int) int { return i * 7 % subjects },
		} {
			v := open(t, address, master, time.Now)
			for i := range want {
				n := order(i)
				if subject(n) == gone {
					refused(t, v, gone, false)
				} else if got := key(t, v, subject(n), false); !bytes.Equal(got, want[n]) {
					t.Fatalf("%s: key %d is %x, want %x", name, n, got, want[n])
				}
			}
		}
	})
}
