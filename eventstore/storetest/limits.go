package storetest

import (
	"bytes"
	"context"
	"fmt"

	"lieudit/eventstore"
)

func limits() []rule {
	return []rule{
		{name: "an append of exactly MaxAppend is accepted, as one event and as many", check: acceptsMax},
		{name: "an append one byte above MaxAppend is too large and adds nothing", check: refusesAboveMax},
		{name: "an append of 2,000 events keeps their order", check: keepsManyInOrder},
	}
}

// sized makes n events whose types, data and metadata hold size bytes together.
func sized(n, size int) []eventstore.Proposed {
	batch := events(n)
	left := size
	for i := range batch {
		share := left / (n - i)
		left -= share
		batch[i].Data = text(share - len(batch[i].Type) - len(batch[i].Metadata))
	}
	return batch
}

// text is a JSON string of n bytes.
func text(n int) []byte {
	b := bytes.Repeat([]byte("x"), n)
	b[0], b[n-1] = '"', '"'
	return b
}

func acceptsMax(ctx context.Context, l *log) error {
	for _, n := range []int{1, 7, 1000} {
		stream := category() + "-1"
		batch := sized(n, eventstore.MaxAppend)
		first, err := l.Append(ctx, stream, eventstore.NoStream, batch)
		if err != nil {
			return fmt.Errorf("MaxAppend bytes in %d events: %w", n, err)
		}
		if err := l.again(ctx, stream, eventstore.NoStream, batch, first); err != nil {
			return err
		}
		if err := l.holds(ctx, stream, batch); err != nil {
			return err
		}
	}
	return nil
}

func refusesAboveMax(ctx context.Context, l *log) error {
	for _, n := range []int{1, 7, 1000} {
		stream := category() + "-1"
		for _, size := range []int{eventstore.MaxAppend + 1, 3 * eventstore.MaxAppend} {
			_, err := l.Append(ctx, stream, eventstore.NoStream, sized(n, size))
			if err := want(fmt.Sprintf("%d bytes in %d events", size, n), err, eventstore.ErrTooLarge); err != nil {
				return err
			}
		}
		if err := l.holds(ctx, stream, nil); err != nil {
			return err
		}
	}
	return nil
}

func keepsManyInOrder(ctx context.Context, l *log) error {
	from, err := l.here(ctx)
	if err != nil {
		return err
	}
	c := category()
	batch := events(2000)
	if _, err := l.Append(ctx, c+"-1", eventstore.NoStream, batch); err != nil {
		return err
	}
	if err := l.holds(ctx, c+"-1", batch); err != nil {
		return err
	}
	read, err := l.all(ctx, from, eventstore.Filter{c})
	if err != nil {
		return err
	}
	return same(read.events, c+"-1", batch)
}
