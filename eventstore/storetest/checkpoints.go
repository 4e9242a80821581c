package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// checkpointRules are about the checkpoint that a read resumes after. One that is not on the log must be refused, since a
// reader that continued from it would skip events.
func checkpointRules() []rule {
	return []rule{
		{name: "the zero checkpoint is the beginning of the log", check: zeroIsBeginning},
		{name: "position 0 of this log is its beginning too", check: positionZero},
		{name: "a checkpoint of another log has diverged", check: otherLog},
		{name: "a checkpoint with another event's id has diverged", check: otherEvent},
		{name: "a checkpoint beyond the end has diverged", check: beyondEnd},
		{name: "a checkpoint between two events has diverged", check: betweenEvents},
		{name: "a read may resume after the checkpoint of every signal", check: everyCheckpointResumes, needsOwnStore: true}, // it reads to the end of the log from each
	}
}

// zeroIsBeginning appends events and reads after the zero Checkpoint, which names no log.
func zeroIsBeginning(ctx context.Context, l *storeUnderTest) error {
	c := newCategory()
	all, err := l.appendEvents(ctx, c+"-1", 3)
	if err != nil {
		return err
	}
	return l.checkDelivered(ctx, eventstore.Checkpoint{}, eventstore.Filter{c}, idsOf(all, proposedID))
}

// positionZero appends events and reads after a checkpoint that names the log and position 0.
func positionZero(ctx context.Context, l *storeUnderTest) error {
	id, err := l.Identity(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	all, err := l.appendEvents(ctx, c+"-1", 3)
	if err != nil {
		return err
	}
	return l.checkDelivered(ctx, eventstore.Checkpoint{Log: id}, eventstore.Filter{c}, idsOf(all, proposedID))
}

// checkDiverged fails unless both ways to read refuse the checkpoint before they yield anything.
func (l *storeUnderTest) checkDiverged(ctx context.Context, what string, checkpoint eventstore.Checkpoint) error {
	for name, seq := range map[string]iter.Seq2[eventstore.Signal, error]{
		"ReadAll": l.ReadAll(ctx, checkpoint, nil), "Subscribe": l.Subscribe(ctx, checkpoint, nil),
	} {
		for s, err := range seq {
			var d *eventstore.DivergedError
			if !errors.As(err, &d) {
				return fmt.Errorf("%s after %s: got %+v, %v, want it to have diverged", name, what, s, err)
			}
			if d.Checkpoint != checkpoint {
				return fmt.Errorf("%s after %s: the error names checkpoint %+v, want %+v", name, what, d.Checkpoint, checkpoint)
			}
		}
	}
	return nil
}

// otherLog takes a checkpoint that is right and gives it the UUID of another log, at an event and at the beginning.
func otherLog(ctx context.Context, l *storeUnderTest) error {
	checkpoint, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	checkpoint.Log = uuid.New()
	if err := l.checkDiverged(ctx, "a checkpoint of another log", checkpoint); err != nil {
		return err
	}
	return l.checkDiverged(ctx, "the beginning of another log", eventstore.Checkpoint{Log: checkpoint.Log})
}

// otherEvent takes a checkpoint that is right and gives it another event's id, and none. So a log that was restored and then
// continued differently is noticed, even if an event begins at the same position.
func otherEvent(ctx context.Context, l *storeUnderTest) error {
	checkpoint, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	if _, err := l.appendCheckpoint(ctx); err != nil {
		return err
	}
	for _, id := range []uuid.UUID{uuid.New(), uuid.Nil} {
		checkpoint.Event = id
		if err := l.checkDiverged(ctx, "a checkpoint with the id "+id.String(), checkpoint); err != nil {
			return err
		}
	}
	return nil
}

// beyondEnd tries positions some way and very far behind an event. So a log that was restored from an older copy is noticed
// by a reader that was further.
func beyondEnd(ctx context.Context, l *storeUnderTest) error {
	checkpoint, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	for _, by := range []eventstore.Position{1 << 20, 1 << 40} {
		checkpoint.Position += by
		if err := l.checkDiverged(ctx, fmt.Sprintf("a checkpoint %d beyond an event", by), checkpoint); err != nil {
			return err
		}
	}
	return nil
}

// betweenEvents tries the positions one before and one after the position of an event.
func betweenEvents(ctx context.Context, l *storeUnderTest) error {
	checkpoint, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	if _, err := l.appendCheckpoint(ctx); err != nil {
		return err
	}
	checkpoint.Position--
	if err := l.checkDiverged(ctx, "a checkpoint just before an event", checkpoint); err != nil {
		return err
	}
	checkpoint.Position += 2
	return l.checkDiverged(ctx, "a checkpoint just after an event", checkpoint)
}

// maxCheckpointsBetween is how many signals between two events are tried. The appends of others may cause thousands.
const maxCheckpointsBetween = 3

// everyCheckpointResumes subscribes until CaughtUp and then resumes after the checkpoint of each signal: the rest must be
// exactly the events that followed it.
func everyCheckpointResumes(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	cats, _, err := l.appendMixed(ctx, 10)
	if err != nil {
		return err
	}
	f := cats[:1]
	s, err := l.startSubscription(ctx, from, f)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.readUntilCaughtUp(0); err != nil {
		return err
	}
	seen, between := 0, 0
	for _, signal := range s.signals {
		between++
		if signal.Kind == eventstore.EventAppeared {
			seen, between = seen+1, 0
		}
		if between > maxCheckpointsBetween {
			continue
		}
		if err := l.checkDelivered(ctx, signal.Checkpoint, f, idsOf(s.events[seen:], recordedID)); err != nil {
			return fmt.Errorf("after signal of kind %d at %d: %w", signal.Kind, signal.Checkpoint.Position, err)
		}
	}
	return nil
}
