package usage_test

import (
	"testing"
	"testing/synctest"
	"time"

	"lieudit/commands/usage"
)

// The clock of the test stands still while anything works.
func TestTheWaitForTheLogIsNotWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wall := newFakeClock(parseTime(t, "2026-03-10T12:00:00+01:00"))
		log := &slowStore{Store: openLogWithClock(t, wall), lag: 10 * time.Millisecond, readLag: time.Millisecond}
		quotas := &fakeQuotas{caps: map[string]int64{"a": 100}}
		m, other := startMeter(t, log, log, quotas, wall.now), startMeter(t, log, log, quotas, wall.now)
		began := time.Now()
		for range 3 {
			mustCount(t, m, "a", 100)
			mustCount(t, other, "a", 100) // m has to read this
		}
		if took := time.Since(began); took < 6*log.lag {
			t.Fatalf("six requests took %v: nobody waited", took)
		}
		var all usage.ShardLoad
		for shard, l := range m.Loads() {
			if isOwn := shard == (usage.Shard{}); l.Requests > 0 && !isOwn && shard.Month != "2026-02" { // the period began in February
				t.Errorf("counted in %+v", shard)
			}
			all = usage.ShardLoad{Events: all.Events + l.Events, Requests: all.Requests + l.Requests, Work: all.Work + l.Work}
		}
		if want := (usage.ShardLoad{Events: 3, Requests: 3}); all != want {
			t.Errorf("the load is %+v, want %+v", all, want)
		}
		if events, requests := m.Totals(); events != 3 || requests != 3 {
			t.Errorf("%d events and %d requests in all", events, requests)
		}
	})
}
