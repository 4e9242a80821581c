// Package clock is the wall clock that stamps events and decides the periods of usage. It never follows a jump of the
// machine's clock, because requests counted in a wrong period, and times on the log that are ahead, cannot be corrected
// later.
//
//	Sources.Wall ────┐
//	Sources.Elapsed ─┼──> Clock.Read ──> the time, and nil or a *DoubtError
//	Sources.Slept ───┘        ▲
//	a log's own times ──> Clock.BeginComparison, Comparison.End      only if another machine stamps the log
//
// The wall clock is compared with elapsed time. Both run at the same rate, except for the small corrections of NTP, which are
// followed one by one. A difference of more than MaxJump is a jump: until the two agree again, time continues by elapsed time
// and the clock is in doubt. Time that the machine slept counts as elapsed time. At its start a Clock believes the wall
// clock, unless it has a file in which an earlier process of the same boot recorded when the machine booted.
package clock

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// MaxJump is how far the wall clock may be from the time expected by elapsed time or by the log's own times.
const MaxJump = 5 * time.Minute

// followStep is the smallest correction of the wall clock that a Clock follows. Smaller ones add up until they reach it.
const followStep = time.Second

// Sources are the clocks that a Clock reads. Many goroutines call them.
type Sources struct {
	Wall func() time.Time // nil: time.Now
	// Elapsed is the time since a fixed instant. It may stop while the machine sleeps if Slept returns for how long. Nil: the
	// monotonic clock, and Slept and Boot of this machine.
	Elapsed func() time.Duration
	Slept   func() time.Duration                  // how long the machine has slept so far; nil: Elapsed includes that
	Boot    func() (id string, age time.Duration) // an id of the machine's last boot, and how long ago it was; nil or "": unknown
}

// withDefaults fills in the clocks of this machine.
func (s Sources) withDefaults() Sources {
	if s.Elapsed == nil {
		start := time.Now()
		s.Elapsed, s.Slept, s.Boot = func() time.Duration { return time.Since(start) }, sleptTime, currentBoot
	}
	if s.Slept == nil {
		s.Slept = func() time.Duration { return 0 }
	}
	if s.Boot == nil {
		s.Boot = func() (string, time.Duration) { return "", 0 }
	}
	return s
}

// reader returns a function that reads the wall clock and then elapsed time. One reading of time.Now has both if neither was replaced.
func (s Sources) reader() func() (wall time.Time, elapsed time.Duration) {
	switch {
	case s.Wall == nil && s.Elapsed == nil:
		start := time.Now()
		return func() (time.Time, time.Duration) {
			now := time.Now()
			return now, now.Sub(start)
		}
	case s.Wall == nil:
		s.Wall = time.Now
	}
	wall, elapsed := s.Wall, s.withDefaults().Elapsed
	return func() (time.Time, time.Duration) { return wall(), elapsed() }
}

// Options configure a Clock. The zero value makes a Clock of this machine.
type Options struct {
	Sources
	// IsCompared: another machine stamps the log. The clock is in doubt until the first comparison, and whenever it differs from the
	// log's own times by more than MaxJump.
	IsCompared bool
	// Accept: an operator has confirmed that the wall clock is right. The file is ignored, and comparisons change nothing.
	Accept bool
	// File stores when the machine booted, by this clock, so that a restart does not end a doubt. "": nothing is stored.
	File string
	Log  *slog.Logger // gets one line when a doubt begins and one when it ends; nil: slog.Default()
}

// Clock is a wall clock that does not jump. It is safe for concurrent use.
type Clock struct {
	read       func() (wall time.Time, elapsed time.Duration)
	slept      func() time.Duration
	boot       func() (id string, age time.Duration)
	isCompared bool
	file       string
	log        *slog.Logger

	// offset is how far the wall clock is ahead of elapsed time, in nanoseconds. It changes with mu held.
	offset atomic.Int64
	doubt  atomic.Pointer[error] // nil: the wall clock is believed

	mu          sync.Mutex
	sleptBefore time.Duration // how long the machine had slept when offset was set
	hasCompared bool
}

