package storetest

import (
	"context"
	"fmt"
	"testing"

	"lieudit/eventstore"
)

func forgetting() []rule {
	return []rule{
		{name: "a log that has forgotten its ids recognises an append with an expected revision", check: recognisesForgotten, forgets: true},
		{name: "a log that has forgotten its ids may add an append with Any again, whole", check: addsForgottenAgain, forgets: true},
	}
}

// afterwards is the log once it has forgotten which ids it was sent.
func (l *log) afterwards() *log {
	return &log{Store: l.forget(l.Store), reopen: l.reopen, forget: l.forget}
}

func recognisesForgotten(ctx context.Context, l *log) error {
	stream := category() + "-1"
	first, second := events(2), events(3)
	a, err := l.Append(ctx, stream, eventstore.NoStream, first)
	if err != nil {
		return err
	}
	b, err := l.Append(ctx, stream, 1, second)
	if err != nil {
		return err
	}
	l = l.afterwards()
	if err := l.again(ctx, stream, eventstore.NoStream, first, a); err != nil {
		return err
	}
	if err := l.again(ctx, stream, 1, second, b); err != nil {
		return err
	}
	return l.holds(ctx, stream, append(first, second...))
}

// addsForgottenAgain shows why whoever appends with Any folds what it reads so that a repeat changes nothing.
func addsForgottenAgain(ctx context.Context, l *log) error {
	stream := category() + "-1"
	batch := events(2)
	first, err := l.Append(ctx, stream, eventstore.Any, batch)
	if err != nil {
		return err
	}
	l = l.afterwards()
	again, err := l.Append(ctx, stream, eventstore.Any, batch)
	if err != nil {
		return err
	}
	if again.Revision != first.Revision+2 || again.Position <= first.Position {
		return fmt.Errorf("sent again it went to %+v, the first time to %+v: the log was to have forgotten it", again, first)
	}
	return l.holds(ctx, stream, append(batch, batch...))
}

// FillSegment appends until a journal with segments of a size has begun another one: opened again it remembers the ids
// of that one alone.
func FillSegment(t *testing.T, s eventstore.Store, size int) {
	t.Helper()
	stream, each := category()+"-filler", min(size/4, eventstore.MaxAppend)
	for filled := 0; filled <= size; filled += each {
		if _, err := s.Append(t.Context(), stream, eventstore.Any, sized(1, each)); err != nil {
			t.Fatal(err)
		}
	}
}
