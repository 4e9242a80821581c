package clock

import (
	"errors"
	"time"
)

// ErrNotCompared is the doubt of a clock that has to agree with a log's own times and was not compared with them yet.
var ErrNotCompared = errors.New("this machine's clock was not compared with the times of the event log yet")

// IsCompared reports whether the clock has to agree with a log's own times: then somebody must call Compare now and then.
func (c *Clock) IsCompared() bool { return c.isCompared }

// Comparison is an event that is appended to learn the log's time.
type Comparison struct {
	clock   *Clock
	wall    time.Time
	elapsed time.Duration
}

// BeginComparison is called before an event is appended.
func (c *Clock) BeginComparison() Comparison {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, elapsed := c.readTogether()
	return Comparison{c, wall, elapsed}
}

// maxComparison is how long an append may take for its time to tell something.
const maxComparison = time.Minute

// ErrTooSlow: the append of a comparison took so long that its time tells nothing.
var ErrTooSlow = errors.New("the event log took too long to tell its time")

// End says when the log recorded the event that was appended since. The log is right: time continues by it where the wall clock
// differs by more than MaxJump, and a wall clock that agrees with it is believed whatever elapsed time says. The error is ErrTooSlow, or
// the *DoubtError that begins or goes on.
func (b Comparison) End(recorded time.Time) error {
	c := b.clock
	if !c.isCompared {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, elapsed := c.readTogether()
	if elapsed-b.elapsed > maxComparison {
		return ErrTooSlow
	}
	c.hasCompared = true
	// The event was recorded between the two readings of the wall clock if that is right.
	difference := max(recorded.Sub(wall), b.wall.Sub(recorded), 0)
	offset := wall.UnixNano() - int64(elapsed)
	if difference > MaxJump {
		offset = recorded.UnixNano() - int64(b.elapsed)
	}
	c.moveTo(offset, c.slept())
	_, err := c.judge()
	return err
}
