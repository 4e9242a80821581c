package storetest

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"lieudit/eventstore"
)

// appendRules are about one append at a time: its events go to the end of the stream, come back unchanged, and are readable
// as soon as the append has returned.
func appendRules() []rule {
	return []rule{
		{name: "an append returns the revision and the position of its last event", check: returnsLastPlace},
		{name: "an append with the right expectation follows the stream's last event", check: followsLastEvent},
		{name: "an append with a wrong expectation is a conflict that names the current revision", check: namesCurrent},
		{name: "a conflict adds nothing", check: conflictAddsNothing},
		{name: "an event comes back as it was sent", check: comesBackAsSent},
		{name: "empty data and empty metadata come back empty", check: emptyComesBack},
		{name: "an event carries the UTC time of its append", check: carriesTime},
		{name: "an acknowledged event is there at once, whichever way it is read", check: readsOwnWrites},
	}
}

// returnsLastPlace appends batches of several sizes and compares each result with the last event of the stream.
func returnsLastPlace(ctx context.Context, l *storeUnderTest) error {
	stream, last := newCategory()+"-1", eventstore.Position(0)
	next := eventstore.Revision(0)
	for _, n := range []int{1, 3, 1, 100} {
		c, err := l.Append(ctx, stream, next-1, newEvents(n))
		if err != nil {
			return err
		}
		next += eventstore.Revision(n)
		if c.Revision != next-1 {
			return fmt.Errorf("append of %d events returned revision %d, want %d", n, c.Revision, next-1)
		}
		if c.Position <= last {
			return fmt.Errorf("append returned position %d after %d", c.Position, last)
		}
		last = c.Position
		for got, err := range l.ReadStream(ctx, stream, eventstore.End, eventstore.Backward) {
			if err != nil || got.Revision != c.Revision || got.Position != c.Position {
				return fmt.Errorf("last event is at %d/%d (%v), the append said %+v", got.Revision, got.Position, err, c)
			}
			break
		}
	}
	return nil
}

// followsLastEvent appends with NoStream, revisions and Any in turn. All must be accepted, and stand in that order.
func followsLastEvent(ctx context.Context, l *storeUnderTest) error {
	stream := newCategory() + "-1"
	var all []eventstore.ProposedEvent
	for _, expected := range []eventstore.Revision{eventstore.NoStream, 1, eventstore.Any, 5, eventstore.Any} {
		batch := newEvents(2)
		if _, err := l.Append(ctx, stream, expected, batch); err != nil {
			return fmt.Errorf("expecting %d: %w", expected, err)
		}
		all = append(all, batch...)
	}
	return l.checkStream(ctx, stream, all)
}

// namesCurrent appends with revisions before and behind the right one, to a stream without events and to one with two.
func namesCurrent(ctx context.Context, l *storeUnderTest) error {
	empty, two := newCategory()+"-1", newCategory()+"-2"
	if _, err := l.appendEvents(ctx, two, 2); err != nil {
		return err
	}
	for _, c := range []struct {
		stream            string
		expected, current eventstore.Revision
	}{
		{empty, 0, eventstore.NoStream}, {empty, 7, eventstore.NoStream},
		{two, eventstore.NoStream, 1}, {two, 0, 1}, {two, 2, 1}, {two, 1 << 40, 1},
	} {
		_, err := l.Append(ctx, c.stream, c.expected, newEvents(1))
		what := fmt.Sprintf("expecting %d of a stream at %d", c.expected, c.current)
		if err := checkConflict(what, err, c.stream, c.expected, c.current); err != nil {
			return err
		}
	}
	return nil
}

// conflictAddsNothing makes conflicts and reads the stream again.
func conflictAddsNothing(ctx context.Context, l *storeUnderTest) error {
	stream := newCategory() + "-1"
	held, err := l.appendEvents(ctx, stream, 2)
	if err != nil {
		return err
	}
	for _, expected := range []eventstore.Revision{eventstore.NoStream, 0, 5} {
		_, err := l.Append(ctx, stream, expected, newEvents(3))
		if err := checkConflict("wrong expectation", err, stream, expected, 1); err != nil {
			return err
		}
	}
	return l.checkStream(ctx, stream, held)
}

// comesBackAsSent uses names and bodies that a store may be tempted to normalize: accents, spaces, large numbers, and
// metadata fields that EventStoreDB reserves.
func comesBackAsSent(ctx context.Context, l *storeUnderTest) error {
	stream := newCategory() + "-été 2026/σ-ü"
	batch := newEvents(3)
	batch[0].Type = "category.noun-past.v1"
	batch[0].Data = []byte(`{"é":"\u0000 𝄞","n":1e400,"a":[1,{"b":null}]}`)
	batch[1].Metadata = []byte(`{"$correlationId":"c","$causationId":"d","actor":"token:1","end":true}`)
	batch[2].Data = []byte(" {\n\t\"spaced\" : true } ")
	if _, err := l.Append(ctx, stream, eventstore.NoStream, batch); err != nil {
		return err
	}
	return l.checkStream(ctx, stream, batch)
}

// emptyComesBack appends nil and empty slices for data and metadata. Reads may return either.
func emptyComesBack(ctx context.Context, l *storeUnderTest) error {
	stream := newCategory() + "-1"
	batch := newEvents(3)
	batch[0].Metadata = nil
	batch[1].Data = nil
	batch[2].Data, batch[2].Metadata = []byte{}, []byte{}
	if _, err := l.Append(ctx, stream, eventstore.NoStream, batch); err != nil {
		return err
	}
	return l.checkStream(ctx, stream, batch)
}

