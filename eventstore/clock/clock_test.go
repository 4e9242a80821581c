package clock_test

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/eventstore/clock"
)

// machine is a machine whose clocks are set manually.
type machine struct {
	mu             sync.Mutex
	wall           time.Time
	elapsed, slept time.Duration
	boot           string
}

func newMachine() *machine {
	return &machine{wall: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC), boot: "first", elapsed: time.Hour}
}

func (m *machine) sources() clock.Sources {
	return clock.Sources{
		Wall:    func() time.Time { m.mu.Lock(); defer m.mu.Unlock(); return m.wall },
		Elapsed: func() time.Duration { m.mu.Lock(); defer m.mu.Unlock(); return m.elapsed },
		Slept:   func() time.Duration { m.mu.Lock(); defer m.mu.Unlock(); return m.slept },
		Boot:    func() (string, time.Duration) { m.mu.Lock(); defer m.mu.Unlock(); return m.boot, m.elapsed + m.slept },
	}
}

// run lets time pass.
func (m *machine) run(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wall, m.elapsed = m.wall.Add(d), m.elapsed+d
}

// sleep makes the machine sleep: only its wall clock and its count of sleep advance.
func (m *machine) sleep(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wall, m.slept = m.wall.Add(d), m.slept+d
}

// set sets the wall clock forward, or back.
func (m *machine) set(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wall = m.wall.Add(d)
}

// check checks the error of a clock: it has the wall clock's time and by how much that is wrong, or is nil.
func (m *machine) check(t *testing.T, c *clock.Clock, wantWrong time.Duration) {
	t.Helper()
	now, err := c.Read()
	if want := m.wall.Add(-wantWrong); !now.Equal(want) {
		t.Errorf("now is %v, want %v", now, want)
	}
	doubt := new(clock.DoubtError)
	switch {
	case wantWrong == 0 && err != nil:
		t.Errorf("in doubt: %v", err)
	case wantWrong != 0 && (!errors.As(err, &doubt) || doubt.Wall.Sub(doubt.Expected) != wantWrong):
		t.Errorf("got %v, want a doubt of %v", err, wantWrong)
	}
	if again := c.Check(); (again == nil) != (err == nil) {
		t.Errorf("checked: %v, after %v", again, err)
	}
}

const day = 24 * time.Hour

func TestAJumpIsNotFollowedUntilTheClocksAgree(t *testing.T) {
	t.Parallel()
	for name, jump := range map[string]time.Duration{
		"ahead": 40 * day, "back": -40 * day, "a little too much": clock.MaxJump + time.Second, "a little too much back": -clock.MaxJump - time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine()
			c := clock.New(clock.Options{Sources: m.sources(), Log: slog.New(slog.DiscardHandler)})
			m.check(t, c, 0)
			m.set(jump)
			m.check(t, c, jump)
			m.run(3 * time.Hour)
			m.check(t, c, jump)
			m.sleep(2 * day)
			m.check(t, c, jump)
			m.set(-jump + 2*time.Minute)
			m.check(t, c, 0)
			m.run(time.Hour)
			m.check(t, c, 0)
		})
	}
}

func TestSmallCorrectionsAreFollowedAndDoNotAddUp(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{4 * time.Minute, -4 * time.Minute, 900 * time.Millisecond, -900 * time.Millisecond, time.Millisecond} {
		m := newMachine()
		c := clock.New(clock.Options{Sources: m.sources(), Log: slog.New(slog.DiscardHandler)})
		for range 1000 {
			m.set(step)
			m.run(time.Second)
			m.check(t, c, 0)
		}
	}
}

func TestASleepIsNotAJump(t *testing.T) {
	t.Parallel()
	m := newMachine()
	c := clock.New(clock.Options{Sources: m.sources(), Log: slog.New(slog.DiscardHandler)})
	for _, slept := range []time.Duration{time.Second / 2, time.Minute, 40 * day} {
		m.sleep(slept)
		m.check(t, c, 0)
		m.run(time.Second)
		m.check(t, c, 0)
	}
	m.set(time.Hour) // the sleep does not excuse what comes after it
	m.check(t, c, time.Hour)
}

