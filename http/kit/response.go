package kit

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"net/http"
)

// Response is what an operation answers: a status and a body, or a stream. The zero Status is 200.
type Response struct {
	Status int
	Body   any // is sent as JSON
	// Stream writes the whole answer; nil: Body is the answer. Its error means that nothing was sent.
	Stream func(context.Context, http.ResponseWriter) error
	// Discard releases what Stream would have read; nil: there is nothing to release. It is called where the response is
	// not sent after all.
	Discard func()
}

// OK is the answer 200 with a body.
func OK(body any) (Response, error) { return Response{Status: http.StatusOK, Body: body}, nil }

// Created is the answer 201 with a body.
func Created(body any) (Response, error) {
	return Response{Status: http.StatusCreated, Body: body}, nil
}

// Write sends the response. An error means that nothing was sent.
func (r Response) Write(ctx context.Context, w http.ResponseWriter) error {
	if r.Stream != nil {
		return r.Stream(ctx, w)
	}
	status := r.Status
	if status == 0 {
		status = http.StatusOK
	}
	return WriteJSON(w, status, r.Body)
}

// RowWriter writes the rows of a file, one by one. A file without Finish is not complete.
type RowWriter[T any] interface {
	WriteRow(T) error
	Finish() error
}

// Format is a way to write rows as a file.
type Format[T any] struct {
	MediaType string
	NewWriter func(io.Writer) RowWriter[T]
}

// Export is an answer that is written while its rows are read, so that one row, or a page of them, is in memory at a time.
// It must be streamed or stopped.
type Export[T any] struct {
	format  Format[T]
	current T
	hasRow  bool
	pull    func() (T, error, bool)
	stop    func()
}

// NewExport reads the first row, so that rows that cannot be read at all are an error before the answer begins.
func NewExport[T any](f Format[T], rows iter.Seq2[T, error]) (*Export[T], error) {
	pull, stop := iter.Pull2(rows)
	first, err, more := pull()
	if err != nil {
		stop()
		return nil, err
	}
	return &Export[T]{f, first, more, pull, stop}, nil
}

// Stop releases the rows.
func (e *Export[T]) Stop() { e.stop() }

// Stream sends the file. What fails after its beginning is logged and breaks the answer off.
func (e *Export[T]) Stream(ctx context.Context, w http.ResponseWriter, log *slog.Logger) {
	defer e.stop()
	w.Header().Set("Content-Type", e.format.MediaType)
	w.WriteHeader(http.StatusOK)
	out := e.format.NewWriter(w)
	var err error
	for e.hasRow && err == nil {
		if err = out.WriteRow(e.current); err == nil {
			e.current, err, e.hasRow = e.pull()
		}
	}
	if err == nil {
		err = out.Finish()
	}
	if err == nil {
		return
	}
	if ctx.Err() == nil { // else the client is gone
		log.Error("export broken off", "error", err)
	}
	AbortResponse(w)
}

// JSONRows writes rows as JSON: Prefix before the first, Separator between two, Suffix after the last.
type JSONRows[T any] struct {
	Out                       io.Writer
	Prefix, Separator, Suffix string
	Encode                    func(T) ([]byte, error)

	hasRows bool
}

// WriteRow writes a row.
func (j *JSONRows[T]) WriteRow(row T) error {
	text, err := j.Encode(row)
	if err == nil {
		_, err = io.WriteString(j.Out, j.lead(j.Separator)+string(text))
	}
	return err
}

// Finish writes the end.
func (j *JSONRows[T]) Finish() error {
	_, err := io.WriteString(j.Out, j.lead("")+j.Suffix)
	return err
}

// lead is what goes before the next text.
func (j *JSONRows[T]) lead(separator string) string {
	if j.hasRows {
		return separator
	}
	j.hasRows = true
	return j.Prefix
}

// EncodeLine is a row as one line of JSON.
func EncodeLine[T any](row T) ([]byte, error) {
	text, err := MarshalJSON(row)
	return append(text, '\n'), err
}