// carriesTime compares the times of events with the clock of the test.
func carriesTime(ctx context.Context, l *storeUnderTest) error {
	const skew = time.Minute // a server's clock is not ours
	stream, before := newCategory()+"-1", time.Now().Add(-skew)
	if _, err := l.appendEvents(ctx, stream, 3); err != nil {
		return err
	}
	got, err := l.readStream(ctx, stream)
	if err != nil {
		return err
	}
	for _, e := range got {
		if e.Time.Location() != time.UTC || !e.Time.Equal(e.Time.Truncate(time.Microsecond)) || e.Time.Before(before) || e.Time.After(time.Now().Add(skew)) {
			return fmt.Errorf("event recorded at %v, want about now in UTC, in whole microseconds", e.Time)
		}
	}
	return nil
}

// readsOwnWrites reads the stream and the whole log right after each of 20 appends. A store whose reads lag behind its
// appends fails here.
func readsOwnWrites(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	var all []eventstore.ProposedEvent
	for i := range 20 {
		batch := newEvents(1)
		if _, err := l.Append(ctx, c+"-1", eventstore.Revision(i-1), batch); err != nil {
			return err
		}
		all = append(all, batch...)
		if err := l.checkStream(ctx, c+"-1", all); err != nil {
			return fmt.Errorf("read of the stream right after append %d: %w", i, err)
		}
		read, err := l.readLog(ctx, from, eventstore.Filter{c})
		if err != nil {
			return err
		}
		if err := checkEvents(read.events, c+"-1", all); err != nil {
			return fmt.Errorf("read of the log right after append %d: %w", i, err)
		}
	}
	return nil
}

// limitRules are about MaxAppendBytes: exactly that much is accepted, whatever the number of events.
func limitRules() []rule {
	return []rule{
		{name: "an append of exactly MaxAppendBytes is accepted, as one event and as many", check: acceptsMax},
		{name: "an append one byte above MaxAppendBytes is too large and adds nothing", check: refusesAboveMax},
		{name: "an append of 2,000 events keeps their order", check: keepsManyInOrder},
		{name: "a subscription yields big appends whole and in order", check: bigAppends},
	}
}

// eventsOfSize makes n events whose types, data and metadata hold size bytes together, which is how MaxAppendBytes counts.
// Each gets about the same share.
func eventsOfSize(n, size int) []eventstore.ProposedEvent {
	batch := newEvents(n)
	left := size
	for i := range batch {
		share := left / (n - i)
		left -= share
		batch[i].Data = jsonText(share - len(batch[i].Type) - len(batch[i].Metadata))
	}
	return batch
}

// jsonText is a JSON string of n bytes, quotes included. n is at least 2.
func jsonText(n int) []byte {
	b := bytes.Repeat([]byte("x"), n)
	b[0], b[n-1] = '"', '"'
	return b
}

// acceptsMax appends exactly MaxAppendBytes in one, seven and a thousand events, and sends each append again: a repeat of the
// largest append has to be recognised too.
func acceptsMax(ctx context.Context, l *storeUnderTest) error {
	for _, n := range []int{1, 7, 1000} {
		stream := newCategory() + "-1"
		batch := eventsOfSize(n, eventstore.MaxAppendBytes)
		first, err := l.Append(ctx, stream, eventstore.NoStream, batch)
		if err != nil {
			return fmt.Errorf("MaxAppendBytes bytes in %d events: %w", n, err)
		}
		if err := l.checkRepeat(ctx, stream, eventstore.NoStream, batch, first); err != nil {
			return err
		}
		if err := l.checkStream(ctx, stream, batch); err != nil {
			return err
		}
	}
	return nil
}

// refusesAboveMax appends one byte and much more than is allowed. The stream must stay empty.
func refusesAboveMax(ctx context.Context, l *storeUnderTest) error {
	for _, n := range []int{1, 7, 1000} {
		stream := newCategory() + "-1"
		for _, size := range []int{eventstore.MaxAppendBytes + 1, 3 * eventstore.MaxAppendBytes} {
			_, err := l.Append(ctx, stream, eventstore.NoStream, eventsOfSize(n, size))
			if err := checkErrorIs(fmt.Sprintf("%d bytes in %d events", size, n), err, eventstore.ErrTooLarge); err != nil {
				return err
			}
		}
		if err := l.checkStream(ctx, stream, nil); err != nil {
			return err
		}
	}
	return nil
}

// keepsManyInOrder appends 2,000 events at once and reads them by stream and by log.
func keepsManyInOrder(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	batch := newEvents(2000)
	if _, err := l.Append(ctx, c+"-1", eventstore.NoStream, batch); err != nil {
		return err
	}
	if err := l.checkStream(ctx, c+"-1", batch); err != nil {
		return err
	}
	read, err := l.readLog(ctx, from, eventstore.Filter{c})
	if err != nil {
		return err
	}
	return checkEvents(read.events, c+"-1", batch)
}

// bigAppends follows a stream by a subscription while appends of MaxAppendBytes are made.
func bigAppends(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	s, err := l.startSubscription(ctx, from, eventstore.Filter{c})
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.readUntilCaughtUp(0); err != nil {
		return err
	}
	var all []eventstore.ProposedEvent
	for _, n := range []int{1, 3000, 2, 500} {
		batch := eventsOfSize(n, eventstore.MaxAppendBytes)
		if _, err := l.Append(ctx, c+"-1", eventstore.Revision(len(all)-1), batch); err != nil {
			return err
		}
		all = append(all, batch...)
		if err := s.readUntilEvents(len(all)); err != nil {
			return err
		}
	}
	return checkEvents(s.events, c+"-1", all)
}
