package vintage

import (
	"context"
	"iter"

	"golang.org/x/sync/errgroup"
)

// batches is how many batches may wait to be used.
const batches = 4

// ahead draws items in one goroutine and uses them, in batches of a size and in their order, in another; it returns when
// both are done. The first error of either stops both.
func ahead[T any](ctx context.Context, items iter.Seq2[T, error], size int, use func([]T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	waiting := make(chan []T, batches)
	group.Go(func() error {
		defer close(waiting)
		return draw(ctx, items, size, waiting)
	})
	group.Go(func() error {
		for batch := range waiting {
			if err := use(batch); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// draw sends items in batches until there are no more or the context ends.
func draw[T any](ctx context.Context, items iter.Seq2[T, error], size int, to chan<- []T) error {
	batch := make([]T, 0, size)
	send := func() error {
		select {
		case to <- batch:
			batch = make([]T, 0, size)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for item, err := range items {
		if err != nil {
			return err
		}
		if batch = append(batch, item); len(batch) == size {
			if err := send(); err != nil {
				return err
			}
		}
	}
	return send()
}

// sorted is a commune with its rows sorted into streets.
type sorted struct {
	code       string
	streets    []gathered
	duplicates int
}

// communes gives the communes back one by one.
func (s *spill) communes(codes []string) iter.Seq2[sorted, error] {
	return func(yield func(sorted, error) bool) {
		for _, code := range codes {
			rows, err := s.read(code)
			c := sorted{code: code}
			if err == nil {
				c.streets, c.duplicates = gather(rows)
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}
