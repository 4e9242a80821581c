package clock_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"lieudit/eventstore/clock"
)

// compare appends an event to a log whose clock is ahead of the machine's, which takes a while.
func (m *machine) compare(c *clock.Clock, ahead, takes time.Duration) error {
	b := c.BeginComparison()
	m.run(takes / 2)
	recorded := m.wall.Add(ahead)
	m.run(takes / 2)
	return b.End(recorded)
}

func newComparedClock(m *machine) *clock.Clock {
	return clock.New(clock.Options{Sources: m.sources(), IsCompared: true, Log: slog.New(slog.DiscardHandler)})
}

func TestAComparedClockIsBelievedOnceItAgreesWithTheLog(t *testing.T) {
	t.Parallel()
	m := newMachine()
	c := newComparedClock(m)
	for range 2 { // asking does not change it
		if c.Check() == nil {
			t.Error("believed without a comparison")
		}
	}
	if err := m.compare(c, 4*time.Minute, time.Second); err != nil {
		t.Error(err)
	}
	m.check(t, c, 0)
	m.set(40 * day)
	m.check(t, c, 40*day)
	if err := m.compare(c, 0, time.Second); err != nil { // the log's clock agrees
		t.Error(err)
	}
	m.check(t, c, 0)
}

// The log is right: time continues by its times, and the clock returns to them.
func TestAClockThatDiffersFromTheLogsIsNotBelieved(t *testing.T) {
	t.Parallel()
	for _, wrong := range []time.Duration{6 * time.Minute, 40 * day, -6 * time.Minute, -40 * day} {
		m := newMachine()
		c := newComparedClock(m)
		m.set(wrong)
		for range 3 {
			err := m.compare(c, -wrong, 0)
			if doubt := new(clock.DoubtError); !errors.As(err, &doubt) || !doubt.IsLogs {
				t.Errorf("wrong by %v: %v", wrong, err)
			}
			m.check(t, c, wrong)
			m.run(time.Hour)
			m.check(t, c, wrong)
		}
		m.set(-wrong)
		m.check(t, c, 0)
	}
}

// Only what the wall clock is at the end of a comparison counts.
func TestAClockThatJumpsDuringAComparisonIsNotBelieved(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ before, during time.Duration }{
		{0, 40 * day}, {0, -40 * day}, {-8 * time.Minute, 40 * day}, {40 * day, -80 * day}, {-40 * day, 40 * day}, {8 * time.Minute, -8 * time.Minute},
	} {
		m := newMachine()
		compared := newComparedClock(m)
		if err := m.compare(compared, 0, time.Second); err != nil {
			t.Fatal(err)
		}
		m.set(c.before)
		b := compared.BeginComparison()
		m.set(c.during)
		wrong := c.before + c.during
		err := b.End(m.wall.Add(-wrong))
		if (err == nil) != (wrong == 0) {
			t.Errorf("wrong by %v, then by %v: %v", c.before, wrong, err)
		}
		m.check(t, compared, wrong)
	}
}

// A machine that wakes up cannot tell whether the event was recorded before it slept.
func TestAnAppendDuringWhichTheMachineSleptTellsNothing(t *testing.T) {
	t.Parallel()
	m := newMachine()
	c := newComparedClock(m)
	if err := m.compare(c, 0, time.Second); err != nil {
		t.Fatal(err)
	}
	b, recorded := c.BeginComparison(), m.wall
	m.sleep(time.Hour)
	if err := b.End(recorded); !errors.Is(err, clock.ErrTooSlow) {
		t.Errorf("got %v", err)
	}
	m.check(t, c, 0)
}

func TestAnAppendThatTookLongTellsNothing(t *testing.T) {
	t.Parallel()
	m := newMachine()
	c := newComparedClock(m)
	if err := m.compare(c, 0, 2*time.Minute); !errors.Is(err, clock.ErrTooSlow) || c.Check() == nil {
		t.Errorf("got %v, then %v", err, c.Check())
	}
	if err := m.compare(c, 30*time.Second, time.Minute); err != nil {
		t.Error(err)
	}
	m.check(t, c, 0)
}

func TestAnAcceptedClockIsNotCompared(t *testing.T) {
	t.Parallel()
	m := newMachine()
	c := clock.New(clock.Options{Sources: m.sources(), IsCompared: true, Accept: true})
	if err := m.compare(c, 40*day, time.Second); err != nil || c.IsCompared() {
		t.Errorf("got %v, is compared: %v", err, c.IsCompared())
	}
	m.check(t, c, 0)
}
