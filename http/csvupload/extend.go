package csvupload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

// Extension describes the columns that are added to a table.
type Extension struct {
	// Columns are their names. A column that the table already has is overwritten in its place.
	Columns []string
	// Fill returns a Result for each row of a batch. It is called for several batches concurrently. A row has at most as many cells as
	// the table has columns; missing cells are empty. An error of Fill ends the work.
	Fill func(ctx context.Context, rows [][]string) ([]Result, error)
	// Refused are the added cells of a row that would become longer by more than maxAddedBytes.
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
	// maxAddedBytes is how much longer a row can become by missing cells and by added ones, in bytes of UTF-8. An address takes some 500.
	// The limit bounds the length of the answer by that of the file.
	maxAddedBytes = 1 << 10
	// MaxMissingCells is how many cells a row may lack. With more, the answer might exceed maxAddedBytes.
	MaxMissingCells = maxAddedBytes / 2
)

// batch holds rows that are filled and written together. It belongs to the reader, then to the goroutine that fills it, and once filled
// is closed to the writer.
type batch struct {
	rows    []row
	size    int64 // of the rows, in bytes of memory; at most aheadBytes
	results []Result
	filled  chan struct{}
}

// Extend writes the table with the columns of an extension, and returns how many of the written rows were answered, with an error too.
// It returns when all its goroutines have ended.
func (t *Table) Extend(ctx context.Context, out io.Writer, x Extension) (answered int, err error) {
	group, ctx := errgroup.WithContext(ctx)
	w, batches, ahead := t.newRowWriter(x), make(chan *batch, maxAhead), semaphore.NewWeighted(aheadBytes)
	group.Go(func() error {
		defer close(batches)
		return t.readBatches(ctx, group, batches, ahead, x)
	})
	group.Go(func() (err error) {
		if w.out, err = t.encoding.encode(out); err != nil {
			return err
		}
		return w.writeBatches(ctx, batches, ahead)
	})
	err = group.Wait()
	return w.answered, err
}

// readBatches sends the batches to the writer, in the order of the file, and starts a goroutine that fills each.
func (t *Table) readBatches(ctx context.Context, group *errgroup.Group, batches chan<- *batch, ahead *semaphore.Weighted, x Extension) error {
	rows := t.openRows()
	if _, err := rows.read(); err != nil { // the header
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
				return b.fill(ctx, x)
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
func (t *Table) readBatch(rows *rowReader) (*batch, error) {
	b, size := &batch{filled: make(chan struct{})}, 0
	defer func() { b.size = min(int64(size), aheadBytes) }()
	for len(b.rows) < batchRows && size < batchBytes {
		if _, err := rows.read(); err != nil {
			return b, err
		}
		row := rows.row(len(t.Columns))
		size += row.size()
		b.rows = append(b.rows, row)
	}
	return b, nil
}

// fill fills a batch and closes filled. After an error filled stays open: the error cancels the context, for which the writer waits
// too. A panic becomes an error, since nothing else recovers panics of this goroutine.
func (b *batch) fill(ctx context.Context, x Extension) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	rows := make([][]string, len(b.rows))
	for i := range b.rows {
		rows[i] = b.rows[i].cells
	}
	if b.results, err = x.Fill(ctx, rows); err != nil {
		return err
	}
	close(b.filled)
	return nil
}

// rowWriter writes the rows of a table with the columns of an extension. The text of all other cells stays as it is in the file.
type rowWriter struct {
	out       io.WriteCloser
	separator byte
	lineEnd   string
	refused   []string
	header    row
	added     []string // names of the columns
	replaced  []int    // for each column of the table, the added column that overwrites it; -1: none
	appended  []int    // the other added columns, which follow those of the table
	text      []byte   // of the batch that is being written
	answered  int      // answered rows that were written
}

// newRowWriter returns a writer whose out is not set yet.
func (t *Table) newRowWriter(x Extension) *rowWriter {
	w := &rowWriter{
		separator: t.separator, lineEnd: t.lineEnd, refused: x.Refused, header: t.header, added: x.Columns,
		replaced: make([]int, len(t.Columns)),
	}
	for i := range w.replaced {
		w.replaced[i] = -1
	}
	for i, name := range x.Columns {
		if column := t.Column(name); column >= 0 {
			w.replaced[column] = i
		} else {
			w.appended = append(w.appended, i)
		}
	}
	return w
}

// writeBatches writes the header and the batches, each with one Write. The names of the table's columns stay unchanged, so that a reader
// of the answer detects the same separator as in the file.
func (w *rowWriter) writeBatches(ctx context.Context, batches <-chan *batch, ahead *semaphore.Weighted) error {
	w.appendCells(&w.header, w.added)
	if _, err := w.out.Write(w.text); err != nil {
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
	return w.out.Close()
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
	if _, err := w.out.Write(w.text); err != nil {
		return err
	}
	w.answered += answered
	return nil
}

// appendRow appends a row with the added cells, and reports whether these fit within maxAddedBytes. Otherwise it appends the row
// with the cells of a refused one, or if not even these fit, the row alone.
func (w *rowWriter) appendRow(r *row, added []string) (isWhole bool) {
	start := len(w.text)
	limit := start + len(r.text) + maxAddedBytes
	if w.appendCells(r, added); len(w.text) <= limit {
		return true
	}
	w.text = w.text[:start]
	if w.appendCells(r, w.refused); len(w.text) <= limit {
		return false
	}
	w.text = append(append(w.text[:start], r.text...), w.lineEnd...)
	return false
}

// appendCells appends the cells of a row and the added ones, each in its column.
func (w *rowWriter) appendCells(r *row, added []string) {
	for i, column := range w.replaced {
		if i > 0 {
			w.text = append(w.text, w.separator)
		}
		switch {
		case column >= 0:
			w.appendCell(added[column])
		case i == len(r.cells)-1 && r.isLastQuoted:
			w.appendCell(r.cells[i])
		case i < len(r.cells):
			w.text = append(w.text, r.cellText(i)...)
		}
	}
	for _, column := range w.appended {
		w.text = append(w.text, w.separator)
		w.appendCell(added[column])
	}
	w.text = append(w.text, w.lineEnd...)
}

// appendCell appends a cell, in quotes if it needs them.
func (w *rowWriter) appendCell(cell string) {
	if strings.IndexByte(cell, w.separator) < 0 && !strings.ContainsAny(cell, "\"\r\n") && !strings.HasPrefix(cell, " ") {
		w.text = append(w.text, cell...)
		return
	}
	w.text = append(w.text, '"')
	w.text = append(w.text, strings.ReplaceAll(cell, `"`, `""`)...)
	w.text = append(w.text, '"')
}
