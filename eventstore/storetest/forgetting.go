package storetest

import (
	"context"
	"fmt"
	"testing"

	"lieudit/eventstore"
)

func forgottenIDRules() []rule {
	return []rule{
		{name: "a log that has forgotten its ids recognises an append with an expected revision", check: recognisesForgotten, needsReopenWithoutIDs: true},
		{name: "a log that has forgotten its ids may add an append with Any again, whole", check: addsForgottenAgain, needsReopenWithoutIDs: true},
	}
}

// reopenedWithoutIDs is the log once it has forgotten which ids it was sent.
func (l *storeUnderTest) reopenedWithoutIDs() *storeUnderTest {
	return &storeUnderTest{Store: l.reopenWithoutIDs(l.Store), reopen: l.reopen, reopenWithoutIDs: l.reopenWithoutIDs}
}

func recognisesForgotten(ctx context.Context, l *storeUnderTest) error {
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
	l = l.reopenedWithoutIDs()
	if err := l.checkRepeat(ctx, stream, eventstore.NoStream, first, a); err != nil {
		return err
	}
	if err := l.checkRepeat(ctx, stream, 1, second, b); err != nil {
		return err
	}
	return l.checkStream(ctx, stream, append(first, second...))
}

// addsForgottenAgain shows why whoever appends with Any folds what it reads so that a repeat changes nothing.
func addsForgottenAgain(ctx context.Context, l *storeUnderTest) error {
	stream := newCategory() + "-1"
	batch := newEvents(2)
	first, err := l.Append(ctx, stream, eventstore.Any, batch)
	if err != nil {
		return err
	}
	l = l.reopenedWithoutIDs()
	again, err := l.Append(ctx, stream, eventstore.Any, batch)
	if err != nil {
		return err
	}
	if again.Revision != first.Revision+2 || again.Position <= first.Position {
		return fmt.Errorf("sent again it went to %+v, the first time to %+v: the log was to have forgotten it", again, first)
	}
	return l.checkStream(ctx, stream, append(batch, batch...))
}

// FillSegment appends until a journal with segments of a size has begun another one: opened again it remembers the ids
// of that one alone.
func FillSegment(t *testing.T, s eventstore.Store, size int) {
	t.Helper()
	stream, each := newCategory()+"-filler", min(size/4, eventstore.MaxAppendBytes)
	for filled := 0; filled <= size; filled += each {
		if _, err := s.Append(t.Context(), stream, eventstore.Any, eventsOfSize(1, each)); err != nil {
			t.Fatal(err)
		}
	}
}
