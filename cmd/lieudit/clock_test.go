package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/cmd/lieudit/service"
	"lieudit/schemas/body"
)

// machineClock is the clock of a machine on 26 November. It runs, and is set by hand.
type machineClock struct {
	begun        time.Time
	slept, wrong atomic.Int64 // nanoseconds
}

func newMachineClock() *machineClock { return &machineClock{begun: time.Now()} }

func (m *machineClock) elapsed() time.Duration {
	return time.Since(m.begun) + time.Duration(m.slept.Load())
}

func (m *machineClock) wall() time.Time {
	return time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC).Add(m.elapsed() + time.Duration(m.wrong.Load()))
}

// startServiceAt starts a service on a data folder by the machine's clock.
func (m *machineClock) startServiceAt(t *testing.T, data string, change func(*service.Config)) *testService {
	t.Helper()
	return startService(t, func(c *service.Config) {
		c.Data, c.Now, c.Elapsed = data, m.wall, m.elapsed
		change(c)
	})
}

func asConfigured(*service.Config) {}

const (
	fortyDays    = 40 * 24 * time.Hour
	clockQuota   = 300
	novemberDays = "2026-11-26" // the first of the account's period
	laterDays    = "2026-12-26" // and of the one that a clock 40 days ahead is in
)

// openClockAccount opens the account of these tests and returns its key.
func (svc *testService) openClockAccount(t *testing.T) (key string) {
	t.Helper()
	svc.runCommand(t, "account open Gévaudan --plan DISCOVERY --id counted --quota 300")
	return strings.TrimSpace(svc.runCommand(t, "key issue counted"))
}

// count sends requests that must be served, and returns what the last one shows of the quota.
func (svc *testService) count(t *testing.T, key string, requests int) (shown body.MyQuota) {
	t.Helper()
	for served := 0; served < requests; {
		var me body.Me
		switch status := svc.getJSON(t, key, "/me", &me); status {
		case http.StatusOK:
			served++
			shown = me.Quota
		case http.StatusServiceUnavailable: // a busy machine has no time to check keys
		default:
			t.Fatalf("/me: %d after %d requests", status, served)
		}
	}
	return shown
}

// checkQuota checks that /me shows what is used of one period and its first day.
func checkQuota(t *testing.T, q body.MyQuota, used int64, first string) {
	t.Helper()
	if *q.Used != used || !strings.HasPrefix(q.Start.Format(time.DateOnly), first) || q.End.Before(q.Start) {
		t.Errorf("/me shows %d used from %v to %v, want %d from %s", *q.Used, q.Start, q.End, used, first)
	}
}

// usageOfPeriod is what the account has used in a period.
func (svc *testService) usageOfPeriod(t *testing.T, first string) int64 {
	t.Helper()
	status, text := svc.sendToArea(t, svc.operator, "GET /accounts/counted/usage?period="+first, "")
	var shown body.Usage
	if err := json.Unmarshal([]byte(text), &shown); err != nil || status != http.StatusOK {
		t.Fatalf("usage of %s: %d %s", first, status, text)
	}
	return shown.Total
}

// A clock that is 40 days ahead for a moment opens no period: nothing is counted meanwhile, and then the quota is what it was.
func TestAClockAheadForAMomentCountsNothing(t *testing.T) {
	t.Parallel()
	m, data := newMachineClock(), t.TempDir()
	svc := m.startServiceAt(t, data, asConfigured)
	key := svc.openClockAccount(t)
	checkQuota(t, svc.count(t, key, 100), 100, novemberDays)

	m.wrong.Store(int64(fortyDays))
	for _, request := range []string{"GET /me", "GET /address/verify?q=1+rue+basse+mende"} {
		if status, text := svc.send(t, key, request, ""); status != http.StatusServiceUnavailable {
			t.Errorf("%s: %d %s with a clock 40 days ahead, want 503", request, status, text)
		}
	}
	if reason := svc.readiness(t).parts["clock"]; svc.isReady(t) || !strings.Contains(reason, "2027-01-05T") || !strings.Contains(reason, "2026-11-26T") {
		t.Errorf("readiness says %q of the clock", reason)
	}
	if status, text := svc.send(t, key, "GET /version", ""); status != http.StatusOK {
		t.Errorf("/version: %d %s", status, text)
	}
	if got := svc.usageOfPeriod(t, novemberDays); got != 100 {
		t.Errorf("the area shows %d used, want 100", got)
	}
	issued := svc.runCommand(t, "account show counted --json") // requests that are not counted still work
	if !strings.Contains(issued, "2026-11-26") {
		t.Errorf("the account is shown as %s", issued)
	}

	m.wrong.Store(0)
	waitUntil(t, "the service is ready again", func() bool { return svc.isReady(t) })
	checkQuota(t, svc.count(t, key, 50), 150, novemberDays)
	svc.stop()
	svc = m.startServiceAt(t, data, asConfigured)
	checkQuota(t, svc.count(t, key, 1), 151, novemberDays)
	if got := 151 + svc.exhaustQuota(t, key); got != clockQuota {
		t.Errorf("%d requests were served, want %d", got, clockQuota)
	}
	svc.stop()
	if got := m.startServiceAt(t, data, asConfigured).exhaustQuota(t, key); got != 0 {
		t.Errorf("%d more were served after a restart", got)
	}
}

