package esdb

import (
	"testing"
	"testing/synctest"
	"time"
)

// A test cannot set the wall clock. It can see whether a time could be compared with it: stored times count from the
// connection's epoch, and returned times have a monotonic reading, which Round removes.
func TestTimesOfAnswersAreNotOfTheWallClock(t *testing.T) {
	t.Parallel()
	c := &conn{epoch: time.Now()}
	c.recordResponse()
	if got := time.Duration(c.lastResponse.Load()); got > time.Hour {
		t.Errorf("an answer was recorded %v after the connection was begun", got)
	}
	if since := c.responsiveSince(); since == since.Round(0) {
		t.Errorf("answers come since %v, which is a time of the wall clock alone", since)
	}
}

func TestAnswersWithoutAGapAreOneRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &conn{epoch: time.Now()}
		time.Sleep(maxResponseGap + time.Millisecond)
		for range 3 {
			c.recordResponse()
			time.Sleep(maxResponseGap)
		}
		if got, want := time.Since(c.responsiveSince()), 3*maxResponseGap; got != want {
			t.Errorf("after three answers the run is %v long, want %v", got, want)
		}
		if got := c.silence(); got != maxResponseGap {
			t.Errorf("silent for %v, want %v", got, maxResponseGap)
		}
		sentAt := time.Now()
		time.Sleep(time.Millisecond)
		if c.hasRespondedSince(sentAt) {
			t.Error("an answer from before counts as one since then")
		}
		c.recordResponse() // a gap is over
		if got := time.Since(c.responsiveSince()); got != 0 || !c.hasRespondedSince(sentAt) {
			t.Errorf("after a gap the run is %v long, answered since: %v; want a new run and an answer", got, c.hasRespondedSince(sentAt))
		}
	})
}
