package csvupload

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

// Extension is the columns that are added to a table.
type Extension struct {
	// Columns are their names. A column that the table has already is overwritten where it stands.
	Columns []string
	// Fill returns the cells of the columns for each of some rows, and how many of the rows were answered. It is called for
	// several batches at once. Rows have as many cells as the table has columns. Its error ends the work.
	Fill func(ctx context.Context, rows [][]string) (cells [][]string, answered int, err error)
	// Workers bounds how many calls of Fill run at once, over all files that share it.
	Workers *semaphore.Weighted
}

const (
	// A batch has at most so many rows, and so many bytes of text before its last row.
	batchRows  = 128
	batchBytes = 256 << 10
	// maxAhead is how many batches are read before the oldest of them is written.
	maxAhead = 8
)

// batch is some rows that are filled and written together. It belongs to the reader, then to the goroutine that fills it, and to
// the writer once filled is closed.
type batch struct {
	rows     [][]string
	cells    [][]string
	answered int
	filled   chan struct{}
}

// Extend writes the table with the columns of an extension, and returns how many of the rows that were written had been answered.
// That number is valid beside an error too. It returns when all its goroutines have ended.
func (t *Table) Extend(ctx context.Context, out io.Writer, x Extension) (answered int, err error) {
	group, ctx := errgroup.WithContext(ctx)
	batches := make(chan *batch, maxAhead)
	group.Go(func() error {
		defer close(batches)
		return t.readBatches(ctx, group, batches, x)
	})
	group.Go(func() (err error) {
		answered, err = t.writeBatches(ctx, out, batches, x.Columns)
		return err
	})
	err = group.Wait()
	return answered, err
}

// readBatches sends the batches to the writer, in the order of the file, and starts to fill each.
func (t *Table) readBatches(ctx context.Context, group *errgroup.Group, batches chan<- *batch, x Extension) error {
	rows := t.openRows()
	if _, err := rows.read(); err != nil { // the header
		return err
	}
	for {
		b, err := t.readBatch(rows)
		if len(b.rows) > 0 {
			select {
			case batches <- b:
			case <-ctx.Done():
				return ctx.Err()
			}
			if err := x.Workers.Acquire(ctx, 1); err != nil {
				return err
			}
			group.Go(func() error {
				defer x.Workers.Release(1)
				return b.fill(ctx, x)
			})
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readBatch reads rows up to the size of a batch. The rows that were read before an error come with it.
func (t *Table) readBatch(rows *rowReader) (*batch, error) {
	b := &batch{filled: make(chan struct{})}
	for size := 0; len(b.rows) < batchRows && size < batchBytes; {
		row, err := rows.read()
		if err != nil {
			return b, err
		}
		for _, cell := range row {
			size += len(cell)
		}
		b.rows = append(b.rows, t.fitToHeader(row))
	}
	return b, nil
}

// fitToHeader gives a row as many cells as the header has. Missing ones are empty; surplus ones become part of the last.
func (t *Table) fitToHeader(row []string) []string {
	width := len(t.Columns)
	if len(row) > width {
		return append(row[:width-1:width-1], strings.Join(row[width-1:], string(t.separator)))
	}
	for len(row) < width {
		row = append(row, "")
	}
	return row
}

// fill fills a batch and closes filled. After an error filled stays open: the error ends the context, for which the writer waits
// too. A panic becomes an error, since nobody else would recover it in this goroutine.
func (b *batch) fill(ctx context.Context, x Extension) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	if b.cells, b.answered, err = x.Fill(ctx, b.rows); err != nil {
		return err
	}
	close(b.filled)
	return nil
}

// writeBatches writes the header and the batches, each at once.
func (t *Table) writeBatches(ctx context.Context, out io.Writer, batches <-chan *batch, columns []string) (answered int, err error) {
	encoder, err := t.encoding.encode(out)
	if err != nil {
		return 0, err
	}
	places := t.placeColumns(columns)
	if err := t.writeHeader(encoder, columns, places); err != nil {
		return 0, err
	}
	for b := range batches {
		select {
		case <-b.filled:
		case <-ctx.Done():
			return answered, ctx.Err()
		}
		if err := t.writeRows(encoder, b.rows, b.cells, places); err != nil {
			return answered, err
		}
		answered += b.answered
	}
	return answered, encoder.Close()
}

// placeColumns is the place of each added column in a row: that of the column it overwrites, else behind all others.
func (t *Table) placeColumns(columns []string) []int {
	places, next := make([]int, len(columns)), len(t.Columns)
	for i, name := range columns {
		if places[i] = t.Column(name); places[i] < 0 {
			places[i] = next
			next++
		}
	}
	return places
}

// writeHeader writes the header with the names of the added columns. A name with any separator in it is quoted, so that whoever
// reads the answer finds the same separator as was found in the file.
func (t *Table) writeHeader(out io.Writer, columns []string, places []int) error {
	names := slices.Clone(t.header)
	for i, name := range columns {
		if places[i] >= len(t.header) {
			names = append(names, name)
		}
	}
	for i, name := range names {
		if strings.ContainsAny(name, "\"\r\n"+separators) || strings.TrimSpace(name) != name {
			names[i] = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		}
	}
	lineEnd := "\n"
	if t.useCRLF {
		lineEnd = "\r\n"
	}
	_, err := io.WriteString(out, strings.Join(names, string(t.separator))+lineEnd)
	return err
}

// writeRows writes rows with the cells of the added columns at their places.
func (t *Table) writeRows(out io.Writer, rows, cells [][]string, places []int) error {
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	w.Comma, w.UseCRLF = t.separator, t.useCRLF
	for i, row := range rows {
		for j, cell := range cells[i] {
			if places[j] < len(row) {
				row[places[j]] = cell
			} else {
				row = append(row, cell)
			}
		}
		if err := w.Write(row); err != nil {
			return err
		}
	}
	w.Flush()
	_, err := out.Write(text.Bytes())
	return err
}
