package storetest

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

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

// checkDelivered says whether a read and a subscription with the filter tell exactly the events want, in order.
func (l *storeUnderTest) checkDelivered(ctx context.Context, from eventstore.Checkpoint, f eventstore.Filter, want []uuid.UUID) error {
	read, err := l.readLog(ctx, from, f)
	if err != nil {
		return err
	}
	if err := checkOrder(fmt.Sprintf("read with filter %q", f), idsOf(read.events, recordedID), want); err != nil {
		return err
	}
	s, err := l.subscribe(ctx, from, f)
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

// checkFilter appends to the streams and checks that the filter wants exactly the wanted ones.
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

func wholeCategories(ctx context.Context, l *storeUnderTest) error {
	c := newCategory()
	streams := []string{c + "s-1", c + "-1", c[:len(c)-1] + "-1", "x" + c + "-1", strings.ToUpper(c) + "-1", c + "_-1", c + ".a-1", c + "-2"}
	return l.checkFilter(ctx, eventstore.Filter{c}, streams, c+"-1", c+"-2")
}

func bareAndDashed(ctx context.Context, l *storeUnderTest) error {
	c := newCategory()
	streams := []string{c, c + "s", c + "-a-b", c + "-", c + "--", c + "-1-" + c + "s-2", "x-" + c + "-1"}
	return l.checkFilter(ctx, eventstore.Filter{c}, streams, c, c+"-a-b", c+"-", c+"--", c+"-1-"+c+"s-2")
}

func noPatterns(ctx context.Context, l *storeUnderTest) error {
	c := newCategory()
	streams := []string{c + "a-1", c + ".-1", c + ".*-1", c + "|x-1", c + `\w-1`, "x-1" + c}
	return l.checkFilter(ctx, eventstore.Filter{c + ".", c + "|x", c + `\w`}, streams, c+".-1", c+"|x-1", c+`\w-1`)
}

func severalCategories(ctx context.Context, l *storeUnderTest) error {
	a, b, other := newCategory(), newCategory(), newCategory()
	streams := []string{b + "-1", other + "-1", a + "-1", a + "-2", other + "-2", b + "-2"}
	return l.checkFilter(ctx, eventstore.Filter{a, newCategory(), b}, streams, b+"-1", a+"-1", a+"-2", b+"-2")
}

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
