package api

import (
	"maps"
	"testing"
	"time"
)

func TestCostsAreThoseOfOneTurnForEachRequest(t *testing.T) {
	t.Parallel()
	before := meters{events: 10, position: 5000, processor: time.Second, node: time.Second}
	for name, c := range map[string]struct {
		after    meters
		requests int
		want     map[string]float64
	}{
		"on a node":        {meters{14, 7000, 1100 * time.Millisecond, 1040 * time.Millisecond}, 2000, map[string]float64{EventsPerMillion: 2000, MBPerMillion: 1, ProcessorTime: 50, nodeTime: 20}},
		"nothing measured": {meters{11, 5400, time.Second, time.Second}, 1, map[string]float64{EventsPerMillion: 1e6, MBPerMillion: 400}},
	} {
		if got := c.after.since(before, c.requests); !maps.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
