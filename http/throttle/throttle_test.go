package throttle_test

import (
	"net/netip"
	"testing"
	"time"

	"lieudit/http/throttle"
)

func TestABurstPassesThenThePace(t *testing.T) {
	t.Parallel()
	th, addr := throttle.New(time.Second/20, 100), netip.MustParseAddr("192.0.2.1")
	now, passed := time.Unix(1_800_000_000, 0), 0
	for range 1000 {
		if th.Allow(addr, "k", now) {
			passed++
		}
	}
	if passed != 100 {
		t.Errorf("a burst of %d passed, want 100", passed)
	}
	passed = 0
	for range 10_000 { // ten seconds, a thousand tries each
		now = now.Add(time.Millisecond)
		if th.Allow(addr, "k", now) {
			passed++
		}
	}
	if passed != 200 {
		t.Errorf("%d passed in ten seconds, want 200", passed)
	}
	now = now.Add(time.Hour)
	passed = 0
	for range 1000 {
		if th.Allow(addr, "k", now) {
			passed++
		}
	}
	if passed != 100 {
		t.Errorf("after an hour of rest a burst of %d passed, want 100", passed)
	}
}

func TestEachClientHasItsOwnLimit(t *testing.T) {
	t.Parallel()
	th, now := throttle.New(time.Second, 1), time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		addr, key string
		pass      bool
	}{
		{"192.0.2.1", "a", true},
		{"192.0.2.1", "a", false},
		{"::ffff:192.0.2.1", "a", false},
		{"192.0.2.1", "b", true},
		{"192.0.2.2", "a", true},
		{"2001:db8::1", "a", true},
		{"2001:db8::2", "a", false}, // of the same /64
		{"2001:db8:0:1::1", "a", true},
		{"fe80::1%eth0", "a", true},
		{"fe80::1%eth1", "a", false},
		{"", "a", true},
		{"", "a", false},
		{"0.0.0.0", "a", true}, // is not the absent address
	} {
		addr, _ := netip.ParseAddr(c.addr)
		if got := th.Allow(addr, c.key, now); got != c.pass {
			t.Errorf("%q with %q: %v, want %v", c.addr, c.key, got, c.pass)
		}
	}
}

func TestAClockSetBackLocksNobodyOut(t *testing.T) {
	t.Parallel()
	th, addr, now := throttle.New(time.Second, 5), netip.MustParseAddr("192.0.2.1"), time.Unix(1_800_000_000, 0)
	th.Allow(addr, "k", now)
	if !th.Allow(addr, "k", now.Add(-time.Hour)) {
		t.Error("refused an hour before")
	}
}

func TestIdleClientsTakeNoMemory(t *testing.T) {
	t.Parallel()
	th, now := throttle.New(time.Second/20, 100), time.Unix(1_800_000_000, 0)
	for i := range 100_000 {
		now = now.Add(time.Millisecond)
		th.Allow(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), "k", now)
	}
	if n := th.ClientCount(); n > 4096 {
		t.Errorf("%d callers are kept, want a few", n)
	}
}

func BenchmarkAllow(b *testing.B) {
	th, addr, now := throttle.New(time.Second/20, 100), netip.MustParseAddr("192.0.2.1"), time.Now()
	b.ReportAllocs()
	for b.Loop() {
		th.Allow(addr, "k", now)
	}
}

func TestADelayKeepsAClientToThePaceUpToItsLimit(t *testing.T) {
	t.Parallel()
	const limit = 2 * time.Second
	for _, c := range []struct {
		name     string
		requests int           // at once
		later    time.Duration // after them
		want     time.Duration // of one more
	}{
		{"the first", 0, 0, 0},
		{"the last of the burst", 4, 0, 0},
		{"the first after the burst", 5, 0, time.Second / 10},
		{"the fourth after the burst", 8, 0, 4 * time.Second / 10},
		{"the last within the limit", 24, 0, limit},
		{"beyond the limit", 25, 0, limit},
		{"far beyond the limit, which counts no more", 1000, limit, time.Second / 10},
		{"after a rest", 1000, time.Hour, 0},
		{"after the clock was set back", 1000, -time.Hour, 0},
	} {
		th, now := throttle.New(time.Second/10, 5), time.Unix(1_800_000_000, 0)
		for range c.requests {
			th.Delay("a", now, limit)
		}
		if got := th.Delay("a", now.Add(c.later), limit); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if got := th.Delay("b", now, limit); got != 0 {
			t.Errorf("%s: another client waits for %v", c.name, got)
		}
	}
	if got := new(throttle.Throttle).Delay("a", time.Now(), limit); got != 0 {
		t.Errorf("without a limit a client waits for %v", got)
	}
}