// New returns a Clock that believes the wall clock, or the file of an earlier process of the same boot if there is one.
func New(o Options) *Clock {
	machine := o.Sources.withDefaults()
	c := &Clock{read: o.Sources.reader(), slept: machine.Slept, boot: machine.Boot, isCompared: o.IsCompared && !o.Accept, file: o.File, log: o.Log}
	if c.log == nil {
		c.log = slog.Default()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, elapsed := c.readTogether()
	c.sleptBefore = c.slept()
	if bootedAt, ok := c.loadBootTime(); ok && !o.Accept {
		_, age := c.boot()
		wall = bootedAt.Add(age)
	}
	c.offset.Store(wall.UnixNano() - int64(elapsed))
	if c.isCompared {
		c.setDoubt(ErrNotCompared)
	}
	if _, err := c.checkWall(); err == nil {
		c.saveBootTime()
	}
	return c
}

// watchInterval is how often Watch reads.
const watchInterval = time.Second

// Watch reads the clock until ctx ends, so that corrections are followed one by one even if nothing else reads it.
func (c *Clock) Watch(ctx context.Context) {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.Read()
		}
	}
}

// Now returns the time of the wall clock. In doubt it returns the time when the wall clock was last believed, plus the time elapsed
// since.
func (c *Clock) Now() time.Time {
	now, _ := c.Read()
	return now
}

// Check returns nil while the wall clock is believed, and otherwise why it is not: a *DoubtError, or ErrNotCompared.
func (c *Clock) Check() error {
	_, err := c.Read()
	return err
}

// Read is Now and Check in one call. Every request calls it: without a correction or a doubt it takes no lock.
func (c *Clock) Read() (time.Time, error) {
	wall, elapsed := c.read()
	difference := wall.UnixNano() - int64(elapsed) - c.offset.Load()
	if difference < int64(followStep) && difference > -int64(followStep) && c.doubt.Load() == nil {
		return wall, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.checkWall()
}

// DoubtError: the wall clock is not believed.
type DoubtError struct {
	Wall     time.Time // the time of the wall clock
	Expected time.Time // the time that it should have
	IsLogs   bool      // Expected follows from the log's own times; otherwise from elapsed time alone
}

func (e *DoubtError) Error() string {
	by := "by the time that has passed since it was right"
	if e.IsLogs {
		by = "by the times of the event log"
	}
	return fmt.Sprintf("this machine's clock says %s, and should say %s %s: nothing is counted until they agree. Set the clock, or "+
		"start with --accept-clock if it is right", formatTime(e.Wall), formatTime(e.Expected), by)
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// checkWall compares the wall clock with elapsed time. It follows a small correction, begins a doubt after a jump, and ends
// the doubt once the two agree. The caller holds c.mu.
func (c *Clock) checkWall() (time.Time, error) {
	wall, elapsed := c.readTogether()
	slept := c.slept()
	if (slept - c.sleptBefore).Abs() < followStep { // not sleep: the machine's clocks are read one after the other
		slept = c.sleptBefore
	}
	offset := c.offset.Load() + int64(slept-c.sleptBefore)
	difference := time.Duration(wall.UnixNano() - int64(elapsed) - offset)
	if difference.Abs() > MaxJump {
		c.setOffset(offset, slept)
		expected := wall.Add(-difference).Round(0)
		doubt := &DoubtError{Wall: wall, Expected: expected, IsLogs: c.hasCompared}
		c.setDoubt(doubt)
		return expected, doubt
	}
	if difference.Abs() >= followStep {
		offset += int64(difference)
	}
	c.setOffset(offset, slept)
	if c.isCompared && !c.hasCompared {
		return wall, ErrNotCompared
	}
	c.endDoubt(wall)
	return wall, nil
}

// readTogether reads the wall clock and elapsed time at the same instant: it reads again if much time passes between the two readings.
func (c *Clock) readTogether() (time.Time, time.Duration) {
	for {
		_, before := c.read()
		wall, elapsed := c.read()
		if elapsed-before < followStep/10 {
			return wall, elapsed
		}
	}
}

// setOffset sets how far the wall clock is expected to be ahead of elapsed time from now on. The caller holds c.mu.
func (c *Clock) setOffset(offset int64, slept time.Duration) {
	hasChanged := offset != c.offset.Load()
	c.offset.Store(offset)
	c.sleptBefore = slept
	if hasChanged {
		c.saveBootTime()
	}
}

// setDoubt records why the wall clock is not believed. Only the first reason of a doubt is logged.
func (c *Clock) setDoubt(reason error) {
	if c.doubt.Swap(&reason) == nil && reason != ErrNotCompared {
		c.log.Warn("the clock is not believed", "reason", reason)
	}
}

func (c *Clock) endDoubt(wall time.Time) {
	if ended := c.doubt.Swap(nil); ended != nil && *ended != ErrNotCompared {
		c.log.Info("the clock is believed again", "time", wall)
	}
}
