package storetest

import (
	"context"
	"fmt"
	"slices"

	"lieudit/eventstore"
)

// streamRules are about ReadStream, both ways, from any revision, and to a reader that stops early.
func streamRules() []rule {
	return []rule{
		{name: "a stream that does not exist yields nothing, both ways", check: unknownYieldsNothing},
		{name: "a stream is read forward from a revision, inclusive, to its end", check: readsForward},
		{name: "a stream is read backward from a revision or from its end to its first event", check: readsBackward},
		{name: "a stream of 3,000 events is read whole, both ways", check: readsLongStream},
		{name: "streams whose names begin alike are not mixed", check: namesAlike},
		{name: "a reader may stop at any event", check: stopsAnywhere},
		{name: "many read while others write", check: readWhileWriting},
	}
}

// unknownYieldsNothing reads a stream that was never written. That is not an error: a fold of no events is a new aggregate.
func unknownYieldsNothing(ctx context.Context, l *storeUnderTest) error {
	for _, dir := range []eventstore.Direction{eventstore.Forward, eventstore.Backward} {
		for _, from := range []eventstore.Revision{0, 5, eventstore.End} {
			if from == eventstore.End && dir == eventstore.Forward {
				continue
			}
			got, err := collect(l.ReadStream(ctx, newCategory()+"-1", from, dir))
			if err != nil || len(got) != 0 {
				return fmt.Errorf("an unknown stream from %d yields %d events, %v", from, len(got), err)
			}
		}
	}
	return nil
}

// checkReadFrom reads a stream of all one way and compares it with the revisions first to last.
func (l *storeUnderTest) checkReadFrom(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction, all []eventstore.ProposedEvent, revisions []int) error {
	got, err := collect(l.ReadStream(ctx, stream, from, dir))
	if err != nil {
		return err
	}
	if len(got) != len(revisions) {
		return fmt.Errorf("reading from %d (backward: %v) yields %d events, want %d", from, dir, len(got), len(revisions))
	}
	for i, r := range revisions {
		if err := checkEvent(got[i], stream, eventstore.Revision(r), all[r]); err != nil {
			return fmt.Errorf("reading from %d (backward: %v): %w", from, dir, err)
		}
	}
	return nil
}

// readsForward reads a stream of five events from every revision, and from two behind its end.
func readsForward(ctx context.Context, l *storeUnderTest) error {
	stream := newCategory() + "-1"
	all, err := l.appendEvents(ctx, stream, 5)
	if err != nil {
		return err
	}
	for from, revisions := range [][]int{{0, 1, 2, 3, 4}, {1, 2, 3, 4}, {2, 3, 4}, {3, 4}, {4}, {}, {}} {
		if err := l.checkReadFrom(ctx, stream, eventstore.Revision(from), eventstore.Forward, all, revisions); err != nil {
			return err
		}
	}
	return nil
}

// readsBackward reads a stream of four events backward from every revision and from End.
func readsBackward(ctx context.Context, l *storeUnderTest) error {
	stream := newCategory() + "-1"
	all, err := l.appendEvents(ctx, stream, 4)
	if err != nil {
		return err
	}
	for from, revisions := range [][]int{{0}, {1, 0}, {2, 1, 0}, {3, 2, 1, 0}} {
		if err := l.checkReadFrom(ctx, stream, eventstore.Revision(from), eventstore.Backward, all, revisions); err != nil {
			return err
		}
	}
	return l.checkReadFrom(ctx, stream, eventstore.End, eventstore.Backward, all, []int{3, 2, 1, 0})
}

// readsLongStream reads 3,000 events from the beginning, from the middle and backward. A store that reads in pages must not
// lose or repeat an event between two pages.
func readsLongStream(ctx context.Context, l *storeUnderTest) error {
	const n = 3000
	stream := newCategory() + "-1"
	all, err := l.appendEvents(ctx, stream, n)
	if err != nil {
		return err
	}
	up := make([]int, n)
	for i := range up {
		up[i] = i
	}
	if err := l.checkReadFrom(ctx, stream, 0, eventstore.Forward, all, up); err != nil {
		return err
	}
	if err := l.checkReadFrom(ctx, stream, 1234, eventstore.Forward, all, up[1234:]); err != nil {
		return err
	}
	slices.Reverse(up)
	return l.checkReadFrom(ctx, stream, eventstore.End, eventstore.Backward, all, up)
}

// namesAlike writes to streams whose names are prefixes of each other or differ in case only, a different number of events
// to each.
func namesAlike(ctx context.Context, l *storeUnderTest) error {
	c := newCategory()
	held := map[string][]eventstore.ProposedEvent{}
	for i, stream := range []string{c, c + "-", c + "-1", c + "-1-1", c + "-11", c + "-1-", c + "-É", c + "-é", c + "s-1"} {
		all, err := l.appendEvents(ctx, stream, i+1)
		if err != nil {
			return err
		}
		held[stream] = all
	}
	for stream, all := range held {
		if err := l.checkStream(ctx, stream, all); err != nil {
			return err
		}
	}
	return nil
}

// stopsAnywhere breaks off reads after several numbers of events, and then reads the whole stream. A read that was broken
// off must not disturb the next one.
func stopsAnywhere(ctx context.Context, l *storeUnderTest) error {
	stream := newCategory() + "-1"
	all, err := l.appendEvents(ctx, stream, 300)
	if err != nil {
		return err
	}
	for _, n := range []int{1, 2, 150, 299, 300} {
		seen := 0
		for e, err := range l.ReadStream(ctx, stream, 0, eventstore.Forward) {
			if err != nil {
				return err
			}
			if err := checkEvent(e, stream, eventstore.Revision(seen), all[seen]); err != nil {
				return err
			}
			if seen++; seen == n {
				break
			}
		}
		if seen != n {
			return fmt.Errorf("saw %d events, want %d", seen, n)
		}
	}
	return l.checkStream(ctx, stream, all)
}

// readWhileWriting reads five streams again and again while they grow. A read may never return less than the one before.
func readWhileWriting(ctx context.Context, l *storeUnderTest) error {
	c := newCategory()
	return runParallel(10, func(i int) error {
		stream := fmt.Sprintf("%s-%d", c, i/2)
		if i%2 == 0 {
			_, err := l.appendEvents(ctx, stream, 1000)
			return err
		}
		for seen := 0; seen < 1000; {
			got, err := l.readStream(ctx, stream)
			if err != nil {
				return err
			}
			if len(got) < seen {
				return fmt.Errorf("a reader saw %d events after it had seen %d", len(got), seen)
			}
			for j := range got {
				if got[j].Revision != eventstore.Revision(j) {
					return fmt.Errorf("event %d has revision %d", j, got[j].Revision)
				}
			}
			seen = len(got)
		}
		return nil
	})
}
