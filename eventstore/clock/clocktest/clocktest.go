// Package clocktest makes clocks for tests.
package clocktest

import (
	"log/slog"
	"time"

	"lieudit/eventstore/clock"
)

// Follow returns a Clock that follows every change of a wall clock: elapsed time changes with it, as on a machine that sleeps.
func Follow(wall func() time.Time) *clock.Clock {
	return clock.New(clock.Options{Sources: clock.Sources{Wall: wall, Elapsed: ElapsedOf(wall)}, Log: slog.New(slog.DiscardHandler)})
}

// ElapsedOf returns the elapsed time of a machine whose wall clock is never wrong.
func ElapsedOf(wall func() time.Time) func() time.Duration {
	start := wall()
	return func() time.Duration { return wall().Sub(start) }
}
