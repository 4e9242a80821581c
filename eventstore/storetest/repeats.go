package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"lieudit/eventstore"
)

// repeatRules are about the promise that makes ErrUnknown bearable: the very same append sent again changes nothing, and one
// that is almost the same is refused.
func repeatRules() []rule {
	return []rule{
		{name: "the same append sent again returns what the first sending did and adds nothing", check: repeatAddsNothing},
		{name: "the same append sent again is recognised after the stream went on", check: repeatLater},
		{name: "an append with Any sent again is recognised after 1,000 others", check: repeatAmongMany},
		{name: "a conflicting append sent again is a conflict again", check: conflictAgain},
		{name: "an append whose first ids are known and whose later ones are not is ErrIDReused", check: laterDiffers},
		{name: "an append that reuses an id adds nothing, wherever the id stands", check: mismatchAddsNothing, needsAllIDs: true},
		{name: "part of an earlier append is ErrIDReused", check: partOfAnother, needsAllIDs: true},
		{name: "an id known from another stream is ErrIDReused", check: otherStream, needsAllIDs: true},
		{name: "an id may stand twice in one append, which is recognised like any other", check: idTwice},
		{name: "the same append sent many times at once is added once, and all calls return the same", check: repeatAtOnce},
	}
}

// expectedRevisions are the ways to expect a stream of held events.
func expectedRevisions(held int) map[string]eventstore.Revision {
	m := map[string]eventstore.Revision{"Any": eventstore.Any}
	if held == 0 {
		m["NoStream"] = eventstore.NoStream
	} else {
		m["a revision"] = eventstore.Revision(held - 1)
	}
	return m
}

// forEachExpectation calls try with a new stream of 0 and of 3 events, for each way to expect it.
func forEachExpectation(ctx context.Context, l *storeUnderTest, try func(stream string, expected eventstore.Revision, held []eventstore.ProposedEvent) error) error {
	for _, n := range []int{0, 3} {
		for name, expected := range expectedRevisions(n) {
			stream := newCategory() + "-1"
			held, err := l.appendEvents(ctx, stream, n)
			if err != nil {
				return err
			}
			if err := try(stream, expected, held); err != nil {
				return fmt.Errorf("expecting %s: %w", name, err)
			}
		}
	}
	return nil
}

// checkRepeat sends an append again and fails unless it returns what the first call did. Whether it added anything the
// caller checks afterwards, by checkStream.
func (l *storeUnderTest) checkRepeat(ctx context.Context, stream string, expected eventstore.Revision, batch []eventstore.ProposedEvent, first eventstore.AppendResult) error {
	second, err := l.Append(ctx, stream, expected, batch)
	if err != nil {
		return fmt.Errorf("sent again: %w", err)
	}
	if second != first {
		return fmt.Errorf("sent again: got %+v, the first time %+v", second, first)
	}
	return nil
}

// repeatAddsNothing sends each append three more times, before anything else is appended.
func repeatAddsNothing(ctx context.Context, l *storeUnderTest) error {
	return forEachExpectation(ctx, l, func(stream string, expected eventstore.Revision, held []eventstore.ProposedEvent) error {
		for _, n := range []int{1, 5} {
			batch := newEvents(n)
			first, err := l.Append(ctx, stream, expected, batch)
			if err != nil {
				return err
			}
			for range 3 {
				if err := l.checkRepeat(ctx, stream, expected, batch, first); err != nil {
					return err
				}
			}
			held = append(held, batch...)
			if expected != eventstore.Any {
				expected = first.Revision
			}
		}
		return l.checkStream(ctx, stream, held)
	})
}

// repeatLater sends an append again after ten others to its stream. If it expects a revision, that is no longer the current
// one.
func repeatLater(ctx context.Context, l *storeUnderTest) error {
	return forEachExpectation(ctx, l, func(stream string, expected eventstore.Revision, held []eventstore.ProposedEvent) error {
		batch := newEvents(3)
		first, err := l.Append(ctx, stream, expected, batch)
		if err != nil {
			return err
		}
		held = append(held, batch...)
		for range 10 {
			more := newEvents(2)
			if _, err := l.Append(ctx, stream, eventstore.Any, more); err != nil {
				return err
			}
			held = append(held, more...)
		}
		if err := l.checkRepeat(ctx, stream, expected, batch, first); err != nil {
			return err
		}
		return l.checkStream(ctx, stream, held)
	})
}

