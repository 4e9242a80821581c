// Package csvgeocode verifies the addresses of a CSV file, row by row, and writes the file again with the results beside
// each row. Its constraint: a row stays byte for byte what it was and keeps its place, memory is bounded, and a run that
// was killed resumes without losing or repeating a row.
//
// Job.Run reads the header (which columns, separator, encoding), opens a partialResult and hands batches of rows from
// goroutine to goroutine. The writer waits for each batch in the order in which it was read:
//
//	rowReader ──> readBatches ──> toVerify ──> verifyBatch (one a processor)
//	                   │                           │ closes batch.verified
//	                   └────────> toWrite ──> writeBatches ──> partialResult ──> Out
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

// Job is one CSV file to geocode.
type Job struct {
	In, Out   string
	Columns   []string // that hold the address, in order; none: all
	Postcode  string   // column with the postcode that a match must have; "": no such filter
	CityCode  string   // column with the commune's INSEE code that a match must have; "": no such filter
	Separator rune     // between fields; 0: the one that the header uses
	Encoding  string   // UTF8 or Windows1252
	Restart   bool     // drop an unfinished run
	Engine    *address.Engine
	Vintage   string              // name of the engine's vintage; a resumed run must have the same
	Progress  func(Counts, int64) // receives the counts and the bytes read of In after each batch; may be nil
}

// Encodings of a file.
const (
	UTF8        = "utf-8"
	Windows1252 = "windows-1252"
)

// Counts is the number of rows, in all and by result.
type Counts struct {
	Rows     int `json:"lignes"`
	Exact    int `json:"exactes"`
	Probable int `json:"probables"`
	NotFound int `json:"introuvables"`
	Skipped  int `json:"vides"`   // without an address
	Errors   int `json:"erreurs"` // not text in the file's encoding
}

// ErrResultExists says that Out exists already. It is never overwritten.
var ErrResultExists = errors.New("there is a result already")

// Run geocodes the file and renames the result to Out once it is complete. After an error or a kill, another Run of the
// same job resumes. Its errors are *FormatError, *ColumnError, ErrResultExists, ErrRunMismatch, ErrRunInProgress and those
// of files; the counts are valid beside an error too.
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
	saveEvery = time.Second // what a kill may cost
)

// batch is some rows that are read, verified and written together.
type batch struct {
	rows      []row
	endOffset int64         // end of the last row, in bytes of the decoded text
	output    string        // lines to write; valid once verified is closed
	counts    Counts        // of these rows; valid once verified is closed
	verified  chan struct{} // closed by verifyBatch
}

// processRows verifies the remaining rows on all processors and writes them in order. Whatever ends it, what was written
// by then is saved.
func (j Job) processRows(ctx context.Context, h header, p *partialResult) (err error) {
	s, err := j.openText(p.state.BytesRead)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.saveProgress(), s.file.Close()) }()
	group, ctx := errgroup.WithContext(ctx)
	toVerify := make(chan *batch)
	toWrite := make(chan *batch, 2*runtime.GOMAXPROCS(0)) // bounds how far reading is ahead of writing
	group.Go(func() error {
		defer close(toVerify)
		defer close(toWrite)
		return readBatches(ctx, newRowReader(s, h.separator, p.state.BytesRead), toVerify, toWrite)
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
	group.Go(func() error { return j.writeBatches(ctx, p, toWrite) })
	return group.Wait()
}

// readBatches cuts the rows into batches and sends each to the writer, in order, and to the next free verifier.
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

// sendBatch is false when the context ended first.
func sendBatch(ctx context.Context, to chan<- *batch, b *batch) bool {
	select {
	case to <- b:
		return true
	case <-ctx.Done():
		return false
	}
}

// verifyBatch verifies the rows of a batch and formats its lines.
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

// writeBatches appends the batches to the partial result in order, and saves progress every saveEvery.
func (j Job) writeBatches(ctx context.Context, p *partialResult, toWrite <-chan *batch) error {
	savedAt := time.Now()
	for b := range toWrite {
		select {
		case <-b.verified:
		case <-ctx.Done():
		}
		if err := ctx.Err(); err != nil {
			return err // both channels may have been ready, and a batch that is not verified is never written
		}
		p.appendText(b.output)
		p.state.BytesRead = b.endOffset
		p.state.Counts.addCounts(b.counts)
		if j.Progress != nil {
			j.Progress(p.state.Counts, p.state.BytesRead)
		}
		if time.Since(savedAt) < saveEvery {
			continue
		}
		if err := p.saveProgress(); err != nil {
			return err
		}
		savedAt = time.Now()
	}
	return nil
}

func (c *Counts) addCounts(o Counts) {
	c.Rows += o.Rows
	c.Exact += o.Exact
	c.Probable += o.Probable
	c.NotFound += o.NotFound
	c.Skipped += o.Skipped
	c.Errors += o.Errors
}
