package clock

import (
	"context"
	"time"
)

// Sleep waits for d of elapsed time and returns true. It returns false as soon as ctx ends, and if ctx has ended by the end of d.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err() == nil
}