// A Clock without sources uses the monotonic clock of package time as elapsed time.
func TestAClockOfThisMachineIsBelieved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var set time.Duration
		c := clock.New(clock.Options{Sources: clock.Sources{Wall: func() time.Time { return time.Now().Add(set) }}, Log: slog.New(slog.DiscardHandler)})
		for range 3 {
			time.Sleep(40 * day)
			if now, err := c.Read(); err != nil || !now.Equal(time.Now()) {
				t.Errorf("%v, %v", now, err)
			}
		}
		set = 40 * day
		if now, err := c.Read(); err == nil || !now.Equal(time.Now()) {
			t.Errorf("after a jump: %v, %v", now, err)
		}
	})
}

// Corrections that nobody reads in between would look like a jump.
func TestWatchFollowsCorrectionsOneByOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var set time.Duration
		c := clock.New(clock.Options{Sources: clock.Sources{Wall: func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(set)
		}}, Log: slog.New(slog.DiscardHandler)})
		var watching sync.WaitGroup
		watching.Go(func() { c.Watch(t.Context()) })
		for range 10 {
			mu.Lock()
			set += 4 * time.Minute
			mu.Unlock()
			time.Sleep(2 * time.Second)
		}
		if err := c.Check(); err != nil {
			t.Error(err)
		}
	})
}

func TestADoubtIsToldOnceWhenItBeginsAndOnceWhenItEnds(t *testing.T) {
	t.Parallel()
	m, told := newMachine(), new(bytes.Buffer)
	c := clock.New(clock.Options{Sources: m.sources(), Log: slog.New(slog.NewTextHandler(told, nil))})
	m.set(40 * day)
	err := c.Check()
	c.Check()
	m.set(-40 * day)
	c.Check()
	c.Check()
	if lines := strings.Count(told.String(), "\n"); lines != 2 {
		t.Errorf("%d lines:\n%s", lines, told)
	}
	for _, want := range []string{"2026-11-26T12:00:00Z", "2027-01-05T12:00:00Z", "--accept-clock"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

// A restart in the same boot does not end a doubt; a new boot and an operator's word do.
func TestARestartBelievesWhatWasBelievedBefore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		between   func(*machine)
		isAccept  bool
		wantWrong time.Duration
	}{
		"clock is right":                   {func(m *machine) { m.run(day) }, false, 0},
		"clock is ahead":                   {func(m *machine) { m.set(40 * day) }, false, 40 * day},
		"clock is ahead after a sleep":     {func(m *machine) { m.sleep(day); m.set(40 * day) }, false, 40 * day},
		"clock is ahead, and accepted":     {func(m *machine) { m.set(40 * day) }, true, 0},
		"machine was off":                  {func(m *machine) { m.boot, m.elapsed = "second", time.Minute; m.set(40 * day) }, false, 0},
		"machine does not name its boot":   {func(m *machine) { m.boot = ""; m.set(40 * day) }, false, 0},
		"machine slept while it was ended": {func(m *machine) { m.sleep(9 * day) }, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, o := newMachine(), clock.Options{File: filepath.Join(t.TempDir(), "clock"), Log: slog.New(slog.DiscardHandler)}
			o.Sources = m.sources()
			before := clock.New(o)
			m.set(3 * time.Minute) // a correction is kept, too
			m.check(t, before, 0)
			m.set(time.Hour) // a doubt is not
			m.check(t, before, time.Hour)
			m.set(-time.Hour)
			c.between(m)
			o.Accept = c.isAccept
			for range 2 { // and likewise after the next restart
				m.check(t, clock.New(o), c.wantWrong)
			}
		})
	}
}
