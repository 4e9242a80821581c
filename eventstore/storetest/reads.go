package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// logRules are about Identity, Health and ReadAll without regard to filters: order, positions, and resuming.
func logRules() []rule {
	return []rule{
		{name: "a log has one identity, whoever asks", check: oneIdentity},
		{name: "a log that works is healthy", check: healthy},
		{name: "a read of the log yields the wanted events in order of position, then one CaughtUp", check: readsInOrder},
		{name: "positions are the same in appends, streams and the log", check: samePositions},
		{name: "a read resumes after any checkpoint without gap or repetition", check: resumesAnywhere},
		{name: "the CaughtUp of a read has a checkpoint at the end of the log", check: caughtUpAtEnd},
		{name: "events appear in the log in order while many write", check: appearsInOrder},
		{name: "a reader of the log may stop at any signal", check: stopsReadingAnywhere},
	}
}

// oneIdentity asks 20 times at once. On a new log that may be the moment at which the identity is made.
func oneIdentity(ctx context.Context, l *storeUnderTest) error {
	ids := make([]uuid.UUID, 20)
	err := runParallel(len(ids), func(i int) (err error) {
		ids[i], err = l.Identity(ctx)
		return err
	})
	if err != nil {
		return err
	}
	for _, id := range ids {
		if id != ids[0] || id == uuid.Nil {
			return fmt.Errorf("a log has the identities %s and %s", ids[0], id)
		}
	}
	return nil
}

// healthy asks for the health right after an append.
func healthy(ctx context.Context, l *storeUnderTest) error {
	if _, err := l.appendCheckpoint(ctx); err != nil {
		return err
	}
	return l.Health()
}

// appendMixed appends to streams of three new categories in turn, four streams in each. It returns the categories, and the
// events of each in order.
func (l *storeUnderTest) appendMixed(ctx context.Context, rounds int) (eventstore.Filter, map[string][]eventstore.ProposedEvent, error) {
	cats := eventstore.Filter{newCategory(), newCategory(), newCategory()}
	sent := map[string][]eventstore.ProposedEvent{}
	for i := range rounds {
		for _, c := range cats {
			batch := newEvents(1 + i%3)
			if _, err := l.Append(ctx, fmt.Sprintf("%s-%d", c, i%4), eventstore.Any, batch); err != nil {
				return nil, nil, err
			}
			sent[c] = append(sent[c], batch...)
		}
	}
	return cats, sent, nil
}

// idsOf returns the ids of events, in order.
func idsOf[T any](all []T, id func(T) uuid.UUID) []uuid.UUID {
	list := make([]uuid.UUID, len(all))
	for i := range all {
		list[i] = id(all[i])
	}
	return list
}

func proposedID(p eventstore.ProposedEvent) uuid.UUID { return p.ID }
func recordedID(r eventstore.RecordedEvent) uuid.UUID { return r.ID }

// checkOrder fails unless got is want.
func checkOrder(what string, got, want []uuid.UUID) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d events, want %d", what, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			return fmt.Errorf("%s: event %d is %s, want %s", what, i, got[i], want[i])
		}
	}
	return nil
}

// readsInOrder writes to three categories in turn and reads each by a filter.
func readsInOrder(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	cats, sent, err := l.appendMixed(ctx, 20)
	if err != nil {
		return err
	}
	for _, c := range cats {
		read, err := l.readLog(ctx, from, eventstore.Filter{c})
		if err != nil {
			return err
		}
		if err := checkOrder("category "+c, idsOf(read.events, recordedID), idsOf(sent[c], proposedID)); err != nil {
			return err
		}
	}
	return nil
}

// samePositions reads events by the log and each of them by its stream, and compares position, id and time.
func samePositions(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	for i := range 10 {
		if _, err := l.Append(ctx, fmt.Sprintf("%s-%d", c, i%2), eventstore.Any, newEvents(3)); err != nil {
			return err
		}
	}
	read, err := l.readLog(ctx, from, eventstore.Filter{c})
	if err != nil {
		return err
	}
	for _, e := range read.events {
		for got, err := range l.ReadStream(ctx, e.Stream, e.Revision, eventstore.Forward) {
			if err != nil || got.Position != e.Position || got.ID != e.ID || !got.Time.Equal(e.Time) {
				return fmt.Errorf("%s@%d: the log holds %s at %d, the stream %s at %d (%v)", e.Stream, e.Revision, e.ID, e.Position, got.ID, got.Position, err)
			}
			break
		}
	}
	return nil
}

