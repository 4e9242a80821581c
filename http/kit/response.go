package kit

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net/http"

	"lieudit/http/budget"
	"lieudit/http/problem"
	"lieudit/schemas/body"
)

// Response is the result of an operation: a status and a body, or a stream. The zero Status is 200. A Response with a Stream must be
// written or discarded, and only one of the two.
type Response struct {
	Status int
	Body   any // sent as JSON
	// LateBody, if not nil, builds the Body when it is sent, after the request has been counted. The body must be small.
	LateBody func() any
	// Stream, if not nil, writes the whole answer in place of Body. Its error means that nothing was sent.
	Stream func(context.Context, http.ResponseWriter) error
	// Discard, if not nil, releases what Stream would have read. It is called if the response is not sent after all.
	Discard func()

	text []byte // Body, once it is encoded
}

// Encode encodes the body, so that Write only sends it. A stream and a LateBody are encoded when they are sent.
func (r *Response) Encode() (err error) {
	if r.LateBody != nil || r.Stream != nil || r.text != nil {
		return nil
	}
	r.text, err = encodeBody(r.Body)
	r.Body = nil
	return err
}

// Fit encodes the body and fits the reservation to its text. It fails with budget.ErrOverloaded if the answer is larger than its
// reservation and the budget has no room, but never for the answer to a command that has been carried out (isDone). A stream keeps its
// reservation.
func (r Response) Fit(reservation *budget.Answer, isDone bool) (Response, error) {
	if err := r.Encode(); err != nil {
		return Response{}, err
	}
	if r.text == nil {
		return r, nil
	}
	if isDone {
		reservation.Claim(int64(len(r.text)))
		return r, nil
	}
	return r, reservation.Fit(int64(len(r.text)))
}

// FitError fits the reservation to the answer to an error, which is large if many violations each echo their input. It returns the error
// to answer: err itself, or budget.ErrOverloaded if there is no room.
func FitError(reservation *budget.Answer, err error) error {
	p, _ := errors.AsType[problem.Problem](err)
	failure, hasRules := p.Body.(body.RuleFailure)
	if !hasRules {
		return err
	}
	if full := reservation.Fit(int64(len(failure.Detail)) * maxEchoedInput); full != nil {
		return full
	}
	return err
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
	if r.LateBody != nil {
		return WriteJSON(w, status, r.LateBody())
	}
	if r.text == nil {
		return WriteJSON(w, status, r.Body)
	}
	writeText(w, status, r.text)
	return nil
}

// RowWriter writes the rows of a file one by one. Finish writes the end and everything that is buffered; without it the file is
// incomplete. Finish may return the error of an earlier WriteRow.
type RowWriter[T any] interface {
	WriteRow(T) error
	Finish() error
}

// Format is a file format for rows. NewWriter begins a file; it cannot fail, so an error of the first bytes is returned by a later call.
type Format[T any] struct {
	MediaType string
	NewWriter func(io.Writer) RowWriter[T]
}

// Export is an answer that is written while its rows are read, so that only one row, or one page, is in memory at a time. It must be
// streamed or stopped: until then it holds the source of the rows, such as a query. It is not safe for concurrent use.
type Export[T any] struct {
	format  Format[T]
	current T
	hasRow  bool
	pull    func() (T, error, bool)
	stop    func()
}

// NewExport reads the first row, so that rows which cannot be read at all are an error before the answer begins. After an error there is
// nothing to release.
func NewExport[T any](f Format[T], rows iter.Seq2[T, error]) (*Export[T], error) {
	pull, stop := iter.Pull2(rows)
	first, err, more := pull()
	if err != nil {
		stop()
		return nil, err
	}
	return &Export[T]{f, first, more, pull, stop}, nil
}

// Stop releases the rows of an export that is not streamed. A second call does nothing.
func (e *Export[T]) Stop() { e.stop() }

// Stream sends the file and releases the rows. It sends the status 200 first, so a later error cannot become an error answer: it is
// logged and breaks the answer off. ctx is the request's; once it has ended nothing is logged, because the client is gone.
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
	logBreakOff(ctx, log, "export broken off", err)
	AbortResponse(w)
}

// JSONRows is a RowWriter of JSON: it writes Prefix before the first row, Separator between two, Suffix after the last. A file
// without rows is Prefix and Suffix. Encode returns the text of a row; it may end with a newline.
type JSONRows[T any] struct {
	Out                       io.Writer
	Prefix, Separator, Suffix string
	Encode                    func(T) ([]byte, error)

	hasBegun bool
}

// WriteRow implements RowWriter.
func (j *JSONRows[T]) WriteRow(row T) error {
	text, err := j.Encode(row)
	if err == nil {
		_, err = io.WriteString(j.Out, j.nextDelimiter(j.Separator)+string(text))
	}
	return err
}

// Finish implements RowWriter. It does not close Out.
func (j *JSONRows[T]) Finish() error {
	_, err := io.WriteString(j.Out, j.nextDelimiter("")+j.Suffix)
	return err
}

// nextDelimiter returns the text to write before the next row: Prefix the first time, then separator.
func (j *JSONRows[T]) nextDelimiter(separator string) string {
	if j.hasBegun {
		return separator
	}
	j.hasBegun = true
	return j.Prefix
}

// EncodeLine returns a row as one line of JSON, newline included.
func EncodeLine[T any](row T) ([]byte, error) {
	text, err := MarshalJSON(row)
	return append(text, '\n'), err
}
