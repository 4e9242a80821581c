package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// contentionRules are about many writers at once. Expected revisions must decide exactly, and appends must stay whole and in
// one piece.
func contentionRules() []rule {
	return []rule{
		{name: "of 200 writers that expect one revision exactly one wins it", check: oneWinner},
		{name: "writers that retry after conflicts are all added, each at its own revision", check: allWinOnce},
		{name: "200 writers with Any are all added", check: anyAllAdded},
		{name: "the events of an append stand next to each other, whoever else writes", check: contiguous},
		{name: "an append is all there or not there at all, at every moment", check: allOrNothing},
		{name: "a stream's positions grow with its revisions under concurrent writers", check: positionsGrow},
	}
}

// oneWinner has 200 writers append with the same expected revision, three times. All but one must get a conflict that names
// the revision that the winner made.
func oneWinner(ctx context.Context, l *storeUnderTest) error {
	stream := newCategory() + "-1"
	for expected := eventstore.NoStream; expected < 2; expected++ {
		var won atomic.Int32
		err := runParallel(200, func(int) error {
			_, err := l.Append(ctx, stream, expected, newEvents(1))
			if err == nil {
				won.Add(1)
				return nil
			}
			return checkConflict("losing writer", err, stream, expected, expected+1)
		})
		if err != nil {
			return err
		}
		if n := won.Load(); n != 1 {
			return fmt.Errorf("%d writers won revision %d, want 1", n, expected+1)
		}
	}
	return nil
}

// allWinOnce has writers retry with the revision that each conflict names, until all have appended. Each event must be at
// the position that its append returned.
func allWinOnce(ctx context.Context, l *storeUnderTest) error {
	const writers = 60 // which makes some 1,800 conflicts
	stream := newCategory() + "-1"
	batches := make([][]eventstore.ProposedEvent, writers)
	places := make([]eventstore.AppendResult, writers)
	err := runParallel(writers, func(i int) (err error) {
		batches[i] = newEvents(1)
		places[i], err = l.appendUntilWon(ctx, stream, batches[i])
		return err
	})
	if err != nil {
		return err
	}
	got, err := l.readStream(ctx, stream)
	if err != nil {
		return err
	}
	return checkAdded(got, batches, places)
}

// appendUntilWon appends a batch, after each conflict with the revision that the conflict names.
func (l *storeUnderTest) appendUntilWon(ctx context.Context, stream string, batch []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	expected := eventstore.NoStream
	for {
		c, err := l.Append(ctx, stream, expected, batch)
		var at *eventstore.ConflictError
		if !errors.As(err, &at) {
			return c, err
		}
		if at.Current <= expected {
			return c, fmt.Errorf("conflict expecting %d names %d, which is not later", expected, at.Current)
		}
		expected = at.Current
	}
}

// checkAdded fails unless got is exactly the batches, each whole, once, and at the position that its append returned.
func checkAdded(got []eventstore.RecordedEvent, batches [][]eventstore.ProposedEvent, places []eventstore.AppendResult) error {
	at, total := map[uuid.UUID]eventstore.RecordedEvent{}, 0
	for _, e := range got {
		at[e.ID] = e
	}
	for i, batch := range batches {
		total += len(batch)
		for j, p := range batch {
			r := places[i].Revision - eventstore.Revision(len(batch)-1-j)
			if err := checkEvent(at[p.ID], got[0].Stream, r, p); err != nil {
				return fmt.Errorf("batch %d: %w", i, err)
			}
		}
		if last := at[batch[len(batch)-1].ID]; last.Position != places[i].Position {
			return fmt.Errorf("batch %d is at position %d, its append said %d", i, last.Position, places[i].Position)
		}
	}
	if len(got) != total || len(at) != total {
		return fmt.Errorf("the stream holds %d events, %d of them distinct, want %d", len(got), len(at), total)
	}
	return nil
}

// anyAllAdded has 200 writers append batches of one to three events with Any. The stream must hold each batch whole.
func anyAllAdded(ctx context.Context, l *storeUnderTest) error {
	const writers = 200
	stream := newCategory() + "-1"
	batches := make([][]eventstore.ProposedEvent, writers)
	places := make([]eventstore.AppendResult, writers)
	err := runParallel(writers, func(i int) (err error) {
		batches[i] = newEvents(1 + i%3)
		places[i], err = l.Append(ctx, stream, eventstore.Any, batches[i])
		return err
	})
	if err != nil {
		return err
	}
	got, err := l.readStream(ctx, stream)
	if err != nil {
		return err
	}
	return checkAdded(got, batches, places)
}

// contiguous has 16 writers append batches of five to streams of their own, and reads the whole log without a filter: no
// event of another stream may stand inside a batch.
func contiguous(ctx context.Context, l *storeUnderTest) error {
	from, err := l.appendCheckpoint(ctx)
	if err != nil {
		return err
	}
	c := newCategory()
	err = runParallel(16, func(i int) error {
		for j := range 10 {
			if _, err := l.Append(ctx, fmt.Sprintf("%s-%d", c, i), eventstore.Revision(5*j-1), newEvents(5)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	read, err := l.readLog(ctx, from, nil)
	if err != nil {
		return err
	}
	return checkBatchesOfFive(read.events, c)
}

// checkBatchesOfFive fails unless the category's events stand in runs of five of one stream, with revisions that follow each
// other. all are the events of the whole log, in order.
func checkBatchesOfFive(all []eventstore.RecordedEvent, category string) error {
	of := eventstore.Filter{category}
	for i := 0; i < len(all); i++ {
		if !of.Matches(all[i].Stream) {
			continue
		}
		for j := range 5 {
			if i+j == len(all) || all[i+j].Stream != all[i].Stream || all[i+j].Revision != all[i].Revision+eventstore.Revision(j) {
				return fmt.Errorf("the append of %s@%d is torn apart after %d events", all[i].Stream, all[i].Revision, j)
			}
		}
		i += 4
	}
	return nil
}

// allOrNothing reads a stream again and again while batches of 50 are appended to it. Every read must end between two
// batches.
func allOrNothing(ctx context.Context, l *storeUnderTest) error {
	stream := newCategory() + "-1"
	done := make(chan error, 1)
	go func() {
		done <- runParallel(4, func(int) error {
			for range 10 {
				if _, err := l.Append(ctx, stream, eventstore.Any, newEvents(50)); err != nil {
					return err
				}
			}
			return nil
		})
	}()
	for {
		select {
		case err := <-done:
			return err
		default:
		}
		got, err := l.readStream(ctx, stream)
		if err == nil && len(got)%50 != 0 {
			err = fmt.Errorf("a reader saw %d events of a stream written by fifties", len(got))
		}
		if err != nil {
			return errors.Join(err, <-done)
		}
	}
}

// positionsGrow has 50 writers append to one stream and compares the positions of neighbouring revisions.
func positionsGrow(ctx context.Context, l *storeUnderTest) error {
	stream := newCategory() + "-1"
	err := runParallel(50, func(int) error {
		_, err := l.Append(ctx, stream, eventstore.Any, newEvents(4))
		return err
	})
	if err != nil {
		return err
	}
	got, err := l.readStream(ctx, stream)
	if err != nil {
		return err
	}
	for i := range got {
		if got[i].Revision != eventstore.Revision(i) {
			return fmt.Errorf("event %d of the stream has revision %d", i, got[i].Revision)
		}
		if i > 0 && got[i].Position <= got[i-1].Position {
			return fmt.Errorf("revision %d is at position %d, revision %d at %d", i, got[i].Position, i-1, got[i-1].Position)
		}
	}
	return nil
}
