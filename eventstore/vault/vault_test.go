package vault_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/eventstore/vault"
)

// fakeClock is a time that a test moves.
type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

func newFakeClock() *fakeClock {
	return &fakeClock{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func openVault(t *testing.T, address string, master []byte, now func() time.Time) *vault.Vault {
	t.Helper()
	v, err := vault.New(sqldbtest.DatabaseAddress(address), master, now)
	if err != nil {
		t.Fatal(err)
	}
	v.UseElapsedClock(now)
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

func mustKey(t *testing.T, v eventstore.Vault, subject string, create bool) []byte {
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

func requireDestroyed(t *testing.T, v eventstore.Vault, subject string, create bool) {
	t.Helper()
	if k, err := v.Key(t.Context(), subject, create); !errors.Is(err, eventstore.ErrDestroyed) {
		t.Errorf("key of %s: got %x, %v, want ErrDestroyed", subject, k, err)
	}
}

func mustDestroy(t *testing.T, v eventstore.Vault, subject string) {
	t.Helper()
	if err := v.DestroyKey(t.Context(), subject); err != nil {
		t.Fatal(err)
	}
}

// eachDatabase runs a test on both databases, with and without a master key.
func eachDatabase(t *testing.T, test func(t *testing.T, address string, master []byte)) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		for name, master := range map[string][]byte{"plain": nil, "wrapped": bytes.Repeat([]byte{7}, 32)} {
			t.Run(name, func(t *testing.T) { test(t, address, master) })
		}
	})
}

func TestAKeyIsMadeOnceAndKept(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string, master []byte) {
		v, s := openVault(t, address, master, time.Now), t.Name()
		if k, err := v.Key(t.Context(), s, false); !errors.Is(err, eventstore.ErrNoKey) {
			t.Errorf("before it is made: got %x, %v, want ErrNoKey", k, err)
		}
		want := mustKey(t, v, s, true)
		for _, create := range []bool{true, false} {
			if got := mustKey(t, openVault(t, address, master, time.Now), s, create); !bytes.Equal(got, want) {
				t.Errorf("create %v: got %x, want %x", create, got, want)
			}
		}
		if other := mustKey(t, v, s+"2", true); bytes.Equal(other, want) {
			t.Error("two subjects have the same key")
		}
	})
}

func TestInstancesThatMakeAKeyAtOnceAgreeOnIt(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string, master []byte) {
		got := make([][]byte, 8)
		var all sync.WaitGroup
		for i := range got {
			v := openVault(t, address, master, time.Now)
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
	eachDatabase(t, func(t *testing.T, address string, master []byte) {
		v, s := openVault(t, address, master, time.Now), t.Name()
		mustKey(t, v, s, true)
		for range 2 { // twice is once
			mustDestroy(t, v, s)
			requireDestroyed(t, v, s, false)
			requireDestroyed(t, v, s, true)
		}
		requireDestroyed(t, openVault(t, address, master, time.Now), s, true)
	})
}

func TestASubjectDestroyedBeforeItHadAKeyNeverGetsOne(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string, master []byte) {
		v := openVault(t, address, master, time.Now)
		mustDestroy(t, v, t.Name())
		requireDestroyed(t, v, t.Name(), true)
	})
}

func TestOtherInstancesRefuseADestroyedKeyWithinAMinute(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string, master []byte) {
		c := newFakeClock()
		one, two := openVault(t, address, master, c.Now), openVault(t, address, master, c.Now)
		mustKey(t, one, t.Name(), true)
		mustKey(t, two, t.Name(), false)
		mustDestroy(t, one, t.Name())
		requireDestroyed(t, one, t.Name(), false)
		c.advance(time.Minute)
		requireDestroyed(t, two, t.Name(), false)
	})
}

func TestKeysAreTheSameInWhateverOrderTheyAreAskedFor(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string, master []byte) {
		const subjects = 600 // more than are read ahead at a time
		subject := func(i int) string { return fmt.Sprint(t.Name(), i) }
		v, want := openVault(t, address, master, time.Now), make([][]byte, subjects)
		for i := range want {
			want[i] = mustKey(t, v, subject(i), true)
		}
		gone := subject(subjects / 2)
		mustDestroy(t, v, gone)
		for name, order := range map[string]func(i int) int{
			"as made": func(i int) int { return i },
			"back":    func(i int) int { return subjects - 1 - i },
			"mixed":   func(i int) int { return i * 7 % subjects },
		} {
			v := openVault(t, address, master, time.Now)
			for i := range want {
				n := order(i)
				if subject(n) == gone {
					requireDestroyed(t, v, gone, false)
				} else if got := mustKey(t, v, subject(n), false); !bytes.Equal(got, want[n]) {
					t.Fatalf("%s: key %d is %x, want %x", name, n, got, want[n])
				}
			}
		}
	})
}