// resumesAnywhere resumes a read after the checkpoint of each of its signals. The rest must be what followed.
func resumesAnywhere(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	cats, _, err := l.appendMixed(ctx, 5)
	if err != nil {
		return err
	}
	whole, err := l.readLog(ctx, from, cats)
	if err != nil {
		return err
	}
	seen := 0
	for _, s := range whole.signals {
		if s.Kind == eventstore.EventAppeared {
			seen++
		}
		rest, err := l.readLog(ctx, s.Checkpoint, cats)
		if err != nil {
			return err
		}
		if err := checkOrder("resumed read", idsOf(rest.events, recordedID), idsOf(whole.events[seen:], recordedID)); err != nil {
			return err
		}
	}
	return nil
}

// caughtUpAtEnd appends a wanted and then an unwanted event and reads, 20 times. Each read must reach the unwanted one, so
// that the next does not read it again.
func caughtUpAtEnd(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	for i := range 20 {
		var p eventstore.Position
		for _, stream := range []string{c + "-1", newCategory() + "-unwanted"} {
			at, err := l.Append(ctx, stream, eventstore.Any, newEvents(1))
			if err != nil {
				return err
			}
			p = at.Position
		}
		read, err := l.readLog(ctx, from, eventstore.Filter{c})
		if err != nil {
			return err
		}
		if len(read.events) != 1 || read.last.Position < p {
			return fmt.Errorf("read %d: %d events up to %d, want 1 up to %d or later", i, len(read.events), read.last.Position, p)
		}
		from = read.last
	}
	return nil
}

// appearsInOrder reads the log step by step while eight writers append. Together the steps must be what one read yields
// afterwards: no event may appear before the place where a reader has already been.
func appearsInOrder(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	done := make(chan error, 1)
	go func() {
		done <- runParallel(8, func(i int) error {
			_, err := l.appendEvents(ctx, fmt.Sprintf("%s-%d", c, i), 200)
			return err
		})
	}()
	var stepwise []uuid.UUID
	for checkpoint := from; len(stepwise) < 1600; {
		read, err := l.readLog(ctx, checkpoint, eventstore.Filter{c})
		if err != nil {
			return errors.Join(err, <-done)
		}
		stepwise = append(stepwise, idsOf(read.events, recordedID)...)
		checkpoint = read.last
	}
	if err := <-done; err != nil {
		return err
	}
	whole, err := l.readLog(ctx, from, eventstore.Filter{c})
	if err != nil {
		return err
	}
	return checkOrder("log read step by step", stepwise, idsOf(whole.events, recordedID))
}

// stopsReadingAnywhere breaks off reads after several numbers of signals. The last one is CaughtUp.
func stopsReadingAnywhere(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	if _, err := l.appendEvents(ctx, c+"-1", 100); err != nil {
		return err
	}
	for _, n := range []int{1, 50, 100, 101} {
		seen := 0
		for _, err := range l.ReadAll(ctx, from, eventstore.Filter{c}) {
			if err != nil {
				return err
			}
			if seen++; seen == n {
				break
			}
		}
		if seen != n {
			return fmt.Errorf("saw %d signals, want %d", seen, n)
		}
	}
	return nil
}

// filterRules are about what a Filter matches, for ReadAll and Subscribe alike. The names of the streams are chosen to catch
// a store that compares prefixes or patterns.
func filterRules() []rule {
	return []rule{
		{name: "a filter matches whole categories, not beginnings of names", check: wholeCategories},
		{name: "a filter matches the stream named like the category, and ids with dashes", check: bareAndDashed},
		{name: "a filter's categories hold no pattern", check: noPatterns},
		{name: "a filter of several categories yields them in one order", check: severalCategories},
		{name: "an empty filter wants every stream but those that begin with $", check: everyStream},
		{name: "a filter that nothing matches yields CaughtUp alone", check: nothingMatches},
	}
}

