package pulse_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/projections/projector/projectortest"
	"lieudit/projections/pulse"
)

func TestOnARestoredLogItBeginsAgainWhereTheTablesAre(t *testing.T) {
	t.Parallel()
	log := projectortest.NewRestorable(t)
	kept := opened(t, log, "a", "m")
	older := log.Copy(t)
	lost := opened(t, log, "b", "m")
	var rebuilt atomic.Pointer[eventstore.Mark]
	p := pulse.New(log, quiet())
	p.From = func(context.Context) (eventstore.Mark, error) {
		if m := rebuilt.Load(); m != nil {
			return *m, nil
		}
		if p.Position() > 0 {
			return eventstore.Mark{}, errors.New("the read model holds what is not on the log")
		}
		return eventstore.Mark{}, nil
	}
	beating(t, p)
	wait(t, p, lost)
	log.Restore(t, older, func() {})
	for end := time.Now().Add(patience); p.Changed("b") == lost; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it goes on with what is not on the log")
		}
	}
	var mark eventstore.Mark
	for s := range log.ReadAll(t.Context(), eventstore.Mark{}, nil) {
		mark = s.Mark
	}
	rebuilt.Store(&mark)
	after := opened(t, log, "a", "n")
	wait(t, p, after)
	if a, b := p.Changed("a"), p.Changed("b"); a != after || b < kept || b > mark.Position {
		t.Errorf("changed at %d and %d, want %d and where it began again, %d", a, b, after, mark.Position)
	}
}
