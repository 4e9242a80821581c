package csvupload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"lieudit/http/csvfile"
)

// Extension describes the columns that are added to a table.
type Extension struct {
	// Columns are their names. A column that the table already has is overwritten.
	Columns []string
	// Fill returns a Result for each row of a batch. It is called for several batches concurrently. A row has at most as many cells as
	// the table has columns; missing cells are empty. An error of Fill ends the work.
	Fill func(ctx context.Context, rows [][]string) ([]Result, error)
	// Refused are the added cells of a row that would grow by more than maxAddedBytes.
	Refused []string
	// AcquireWorker waits until Fill may be called for a batch; release is called after the batch.
	AcquireWorker func(ctx context.Context) (release func(), err error)
}

// Result is the answer to one row.
type Result struct {
	Cells      []string // one for each of Extension.Columns
	IsAnswered bool     // false: the row was refused
}

const (
	// A batch has at most batchRows rows. It gets no further row once it takes batchBytes of memory.
	batchRows  = 32
	batchBytes = 256 << 10
	// maxAhead is how many batches, and aheadBytes how many bytes of memory, are read before the oldest batch is written.
	maxAhead   = 16
	aheadBytes = 4 << 20
	// maxAddedBytes is how much longer a row can become by missing cells and by added ones, in bytes of the text. An address takes some 500.
	// The limit bounds the length of the answer by that of the file.
	maxAddedBytes = 1 << 10
	// MaxMissingCells is how many cells a row may lack. With more, the answer might exceed maxAddedBytes.
	MaxMissingCells = maxAddedBytes / 2
)

// batch holds rows that are filled and written together. It belongs to the reader, then to the goroutine that fills it, and once filled
// is closed to the writer.
type batch struct {
	rows    []csvfile.Row
	size    int64 // of the rows, in bytes of memory; at most aheadBytes
	results []Result
	filled  chan struct{}
}

// Extend writes the table with the columns of an extension, and returns how many of the written rows were answered, with an error too.
// It returns when all its goroutines have ended.
func (t *Table) Extend(ctx context.Context, out io.Writer, x Extension) (answered int, err error) {
	group, ctx := errgroup.WithContext(ctx)
	w := &rowWriter{out: out, columns: t.file.AddColumns(x.Columns), extension: x}
	batches, ahead := make(chan *batch, maxAhead), semaphore.NewWeighted(aheadBytes)
	group.Go(func() error {
		defer close(batches)
		return t.readBatches(ctx, group, batches, ahead, x)
	})
	group.Go(func() error { return w.writeBatches(ctx, batches, ahead) })
	err = group.Wait()
	return w.answered, err
}

// readBatches sends the batches to the writer, in the order of the file, and starts a goroutine that fills each.
func (t *Table) readBatches(ctx context.Context, group *errgroup.Group, batches chan<- *batch, ahead *semaphore.Weighted, x Extension) error {
	rows, err := t.file.Rows(t.file.FirstRow)
	if err != nil {
		return err
	}
	for {
		b, readErr := t.readBatch(rows)
		if len(b.rows) > 0 {
			if err := ahead.Acquire(ctx, b.size); err != nil {
				return err
			}
			select {
			case batches <- b:
			case <-ctx.Done():
				return ctx.Err()
			}
			release, err := x.AcquireWorker(ctx)
			if err != nil {
				return err
			}
			group.Go(func() error {
				defer release()
				return t.fill(ctx, b, x)
			})
		}
		if errors.Is(readErr, io.EOF) {
			return nil
		}
		if readErr != nil {
			return readErr
		}
	}
}

// readBatch reads the rows of a batch. With an error it returns the rows that were read before it.
func (t *Table) readBatch(rows *csvfile.RowReader) (*batch, error) {
	b, size := &batch{filled: make(chan struct{})}, 0
	defer func() { b.size = min(int64(size), aheadBytes) }()
	for len(b.rows) < batchRows && size < batchBytes {
		row, err := rows.Read()
		if err != nil {
			return b, err
		}
		size += row.Size()
		b.rows = append(b.rows, row)
	}
	return b, nil
}

// fill fills a batch and closes filled. After an error filled stays open: the error cancels the context, for which the writer waits
// too. A panic becomes an error, since nothing else recovers panics of this goroutine.
func (t *Table) fill(ctx context.Context, b *batch, x Extension) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	rows := make([][]string, len(b.rows))
	for i := range b.rows {
		rows[i] = t.file.Values(b.rows[i])
	}
	if b.results, err = x.Fill(ctx, rows); err != nil {
		return err
	}
	close(b.filled)
	return nil
}

// rowWriter writes the rows of a table with the columns of an extension.
type rowWriter struct {
	out       io.Writer
	columns   *csvfile.ColumnWriter
	extension Extension
	text      []byte // of the batch that is being written
	answered  int    // answered rows that were written
}

// writeBatches writes the header and the batches, each with one Write.
func (w *rowWriter) writeBatches(ctx context.Context, batches <-chan *batch, ahead *semaphore.Weighted) error {
	w.text = w.columns.AppendHeader(nil)
	if err := w.writeText(); err != nil {
		return err
	}
	for b := range batches {
		select {
		case <-b.filled:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := w.writeBatch(b); err != nil {
			return err
		}
		ahead.Release(b.size)
	}
	return nil
}

// writeBatch writes the rows of a batch, and then counts those that were answered.
func (w *rowWriter) writeBatch(b *batch) error {
	w.text = w.text[:0]
	answered := 0
	for i, result := range b.results {
		if w.appendRow(&b.rows[i], result.Cells) && result.IsAnswered {
			answered++
		}
	}
	if err := w.writeText(); err != nil {
		return err
	}
	w.answered += answered
	return nil
}

func (w *rowWriter) writeText() error {
	encoded, err := w.columns.Encode(w.text)
	if err != nil {
		return err
	}
	_, err = w.out.Write(encoded)
	return err
}

// appendRow appends a row with the added cells, and reports whether these fit within maxAddedBytes. Otherwise it appends the row
// with the cells of a refused one, or if not even these fit, the row alone.
func (w *rowWriter) appendRow(r *csvfile.Row, added []string) (isWhole bool) {
	start := len(w.text)
	limit := start + len(r.Text) + maxAddedBytes
	if w.text = w.columns.AppendRow(w.text, r, added); len(w.text) <= limit {
		return true
	}
	w.text = w.columns.AppendRow(w.text[:start], r, w.extension.Refused)
	if len(w.text) > limit {
		w.text = w.columns.AppendUnchanged(w.text[:start], r)
	}
	return false
}
