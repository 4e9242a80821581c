// Package kit reads queries and bodies into the structs of schemas/body, by the rules these declare. What cannot
// be read at all, or lacks something required, is problem.BadRequest; broken rules are problem.Violations,
// all of them at once. Nothing is guessed, clamped or ignored.
package kit

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"

	"lieudit/http/problem"
	"lieudit/schemas/body/shape"
)

// Decoder reads requests into T. It is safe for concurrent use.
type Decoder[T any] struct {
	shape    *shape.Shape
	shapeErr error // T's tags are wrong
}

// NewDecoder is the decoder of T.
func NewDecoder[T any]() Decoder[T] {
	s, err := shape.FromType(reflect.TypeFor[T]())
	return Decoder[T]{s, err}
}

// DecodeBody reads the body of a request. No body at all is read as {}. A body over the limit its reader sets
// is problem.TooLarge; a problem its reader fails with is passed on. There is no parameter beside a body: each one is a
// broken rule.
func (d Decoder[T]) DecodeBody(r *http.Request) (T, error) { return d.DecodeAndInspectBody(r, nil) }

// DecodeAndInspectBody is Body, and shows examine the text of the body as it was sent, once it is whole. The text must not be kept.
func (d Decoder[T]) DecodeAndInspectBody(r *http.Request, inspect func(text []byte)) (T, error) {
	text, err := readAll(r.Body, r.ContentLength)
	if err != nil {
		var zero T
		return zero, bodyReadProblem(err)
	}
	if inspect != nil {
		inspect(text)
	}
	v, err := d.DecodeText(text)
	queryErr := rejectQuery(r.URL.RawQuery)
	if isBadRequest(queryErr) && !isBadRequest(err) {
		return v, queryErr
	}
	return v, cmp.Or(err, queryErr)
}

// initialBodyBuffer is the most that is made room for before a body has begun to come.
const initialBodyBuffer = 64 << 10

// readAll reads a body to its end. Room for all of the length that was declared is made once the first of it is there:
// by then it is within its limits.
func readAll(body io.Reader, contentLength int64) ([]byte, error) {
	text := make([]byte, 0, min(max(contentLength, 0), initialBodyBuffer)+bytes.MinRead)
	for {
		n, err := body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case err == io.EOF:
			return text, nil
		case err != nil:
			return nil, err
		case cap(text)-len(text) >= bytes.MinRead:
		case contentLength > int64(len(text)):
			text = slices.Grow(text, int(contentLength)-len(text)+bytes.MinRead)
		default:
			text = slices.Grow(text, max(len(text), bytes.MinRead))
		}
	}
}

// rejectQuery says what is wrong with a query where there should be none.
func rejectQuery(raw string) error {
	var nothing struct{}
	return decodeRawQuery(raw, &shape.Shape{Kind: shape.Object}, reflect.ValueOf(&nothing).Elem())
}

func isBadRequest(err error) bool {
	p, ok := errors.AsType[problem.Problem](err)
	return ok && p.Status == http.StatusBadRequest
}

// bodyReadProblem is the answer to a body that did not arrive whole, or was not read.
func bodyReadProblem(err error) error {
	if p, known := problem.FromError(err); known {
		return p
	}
	return problem.BadRequest()
}

// DecodeText reads a body's text.
func (d Decoder[T]) DecodeText(text []byte) (T, error) {
	var v T
	if d.shapeErr != nil {
		return v, d.shapeErr
	}
	return v, decodeBodyText(text, d.shape, reflect.ValueOf(&v).Elem())
}

// DecodeQuery reads the query of a request. Lists may be repeated, or written with commas; an optional
// parameter without a value counts as left out.
func (d Decoder[T]) DecodeQuery(r *http.Request) (T, error) {
	var v T
	if d.shapeErr != nil {
		return v, d.shapeErr
	}
	return v, decodeRawQuery(r.URL.RawQuery, d.shape, reflect.ValueOf(&v).Elem())
}
