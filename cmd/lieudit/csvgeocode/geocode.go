// Package csvgeocode verifies the addresses of a CSV file, row by row, and writes the file again with the results beside
// each row, which stays byte for byte what it was. Rows keep their order and memory is bounded. A run that was killed
// goes on where it was: what is written is known to the byte, so that no row is lost and none comes twice.
package csvgeocode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"lieudit/queries/address"
)

// Job is a file to work through.
type Job struct {
	In, Out   string
	Columns   []string // that hold the address, in order; none: all
	Postcode  string   // column with a postcode that answers must have; may be empty
	CityCode  string   // column with a commune's code that answers must have; may be empty
	Separator rune     // 0: the one the header has
	Encoding  string   // UTF8 or Windows1252
	Restart   bool     // forget an unfinished run
	Engine    *address.Engine
	Vintage   string              // which one the engine answers from
	Progress  func(Counts, int64) // told the bytes read of the file; may be nil
}

// The encodings there are.
const (
	UTF8        = "utf-8"
	Windows1252 = "windows-1252"
)

// Counts counts rows.
type Counts struct {
	Rows     int `json:"lignes"`
	Exact    int `json:"exactes"`
	Probable int `json:"probables"`
	NotFound int `json:"introuvables"`
	Skipped  int `json:"vides"`
	Errors   int `json:"erreurs"` // not text
}

// ErrResultExists: the result is there already.
var ErrResultExists = errors.New("there is a result already")

// Run works through the file and puts the result into place. When it returns an error, another Run of the same job
// goes on from there.
func (j Job) Run(ctx context.Context) (Counts, error) {
	if _, err := os.Lstat(j.Out); err == nil {
		return Counts{}, fmt.Errorf("%s: %w", j.Out, ErrResultExists)
	}
	header, err := j.readHeader()
	if err != nil {
		return Counts{}, err
	}
	partial, err := j.openPartialResult(header)
	if err != nil {
		return Counts{}, err
	}
	err = j.processRows(ctx, header, partial)
	if err != nil {
		return partial.state.Counts, errors.Join(err, partial.close())
	}
	return partial.state.Counts, partial.moveIntoPlace(j.Out)
}

const (
	batchRows = 256
	saveEvery = time.Second
)

// batch is rows on their way: read, then verified, then written in the order they were read.
type batch struct {
	rows      []row
	endOffset int64 // of the last row, in the text
	output    string
	counts    Counts
	verified  chan struct{}
}

// processRows verifies the rows that are left, on all processors, and writes them in order. What was written when it ends, for
// whatever reason, is saved.
func (j Job) processRows(ctx context.Context, h header, d *partialResult) (err error) {
	s, err := j.openText(d.state.BytesRead)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.saveProgress(), s.file.Close()) }()
	group, ctx := errgroup.WithContext(ctx)
	toVerify := make(chan *batch)
	toWrite := make(chan *batch, 2*runtime.GOMAXPROCS(0)) // how far reading runs ahead
	group.Go(func() error {
		defer close(toVerify)
		defer close(toWrite)
		return readBatches(ctx, newRowReader(s, h.separator, d.state.BytesRead), toVerify, toWrite)
	})
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			for b := range toVerify {
				if err := j.verifyBatch(ctx, &h, b); err != nil {
					return err
				}
			}
			return nil
		})
	}
	group.Go(func() error { return j.writeBatches(ctx, d, toWrite) })
	return group.Wait()
}

// readBatches cuts the rows into batches and hands each out twice: to whoever is free, and in order to the writer.
func readBatches(ctx context.Context, reader *rowReader, toVerify, toWrite chan<- *batch) error {
	for {
		b := &batch{verified: make(chan struct{})}
		var err error
		for len(b.rows) < batchRows && err == nil {
			var r row
			if r, err = reader.readRow(); err == nil {
				b.rows = append(b.rows, r)
			}
		}
		b.endOffset = reader.offset
		if len(b.rows) > 0 && !(sendBatch(ctx, toWrite, b) && sendBatch(ctx, toVerify, b)) {
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

func sendBatch(ctx context.Context, to chan<- *batch, b *batch) bool {
	select {
	case to <- b:
		return true
	case <-ctx.Done():
		return false
	}
}

// verifyBatch makes the lines of a batch.
func (j Job) verifyBatch(ctx context.Context, h *header, b *batch) error {
	var lines []byte
	for _, r := range b.rows {
		got, err := j.verifyRow(ctx, h, r)
		if err != nil {
			return err
		}
		b.counts.countResult(got)
		lines = append(lines, h.formatRow(r, got.values())...)
	}
	b.output, b.rows = string(lines), nil
	close(b.verified)
	return nil
}

// writeBatches adds the batches to the draft in order, and makes them sure now and then.
func (j Job) writeBatches(ctx context.Context, d *partialResult, toWrite <-chan *batch) error {
	savedAt := time.Now()
	for b := range toWrite {
		select {
		case <-b.verified:
		case <-ctx.Done():
		}
		if err := ctx.Err(); err != nil {
			return err // at the next batch, not at whichever the two channels let through
		}
		d.appendText(b.output)
		d.state.BytesRead = b.endOffset
		d.state.Counts.addCounts(b.counts)
		if j.Progress != nil {
			j.Progress(d.state.Counts, d.state.BytesRead)
		}
		if time.Since(savedAt) < saveEvery {
			continue
		}
		if err := d.saveProgress(); err != nil {
			return err
		}
		savedAt = time.Now()
	}
	return nil
}

func (t *Counts) addCounts(o Counts) {
	t.Rows += o.Rows
	t.Exact += o.Exact
	t.Probable += o.Probable
	t.NotFound += o.NotFound
	t.Skipped += o.Skipped
	t.Errors += o.Errors
}
