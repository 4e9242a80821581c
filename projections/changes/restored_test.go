package changes_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"lieudit/eventstore"
	"lieudit/projections/changes"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/deadlinetest"
)

func TestOnARestoredLogItRestartsAtTheReadModelsCheckpoint(t *testing.T) {
	t.Parallel()
	log := projectortest.NewRestorableLog(t)
	kept := openReferential(t, log, "a", "m")
	older := log.Backup(t)
	lost := openReferential(t, log, "b", "m")
	var rebuilt atomic.Pointer[eventstore.Checkpoint]
	n := changes.New(log, discardLog())
	n.LoadCheckpoint = func(context.Context) (eventstore.Checkpoint, error) {
		if m := rebuilt.Load(); m != nil {
			return *m, nil
		}
		if n.Position() > 0 {
			return eventstore.Checkpoint{}, errors.New("the read model holds what is not on the log")
		}
		return eventstore.Checkpoint{}, nil
	}
	runNotifier(t, n)
	awaitPosition(t, n, lost)
	log.Restore(t, older, func() {})
	deadlinetest.WaitUntil(t, deadlinetest.DefaultLimit, "what is not on the log is let go", func() bool { return n.LastChange("b") != lost })
	var checkpoint eventstore.Checkpoint
	for s := range log.ReadAll(t.Context(), eventstore.Checkpoint{}, nil) {
		checkpoint = s.Checkpoint
	}
	rebuilt.Store(&checkpoint)
	after := openReferential(t, log, "a", "n")
	awaitPosition(t, n, after)
	if a, b := n.LastChange("a"), n.LastChange("b"); a != after || b < kept || b > checkpoint.Position {
		t.Errorf("changed at %d and %d, want %d and where it began again, %d", a, b, after, checkpoint.Position)
	}
}
