// Package csvgeocode verifies the addresses of a CSV file, row by row, and writes a copy of the file with result columns next to
// each row. The rows keep their order and their bytes, memory is bounded whatever the size of the file, and a run that was killed
// resumes without losing or repeating a row. Package csvfile reads and writes the rows, and says what differs in the copy.
//
// Job.Run opens the file and finds its layout: which columns hold the address, by the table of names of package mapping if the job
// names none. Run then opens a partialResult and
// passes batches of rows from goroutine to goroutine. readBatches sends each batch to both channels, so the writer receives
// batches in the order of the file and waits for each until it is verified:
//
//	RowReader ──> readBatches ──> toVerify ──> verifyBatch (one a processor)
//	                   │                           │ closes batch.verified
//	                   └────────> toWrite ──> writeBatches ──> partialResult ──> Out
//
// verifyBatch makes address.Query of each row (header.queries), takes the best match as a result, and formats the line.
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

	"lieudit/http/csvfile"
	"lieudit/queries/address"
)

// Job is one CSV file to geocode.
type Job struct {
	In, Out   string   // paths; next to Out a run keeps Out.part and Out.resume
	Columns   []string // that hold the address, in order; detected if empty
	Postcode  string   // column with the postcode that a match must have; "" for no filter
	CityCode  string   // column with the commune's INSEE code that a match must have; "" for no filter
	Separator rune     // between fields; detected if 0
	Encoding  string   // one of record.Encodings(); detected if ""
	Prefix    string   // of the names of the result's columns; if "", the first of result_, result2_… that the file lacks
	Fallback  bool     // the typed commune answers if the address is not found
	Explain   bool     // if nothing is found, the column motif says why
	Restart   bool     // drop the rows of an unfinished run and begin with the first
	Engine    *address.Engine
	Vintage   string              // name of the engine's vintage; a resumed run must have the same
	Start     func(Layout)        // receives the layout of the file before the first row is verified; may be nil
	Progress  func(Counts, int64) // receives the counts and the bytes of text read, after each batch; may be nil
}

// UTF8 is the encoding that is checked: a row that is not valid is counted, and its bytes are kept.
const UTF8 = "utf-8"

// Counts is the number of rows, in all and by result. A resumed run continues from the counts of the run before. The JSON
// keys are part of the command's output and of Out.resume.
type Counts struct {
	Rows        int `json:"lignes"`
	Exact       int `json:"exactes"`
	Probable    int `json:"probables"`
	CommuneOnly int `json:"communes_seules"` // the commune answers instead of the address
	NotFound    int `json:"introuvables"`
	Skipped     int `json:"vides"`   // without an address
	Errors      int `json:"erreurs"` // not text in the file's encoding
}

// ErrResultExists says that Out exists already. It is never overwritten.
var ErrResultExists = errors.New("there is a result already")

// Run geocodes the file and renames the result to Out once it is complete: Out never holds a part of a result. After an
// error, a kill or the end of ctx, another Run of the same job resumes. Its errors are *csvfile.FormatError, *csvfile.RowError, *ColumnError,
// *NoAddressError, ErrResultExists, ErrRunMismatch, ErrRunDamaged, ErrRunInProgress and those of files, of the engine and of
// ctx. The counts are valid even with an error: they are the rows that the next Run need not verify again.
func (j Job) Run(ctx context.Context) (Counts, error) {
	if err := j.checkOutIsFree(); err != nil {
		return Counts{}, err
	}
	header, err := j.readHeader()
	if err != nil {
		return Counts{}, err
	}
	defer header.input.Close() // nothing is written to it
	partial, err := j.openPartialResult(header)
	if err != nil {
		return Counts{}, err
	}
	if j.Start != nil {
		j.Start(header.describe())
	}
	err = j.processRows(ctx, header, partial)
	if err != nil {
		return partial.state.Counts, errors.Join(err, partial.close())
	}
	return partial.state.Counts, partial.moveIntoPlace(j.Out)
}

