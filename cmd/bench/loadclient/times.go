package loadclient

import (
	"slices"
	"time"
)

// Latencies is how long answers took.
type Latencies []time.Duration

// Sort puts them in order, as Quantile wants them.
func (t Latencies) Sort() { slices.Sort(t) }

// Quantile is the time that a share of the answers stayed within, 0 when there are none.
func (t Latencies) Quantile(share float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	return t[min(int(share*float64(len(t))), len(t)-1)]
}
