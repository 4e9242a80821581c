package pulse_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"lieudit/eventstore"
	"lieudit/projections/projector/projectortest"
	"lieudit/projections/pulse"
	"lieudit/schemas/deadlinetest"
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
	deadlinetest.Until(t, deadlinetest.Hang, "what is not on the log is let go", func() bool { return p.Changed("b") != lost })
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