// checkDelivered fails unless a read and a subscription with the filter yield exactly the events with the ids want, in order.
func (l *storeUnderTest) checkDelivered(ctx context.Context, from eventstore.Checkpoint, f eventstore.Filter, want []uuid.UUID) error {
	read, err := l.readLog(ctx, from, f)
	if err != nil {
		return err
	}
	if err := checkOrder(fmt.Sprintf("read with filter %q", f), idsOf(read.events, recordedID), want); err != nil {
		return err
	}
	s, err := l.startSubscription(ctx, from, f)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.readUntilCaughtUp(0); err != nil {
		return err
	}
	return checkOrder(fmt.Sprintf("subscription with filter %q", f), idsOf(s.events, recordedID), want)
}

// appendOneEach appends an event to each of the streams and returns their ids by stream.
func (l *storeUnderTest) appendOneEach(ctx context.Context, streams ...string) (map[string]uuid.UUID, error) {
	sent := map[string]uuid.UUID{}
	for _, stream := range streams {
		batch := newEvents(1)
		if _, err := l.Append(ctx, stream, eventstore.NoStream, batch); err != nil {
			return nil, err
		}
		sent[stream] = batch[0].ID
	}
	return sent, nil
}

// checkFilter appends to streams and fails unless the filter yields the events of exactly the wanted ones.
func (l *storeUnderTest) checkFilter(ctx context.Context, f eventstore.Filter, streams []string, wanted ...string) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	sent, err := l.appendOneEach(ctx, streams...)
	if err != nil {
		return err
	}
	var want []uuid.UUID
	for _, stream := range wanted {
		want = append(want, sent[stream])
	}
	return l.checkDelivered(ctx, from, f, want)
}

// wholeCategories writes to streams whose names begin with, end with or resemble the category.
func wholeCategories(ctx context.Context, l *storeUnderTest) error {
	c := newCategory()
	streams := []string{c + "s-1", c + "-1", c[:len(c)-1] + "-1", "x" + c + "-1", strings.ToUpper(c) + "-1", c + "_-1", c + ".a-1", c + "-2"}
	return l.checkFilter(ctx, eventstore.Filter{c}, streams, c+"-1", c+"-2")
}

// bareAndDashed writes to the stream named like the category and to streams with further dashes, which all belong to it.
func bareAndDashed(ctx context.Context, l *storeUnderTest) error {
	c := newCategory()
	streams := []string{c, c + "s", c + "-a-b", c + "-", c + "--", c + "-1-" + c + "s-2", "x-" + c + "-1"}
	return l.checkFilter(ctx, eventstore.Filter{c}, streams, c, c+"-a-b", c+"-", c+"--", c+"-1-"+c+"s-2")
}

// noPatterns filters by categories that are valid regular expressions. Each must match only itself.
func noPatterns(ctx context.Context, l *storeUnderTest) error {
	c := newCategory()
	streams := []string{c + "a-1", c + ".-1", c + ".*-1", c + "|x-1", c + `\w-1`, "x-1" + c}
	return l.checkFilter(ctx, eventstore.Filter{c + ".", c + "|x", c + `\w`}, streams, c+".-1", c+"|x-1", c+`\w-1`)
}

// severalCategories filters by three categories, one of which has no stream.
func severalCategories(ctx context.Context, l *storeUnderTest) error {
	a, b, other := newCategory(), newCategory(), newCategory()
	streams := []string{b + "-1", other + "-1", a + "-1", a + "-2", other + "-2", b + "-2"}
	return l.checkFilter(ctx, eventstore.Filter{a, newCategory(), b}, streams, b+"-1", a+"-1", a+"-2", b+"-2")
}

// everyStream reads with an empty filter and looks for its own events among those of others.
func everyStream(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	sent, err := l.appendOneEach(ctx, c, c+"-1", "a$"+c)
	if err != nil {
		return err
	}
	read, err := l.readLog(ctx, from, nil)
	if err != nil {
		return err
	}
	found := 0
	for _, e := range read.events {
		if sent[e.Stream] == e.ID {
			found++
		}
	}
	if found != len(sent) {
		return fmt.Errorf("an empty filter yields %d of %d events", found, len(sent))
	}
	return nil
}

// nothingMatches reads with a category that has no stream.
func nothingMatches(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	if _, err := l.appendCheckpoint(ctx); err != nil {
		return err
	}
	return l.checkDelivered(ctx, from, eventstore.Filter{newCategory()}, nil)
}