// A restart during the doubt does not end it: a supervisor may restart what is not ready.
func TestARestartDoesNotAcceptAClock(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/sys/kernel/random/boot_id"); err != nil {
		t.Skip("this system does not name its boots")
	}
	data := t.TempDir()
	var wrong atomic.Int64
	start := func(accepts bool) *testService {
		return startServiceUnready(t, func(c *service.Config) {
			c.Data, c.AcceptClock = data, accepts
			c.Now = func() time.Time { return time.Now().Add(time.Duration(wrong.Load())) }
		})
	}
	svc := start(false)
	waitUntil(t, "the service is ready", func() bool { return svc.isReady(t) })
	key := svc.openClockAccount(t)
	svc.stop()
	wrong.Store(int64(fortyDays))
	svc = start(false)
	if status := svc.statusOfMe(t, key); status != http.StatusServiceUnavailable || svc.readiness(t).parts["clock"] == "ok" {
		t.Errorf("/me: %d, and the clock is %s", status, svc.readiness(t).parts["clock"])
	}
	svc.stop()
	for _, accepts := range []bool{true, false} { // once is enough
		svc = start(accepts)
		waitUntil(t, "the service is ready with an accepted clock", func() bool { return svc.isReady(t) })
		svc.count(t, key, 1)
		svc.stop()
	}
}

// makeLogAhead makes a data folder as a program leaves it that has followed a clock 40 days ahead: 100 requests are counted in November,
// and others in the later period, whose times lie ahead.
func makeLogAhead(t *testing.T, m *machineClock, data string, later int) (key string) {
	t.Helper()
	svc := m.startServiceAt(t, data, asConfigured)
	key = svc.openClockAccount(t)
	svc.count(t, key, 100)
	svc.stop()
	m.wrong.Store(int64(fortyDays))
	svc = m.startServiceAt(t, data, func(c *service.Config) { c.AcceptClock = true })
	checkQuota(t, svc.count(t, key, later), int64(later), laterDays)
	svc.stop()
	m.wrong.Store(0)
	return key
}

// Requests that an earlier program has counted ahead are void once an operator says that the clock is right: November counts to its quota, and the
// later period from zero when it begins.
func TestAPeriodOpenedAheadIsVoid(t *testing.T) {
	t.Parallel()
	m, data := newMachineClock(), t.TempDir()
	key := makeLogAhead(t, m, data, 253)
	svc := m.startServiceAt(t, data, asConfigured)
	if reason := svc.readyComponent(t, "log times"); !strings.Contains(reason, "2027-01-05T") || !strings.Contains(reason, "2026-11-26T") {
		t.Errorf("readiness says %q of a log that is ahead", reason)
	}
	svc.awaitPeriodsAhead(t)
	checkQuota(t, svc.count(t, key, 1), 101, novemberDays)
	if got := svc.usageOfPeriod(t, laterDays); got != 253 {
		t.Errorf("%d requests are left of 253, although nobody has said that the clock is right", got)
	}
	svc.stop()
	svc = m.startServiceAt(t, data, func(c *service.Config) { c.AcceptClock = true })
	if got := 101 + svc.exhaustQuota(t, key); got != clockQuota {
		t.Errorf("%d requests were served in November, want %d", got, clockQuota)
	}
	waitUntil(t, "what was counted ahead is taken back", func() bool { return svc.usageOfPeriod(t, laterDays) == 0 })
	if code, found := svc.reconcileUsage(t); code != 0 {
		t.Errorf("reconciliation: %+v", found)
	}
	m.slept.Store(int64(31 * 24 * time.Hour))
	checkQuota(t, svc.count(t, key, 1), 1, laterDays)
	svc.stop()
	svc = m.startServiceAt(t, data, asConfigured)
	if got := 1 + svc.exhaustQuota(t, key); got != clockQuota {
		t.Errorf("%d requests were served in the later period, want %d", got, clockQuota)
	}
	if got := svc.usageOfPeriod(t, novemberDays); got != clockQuota {
		t.Errorf("%d requests are billed in November, want %d", got, clockQuota)
	}
}

// A clock that is behind takes nothing back, whatever the log shows of the days between: readiness names the period that it has not come
// to, which is the present one.
func TestAClockBehindTakesNothingBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		counted []int // days after the first on which requests were counted, ten each
		behind  int   // days
	}{
		"days between show it":                {[]int{20, 31}, 31},
		"nothing was counted between":         {[]int{31}, 31},
		"before the first day of the log":     {[]int{31}, 400},
		"as of the beginning of all machines": {[]int{31}, 20_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, data := newMachineClock(), t.TempDir()
			svc := m.startServiceAt(t, data, asConfigured)
			key := svc.openClockAccount(t)
			svc.count(t, key, 1)
			for _, days := range c.counted {
				m.slept.Store(int64(days) * int64(24*time.Hour))
				svc.count(t, key, 10)
			}
			svc.stop()
			m.wrong.Store(-int64(c.behind) * int64(24*time.Hour)) // a new boot, with a clock that has stood still or begun anew
			if err := os.Remove(filepath.Join(data, "clock")); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			svc = m.startServiceAt(t, data, asConfigured)
			svc.awaitPeriodsAhead(t)
			svc.count(t, key, 1)
			if got := svc.usageOfPeriod(t, laterDays); got != 10 {
				t.Errorf("%d are left of the 10 requests of the present period", got)
			}
			svc.stop()
			m.wrong.Store(0)
			checkQuota(t, m.startServiceAt(t, data, asConfigured).count(t, key, 1), 11, laterDays)
		})
	}
}

// awaitPeriodsAhead waits until readiness names a period of the account as one that has not begun.
func (svc *testService) awaitPeriodsAhead(t *testing.T) {
	t.Helper()
	waitUntil(t, "readiness names the period ahead", func() bool {
		reason := svc.readyComponent(t, "log times")
		return strings.Contains(reason, "contract counted from") && strings.Contains(reason, "--accept-clock")
	})
}
