package clock_test

import (
	"testing"
	"time"

	"lieudit/eventstore/clock"
)

// BenchmarkRead compares a Clock with the wall clock alone.
func BenchmarkRead(b *testing.B) {
	b.Run("time.Now", func(b *testing.B) {
		for b.Loop() {
			time.Now()
		}
	})
	b.Run("Clock", func(b *testing.B) {
		c := clock.New(clock.Options{})
		for b.Loop() {
			c.Read()
		}
	})
}
