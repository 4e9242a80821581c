package usage

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestABatchWaitsForAsManyRequestsAsTheLastHad asks for how long the worker of a stream waits between two batches, and for how many.
func TestABatchWaitsForAsManyRequestsAsTheLastHad(t *testing.T) {
	const interval = 10 * time.Microsecond // between the requests that come
	for _, tt := range []struct {
		name        string
		last, comes int
		wait        time.Duration
	}{
		{"one client", 1, 0, 0},
		{"enough", 10, 20, 9 * interval},
		{"some of them", 10, 5, maxWaitForMore},
		{"none of them", 10, 0, maxWaitForMore},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var q queue
				var clients sync.WaitGroup
				clients.Go(func() {
					for range tt.comes {
						time.Sleep(interval)
						if _, _, err := q.enqueueRequest(newPendingRequest(), false); err != nil {
							t.Error(err)
						}
					}
				})
				startedAt := time.Now()
				q.awaitMore(tt.last)
				if waited := time.Since(startedAt); waited != tt.wait {
					t.Errorf("waited %v, not %v", waited, tt.wait)
				}
				clients.Wait()
			})
		})
	}
}

// TestWaitingForRequestsEndsAsTheyBecomeFewer follows 64 clients that all leave but one: after some batches its requests wait for no other.
func TestWaitingForRequestsEndsAsTheyBecomeFewer(t *testing.T) {
	var q queue
	q.startAwaiting(64)
	batches := 0
	for q.pending = []*pendingRequest{newPendingRequest()}; q.startAwaiting(1) != nil; batches++ {
	}
	if batches == 0 || batches > 20 {
		t.Errorf("%d batches waited for more, not some of the first 20", batches)
	}
}

// TestSnapshotsAreASmallPartOfAStream bounds what they are of it, and what is read after the last one.
func TestSnapshotsAreASmallPartOfAStream(t *testing.T) {
	for items, want := range map[int]int{0: 1000, 2: 1000, 1000: 4000, 2000: 8000, 100_000: 106_000} {
		if got := EventsPerSharedSnapshot(items); got != want {
			t.Errorf("a stream of %d keys and periods gets a snapshot after %d events, not %d", items, got, want)
		}
	}
}
