package sheet

import (
	"context"
	"errors"
	"io"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	batchRows = 256
	saveEvery = time.Second
)

// batch is rows on their way: read, then verified, then written in the order they were read.
type batch struct {
	rows   []row
	end    int64 // of the last row, in the text
	lines  string
	counts Tally
	ready  chan struct{}
}

// work verifies the rows that are left, on all processors, and writes them in order. What was written when it ends, for
// whatever reason, is saved.
func (j Job) work(ctx context.Context, h head, d *draft) (err error) {
	s, err := j.open(d.state.Read)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.save(), s.file.Close()) }()
	group, ctx := errgroup.WithContext(ctx)
	jobs := make(chan *batch)
	order := make(chan *batch, 2*runtime.GOMAXPROCS(0)) // how far reading runs ahead
	group.Go(func() error {
		defer close(jobs)
		defer close(order)
		return read(ctx, newRows(s, h.separator, d.state.Read), jobs, order)
	})
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			for b := range jobs {
				if err := j.answer(ctx, &h, b); err != nil {
					return err
				}
			}
			return nil
		})
	}
	group.Go(func() error { return j.write(ctx, d, order) })
	return group.Wait()
}

// read cuts the rows into batches and hands each out twice: to whoever is free, and in order to the writer.
func read(ctx context.Context, from *rows, jobs, order chan<- *batch) error {
	for {
		b := &batch{ready: make(chan struct{})}
		var err error
		for len(b.rows) < batchRows && err == nil {
			var r row
			if r, err = from.next(); err == nil {
				b.rows = append(b.rows, r)
			}
		}
		b.end = from.offset
		if len(b.rows) > 0 && !(hand(ctx, order, b) && hand(ctx, jobs, b)) {
			return ctx.Err()
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func hand(ctx context.Context, to chan<- *batch, b *batch) bool {
	select {
	case to <- b:
		return true
	case <-ctx.Done():
		return false
	}
}

// answer makes the lines of a batch.
func (j Job) answer(ctx context.Context, h *head, b *batch) error {
	var lines []byte
	for _, r := range b.rows {
		got, err := j.verify(ctx, h, r)
		if err != nil {
			return err
		}
		b.counts.count(got)
		lines = append(lines, h.line(r, got.columns())...)
	}
	b.lines, b.rows = string(lines), nil
	close(b.ready)
	return nil
}

// write adds the batches to the draft in order, and makes them sure now and then.
func (j Job) write(ctx context.Context, d *draft, order <-chan *batch) error {
	saved := time.Now()
	for b := range order {
		select {
		case <-b.ready:
		case <-ctx.Done():
		}
		if err := ctx.Err(); err != nil {
			return err // at the next batch, not at whichever the two channels let through
		}
		d.add(b.lines)
		d.state.Read = b.end
		d.state.Tally.add(b.counts)
		if j.Progress != nil {
			j.Progress(d.state.Tally, d.state.Read)
		}
		if time.Since(saved) < saveEvery {
			continue
		}
		if err := d.save(); err != nil {
			return err
		}
		saved = time.Now()
	}
	return nil
}

func (t *Tally) add(o Tally) {
	t.Rows += o.Rows
	t.Exact += o.Exact
	t.Probable += o.Probable
	t.NotFound += o.NotFound
	t.Skipped += o.Skipped
	t.Errors += o.Errors
}
