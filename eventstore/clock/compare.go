package clock

import (
	"errors"
	"time"
)

// ErrNotCompared: the clock must agree with a log's own times and has not been compared with them yet.
var ErrNotCompared = errors.New("this machine's clock was not compared with the times of the event log yet")

// IsCompared reports whether the clock must agree with a log's own times. Then the caller has to compare them regularly.
func (c *Clock) IsCompared() bool { return c.isCompared }

// Comparison compares the clock with the log's time at which an event is recorded.
type Comparison struct {
	clock *Clock
	began time.Duration // elapsed time, with what the machine had slept
}

// BeginComparison must be called before the event is appended.
func (c *Clock) BeginComparison() Comparison {
	_, elapsed := c.read()
	return Comparison{c, elapsed + c.slept()}
}

// maxComparison is the longest append whose time can be compared.
const maxComparison = time.Minute

// ErrTooSlow means that the append of a comparison took too long for its time to be compared.
var ErrTooSlow = errors.New("the event log took too long to tell its time")

// End must be called with the time at which the log recorded the event that was appended since. The log is right: if the wall clock
// differs from it by more than MaxJump, time continues from the log's time; if it agrees, it is believed even after a jump. The error is
// ErrTooSlow, or a *DoubtError if the clock is in doubt.
func (b Comparison) End(recorded time.Time) error {
	c := b.clock
	if !c.isCompared {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, elapsed := c.readTogether()
	slept := c.slept()
	passed := elapsed + slept - b.began
	if passed > maxComparison {
		return ErrTooSlow
	}
	c.hasCompared = true
	// If the wall clock is right, the event was recorded between passed ago and now. What the wall clock was at the beginning does not
	// count: after a jump since, any time may be between that and now.
	difference := max(recorded.Sub(wall), wall.Add(-passed).Sub(recorded), 0)
	offset := wall.UnixNano() - int64(elapsed)
	if difference > MaxJump {
		offset = recorded.Add(passed).UnixNano() - int64(elapsed)
	}
	c.setOffset(offset, slept)
	_, err := c.checkWall()
	return err
}
