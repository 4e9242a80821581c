package throttle_test

import (
	"fmt"
	"testing"
	"time"

	"lieudit/http/throttle"
)

func TestABurstPassesThenThePace(t *testing.T) {
	t.Parallel()
	th, c := throttle.New(20, 100), throttle.ParseClient("192.0.2.1:999", "k")
	now, passed := time.Unix(1_800_000_000, 0), 0
	for range 1000 {
		if th.Allow(c, now) {
			passed++
		}
	}
	if passed != 100 {
		t.Errorf("a burst of %d passed, want 100", passed)
	}
	passed = 0
	for range 10_000 { // ten seconds, a thousand tries each
		now = now.Add(time.Millisecond)
		if th.Allow(c, now) {
			passed++
		}
	}
	if passed != 200 {
		t.Errorf("%d passed in ten seconds, want 200", passed)
	}
	now = now.Add(time.Hour)
	passed = 0
	for range 1000 {
		if th.Allow(c, now) {
			passed++
		}
	}
	if passed != 100 {
		t.Errorf("after an hour of rest a burst of %d passed, want 100", passed)
	}
}

func TestEachClientHasItsOwnLimit(t *testing.T) {
	t.Parallel()
	th, now := throttle.New(1, 1), time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		remote, key string
		pass        bool
	}{
		{"192.0.2.1:1", "a", true},
		{"192.0.2.1:2", "a", false}, // another port is the same caller
		{"[::ffff:192.0.2.1]:3", "a", false},
		{"192.0.2.1:1", "b", true},
		{"192.0.2.2:1", "a", true},
		{"[2001:db8::1]:1", "a", true},
		{"[2001:db8::2]:1", "a", false}, // of the same /64
		{"[2001:db8:0:1::1]:1", "a", true},
		{"[fe80::1%eth0]:1", "a", true},
		{"[fe80::1%eth1]:1", "a", false},
		{"@", "a", true},
		{"", "a", false},
	} {
		if got := th.Allow(throttle.ParseClient(c.remote, c.key), now); got != c.pass {
			t.Errorf("%q with %q: %v, want %v", c.remote, c.key, got, c.pass)
		}
	}
}

func TestAClockSetBackLocksNobodyOut(t *testing.T) {
	t.Parallel()
	th, c, now := throttle.New(1, 5), throttle.ParseClient("192.0.2.1:1", "k"), time.Unix(1_800_000_000, 0)
	th.Allow(c, now)
	if !th.Allow(c, now.Add(-time.Hour)) {
		t.Error("refused an hour before")
	}
}

func TestIdleClientsTakeNoMemory(t *testing.T) {
	t.Parallel()
	th, now := throttle.New(20, 100), time.Unix(1_800_000_000, 0)
	for i := range 100_000 {
		now = now.Add(time.Millisecond)
		th.Allow(throttle.ParseClient(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255), "k"), now)
	}
	if n := th.ClientCount(); n > 4096 {
		t.Errorf("%d callers are kept, want a few", n)
	}
}

func BenchmarkAllow(b *testing.B) {
	th, c, now := throttle.New(20, 100), throttle.ParseClient("192.0.2.1:999", "k"), time.Now()
	b.ReportAllocs()
	for b.Loop() {
		th.Allow(c, now)
	}
}
