package addresstest

import (
	"testing"
	"time"
)

// CPUTime is the time of the clock, as a thread's own time is not known here.
func CPUTime(testing.TB) time.Duration { return time.Duration(time.Now().UnixNano()) }