// repeatAmongMany sends an append with Any again after 1,000 appends to other streams.
func repeatAmongMany(ctx context.Context, l *storeUnderTest) error {
	c := newCategory()
	batch := newEvents(2)
	first, err := l.Append(ctx, c+"-1", eventstore.Any, batch)
	if err != nil {
		return err
	}
	err = runParallel(20, func(i int) error {
		for range 50 {
			if _, err := l.Append(ctx, fmt.Sprintf("%s-other%d", c, i), eventstore.Any, newEvents(1)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := l.checkRepeat(ctx, c+"-1", eventstore.Any, batch, first); err != nil {
		return err
	}
	return l.checkStream(ctx, c+"-1", batch)
}

// conflictAgain sends an append with a wrong revision three times. A refused append must not be remembered: with the right
// revision its ids are new.
func conflictAgain(ctx context.Context, l *storeUnderTest) error {
	stream := newCategory() + "-1"
	held, err := l.appendEvents(ctx, stream, 2)
	if err != nil {
		return err
	}
	refused := newEvents(2)
	for range 3 {
		_, err := l.Append(ctx, stream, 0, refused)
		if err := checkConflict("refused append", err, stream, 0, 1); err != nil {
			return err
		}
	}
	if _, err := l.Append(ctx, stream, 1, refused); err != nil {
		return fmt.Errorf("refused ids sent with the right expectation: %w", err)
	}
	return l.checkStream(ctx, stream, append(held, refused...))
}

// laterDiffers sends appends that begin with the ids of an earlier one and continue with others. A log that compares the first
// id alone would call them repeats and lose the new events.
func laterDiffers(ctx context.Context, l *storeUnderTest) error {
	return forEachExpectation(ctx, l, func(stream string, expected eventstore.Revision, held []eventstore.ProposedEvent) error {
		batch := newEvents(3)
		if _, err := l.Append(ctx, stream, expected, batch); err != nil {
			return err
		}
		other, longer := newEvents(3), append(batch[:3:3], newEvents(1)...)
		copy(other, batch[:2])
		for name, b := range map[string][]eventstore.ProposedEvent{"last id differs": other, "one id more": longer} {
			_, err := l.Append(ctx, stream, expected, b)
			if err := checkErrorIs(name, err, eventstore.ErrIDReused); err != nil {
				return err
			}
		}
		return l.checkStream(ctx, stream, append(held, batch...))
	})
}

// mismatchAddsNothing sends known ids in other orders and among new ones.
func mismatchAddsNothing(ctx context.Context, l *storeUnderTest) error {
	return forEachExpectation(ctx, l, func(stream string, expected eventstore.Revision, held []eventstore.ProposedEvent) error {
		batch := newEvents(2)
		c, err := l.Append(ctx, stream, expected, batch)
		if err != nil {
			return err
		}
		held = append(held, batch...)
		fresh := newEvents(2)
		for name, b := range map[string][]eventstore.ProposedEvent{
			"known id last":     {fresh[0], batch[0]},
			"known ids swapped": {batch[1], batch[0]},
			"known id alone":    {batch[1]},
		} {
			_, err := l.Append(ctx, stream, expected, b)
			if !errors.Is(err, eventstore.ErrIDReused) && !errors.Is(err, eventstore.ErrConflict) {
				return fmt.Errorf("%s: got error %v, want ErrIDReused or a conflict", name, err)
			}
			for _, e := range []eventstore.Revision{eventstore.Any, c.Revision} {
				_, err := l.Append(ctx, stream, e, b)
				if err := checkErrorIs(name+", nothing else wrong", err, eventstore.ErrIDReused); err != nil {
					return err
				}
			}
		}
		return l.checkStream(ctx, stream, held)
	})
}

// partOfAnother sends the first two events of an append of three.
func partOfAnother(ctx context.Context, l *storeUnderTest) error {
	return forEachExpectation(ctx, l, func(stream string, expected eventstore.Revision, held []eventstore.ProposedEvent) error {
		batch := newEvents(3)
		if _, err := l.Append(ctx, stream, expected, batch); err != nil {
			return err
		}
		_, err := l.Append(ctx, stream, expected, batch[:2])
		if err := checkErrorIs("the first two of three", err, eventstore.ErrIDReused); err != nil {
			return err
		}
		return l.checkStream(ctx, stream, append(held, batch...))
	})
}

// otherStream sends an append again, to another stream. An id names one event of the whole log.
func otherStream(ctx context.Context, l *storeUnderTest) error {
	c := newCategory()
	batch := newEvents(2)
	if _, err := l.Append(ctx, c+"-1", eventstore.NoStream, batch); err != nil {
		return err
	}
	for _, expected := range []eventstore.Revision{eventstore.NoStream, eventstore.Any} {
		_, err := l.Append(ctx, c+"-2", expected, batch)
		if err := checkErrorIs("the same ids in another stream", err, eventstore.ErrIDReused); err != nil {
			return err
		}
	}
	if err := l.checkStream(ctx, c+"-2", nil); err != nil {
		return err
	}
	return l.checkStream(ctx, c+"-1", batch)
}

// idTwice appends a batch that holds one id twice, and sends it again.
func idTwice(ctx context.Context, l *storeUnderTest) error {
	return forEachExpectation(ctx, l, func(stream string, expected eventstore.Revision, held []eventstore.ProposedEvent) error {
		batch := newEvents(3)
		batch[2] = batch[0]
		first, err := l.Append(ctx, stream, expected, batch)
		if err != nil {
			return err
		}
		if err := l.checkRepeat(ctx, stream, expected, batch, first); err != nil {
			return err
		}
		return l.checkStream(ctx, stream, append(held, batch...))
	})
}

// appendUntilKnown sends an append until its outcome is known: a call during which another one sends the same append may be
// ErrUnknown.
func (l *storeUnderTest) appendUntilKnown(ctx context.Context, stream string, expected eventstore.Revision, batch []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	for {
		c, err := l.Append(ctx, stream, expected, batch)
		if !errors.Is(err, eventstore.ErrUnknown) || ctx.Err() != nil {
			return c, err
		}
	}
}

// repeatAtOnce has 30 goroutines send the same append, as a client does that gives up waiting and retries.
func repeatAtOnce(ctx context.Context, l *storeUnderTest) error {
	return forEachExpectation(ctx, l, func(stream string, expected eventstore.Revision, held []eventstore.ProposedEvent) error {
		batch := newEvents(2)
		got := make([]eventstore.AppendResult, 30)
		err := runParallel(len(got), func(i int) (err error) {
			got[i], err = l.appendUntilKnown(ctx, stream, expected, batch)
			return err
		})
		if err != nil {
			return err
		}
		for _, c := range got {
			if c != got[0] {
				return fmt.Errorf("two sendings of one append returned %+v and %+v", c, got[0])
			}
		}
		return l.checkStream(ctx, stream, append(held, batch...))
	})
}

// forgottenIDRules are about a log that no longer knows the ids of its appends. With an expected revision the stream itself
// shows the repeat; with Any nothing does.
func forgottenIDRules() []rule {
	return []rule{
		{name: "a log that has forgotten its ids recognises an append with an expected revision", check: recognisesForgotten, needsReopenWithoutIDs: true},
		{name: "a log that has forgotten its ids may add an append with Any again, whole", check: addsForgottenAgain, needsReopenWithoutIDs: true},
	}
}

func recognisesForgotten(ctx context.Context, l *storeUnderTest) error {
	return recognisesRevisions(ctx, l, l.reopenWithoutIDs)
}

func recognisesAfterReopen(ctx context.Context, l *storeUnderTest) error {
	return recognisesRevisions(ctx, l, l.reopen)
}

// recognisesRevisions sends two appends with an expected revision again after the log was reopened.
func recognisesRevisions(ctx context.Context, l *storeUnderTest, reopen func(eventstore.Store) eventstore.Store) error {
	stream := newCategory() + "-1"
	first, second := newEvents(2), newEvents(3)
	a, err := l.Append(ctx, stream, eventstore.NoStream, first)
	if err != nil {
		return err
	}
	b, err := l.Append(ctx, stream, 1, second)
	if err != nil {
		return err
	}
	l = l.reopenedBy(reopen)
	if err := l.checkRepeat(ctx, stream, eventstore.NoStream, first, a); err != nil {
		return err
	}
	if err := l.checkRepeat(ctx, stream, 1, second, b); err != nil {
		return err
	}
	return l.checkStream(ctx, stream, append(first, second...))
}

// addsForgottenAgain shows why a repeat must not change the fold of events that are appended with Any.
func addsForgottenAgain(ctx context.Context, l *storeUnderTest) error {
	stream := newCategory() + "-1"
	batch := newEvents(2)
	first, err := l.Append(ctx, stream, eventstore.Any, batch)
	if err != nil {
		return err
	}
	l = l.reopenedBy(l.reopenWithoutIDs)
	again, err := l.Append(ctx, stream, eventstore.Any, batch)
	if err != nil {
		return err
	}
	if again.Revision != first.Revision+2 || again.Position <= first.Position {
		return fmt.Errorf("sent again it went to %+v, the first time to %+v: the log was to have forgotten it", again, first)
	}
	return l.checkStream(ctx, stream, append(batch, batch...))
}

// FillSegment appends until a journal with segments of size bytes has begun another one. After a reopening it remembers only
// the ids of that one.
func FillSegment(t *testing.T, s eventstore.Store, size int) {
	t.Helper()
	stream, each := newCategory()+"-filler", min(size/4, eventstore.MaxAppendBytes)
	for filled := 0; filled <= size; filled += each {
		if _, err := s.Append(t.Context(), stream, eventstore.Any, eventsOfSize(1, each)); err != nil {
			t.Fatal(err)
		}
	}
}