// checkOutIsFree returns ErrResultExists if Out exists.
func (j Job) checkOutIsFree() error {
	if _, err := os.Lstat(j.Out); err == nil {
		return fmt.Errorf("%s: %w", j.Out, ErrResultExists)
	}
	return nil
}

const (
	batchRows  = 256         // rows of a batch: enough that channels cost little compared with the verifications
	batchBytes = 1 << 20     // memory of its rows, before the last
	saveEvery  = time.Second // between two saves of progress: the work that a kill may cost
)

// batch is some rows that are read, verified and written together. It belongs to the reader, then to one verifier, and to
// the writer once verified is closed.
type batch struct {
	rows      []csvfile.Row
	endOffset int64         // end of the last row, in bytes of the text
	output    []byte        // lines to write; valid once verified is closed
	counts    Counts        // of these rows; valid once verified is closed
	verified  chan struct{} // closed by verifyBatch
}

// processRows verifies the rows that no earlier run has written, on all processors, and writes them in order. Whatever ends
// it, the rows written by then are saved. It returns when all its goroutines have ended.
func (j Job) processRows(ctx context.Context, h header, p *partialResult) (err error) {
	rows, err := h.Rows(p.state.BytesRead)
	if err != nil {
		return fmt.Errorf("%s: continue at byte %d: %w", j.In, p.state.BytesRead, err)
	}
	defer func() { err = errors.Join(err, p.saveProgress()) }()
	group, ctx := errgroup.WithContext(ctx)
	toVerify := make(chan *batch)
	toWrite := make(chan *batch, 2*runtime.GOMAXPROCS(0)) // bounds how far reading is ahead of writing
	group.Go(func() error {
		defer close(toVerify)
		defer close(toWrite)
		return readBatches(ctx, rows, toVerify, toWrite)
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

// readBatches reads the rows to the end and sends each batch of them to the writer first, which sets the order, and then to
// the next free verifier. Rows read before an error are still sent.
func readBatches(ctx context.Context, reader *csvfile.RowReader, toVerify, toWrite chan<- *batch) error {
	for {
		b := &batch{verified: make(chan struct{})}
		var err error
		for size := 0; len(b.rows) < batchRows && size < batchBytes && err == nil; {
			var r csvfile.Row
			if r, err = reader.Read(); err == nil {
				b.rows = append(b.rows, r)
				size += r.Size()
			}
		}
		b.endOffset = reader.Offset()
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

// sendBatch sends a batch and returns true, or false when the context has ended before somebody received it.
func sendBatch(ctx context.Context, to chan<- *batch, b *batch) bool {
	select {
	case to <- b:
		return true
	case <-ctx.Done():
		return false
	}
}

// verifyBatch verifies the rows of a batch, formats their lines and closes verified. After an error verified stays open:
// the error ends the group's context, for which the writer waits too.
func (j Job) verifyBatch(ctx context.Context, h *header, b *batch) error {
	var lines []byte
	for _, r := range b.rows {
		got, err := j.verifyRow(ctx, h, r)
		if err != nil {
			return err
		}
		b.counts.countResult(got)
		lines = h.writer.AppendRow(lines, &r, got.values())
	}
	b.rows = nil // they are not needed while the batch waits for the writer
	var err error
	if b.output, err = h.writer.Encode(lines); err != nil {
		return err
	}
	close(b.verified)
	return nil
}

// writeBatches appends the batches to the partial result in the order of the file, calls Progress after each, and saves
// the progress every saveEvery. It alone changes the state of the partial result.
func (j Job) writeBatches(ctx context.Context, p *partialResult, toWrite <-chan *batch) error {
	savedAt := time.Now()
	for b := range toWrite {
		select {
		case <-b.verified:
		case <-ctx.Done():
		}
		if err := ctx.Err(); err != nil {
			return err // select chooses at random when both are ready; a batch that is not verified must not be written
		}
		p.appendBytes(b.output)
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
	c.CommuneOnly += o.CommuneOnly
	c.NotFound += o.NotFound
	c.Skipped += o.Skipped
	c.Errors += o.Errors
}
