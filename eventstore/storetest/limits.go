package storetest

import (
	"bytes"
	"context"
	"fmt"

	"lieudit/eventstore"
)

func limitRules() []rule {
	return []rule{
		{name: "an append of exactly MaxAppend is accepted, as one event and as many", check: acceptsMax},
		{name: "an append one byte above MaxAppend is too large and adds nothing", check: refusesAboveMax},
		{name: "an append of 2,000 events keeps their order", check: keepsManyInOrder},
	}
}

// eventsOfSize makes n events whose types, data and metadata hold size bytes together.
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

// jsonText is a JSON string of n bytes.
func jsonText(n int) []byte {
	b := bytes.Repeat([]byte("x"), n)
	b[0], b[n-1] = '"', '"'
	return b
}

func acceptsMax(ctx context.Context, l *storeUnderTest) error {
	for _, n := range []int{1, 7, 1000} {
		stream := newCategory() + "-1"
		batch := eventsOfSize(n, eventstore.MaxAppendBytes)
		first, err := l.Append(ctx, stream, eventstore.NoStream, batch)
		if err != nil {
			return fmt.Errorf("MaxAppend bytes in %d events: %w", n, err)
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
