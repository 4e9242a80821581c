package feed_test

import (
	"testing"
	"time"

	"lieudit/eventstore"
)

// Others' events go by by the thousand, and each batch is a transaction of whoever writes it down.
func TestEventsNobodyWantsCostFewBatches(t *testing.T) {
	t.Parallel()
	const others = 300
	l := newScriptedLog(newSignal(eventstore.CaughtUp, 0))
	r := newReader(t, l)
	r.acknowledge(r.nextBatch(t))
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for n := range others { // one by one
			<-tick.C
			l.appendSignals(newSignal(eventstore.CheckpointReached, n+1))
		}
	}()
	batches := 0
	for to := 0; to < others; batches++ {
		m, b := r.nextBatch(t)
		r.acknowledge(m, b)
		to = int(b.To.Position)
	}
	if batches > others/10 {
		t.Errorf("%d batches without an event, want at most %d", batches, others/10)
	}
	begun := time.Now()
	l.appendSignals(newSignal(eventstore.CheckpointReached, others+1))
	l.appendSignals(appendSignals(others+2, 1)...)
	m, b := r.nextBatch(t)
	r.acknowledge(m, b)
	if took := time.Since(begun); len(b.Events) != 1 || took > 100*time.Millisecond {
		t.Errorf("a batch of %d events after %v, want the event at once", len(b.Events), took)
	}
}
