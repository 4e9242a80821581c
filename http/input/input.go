// Package input reads queries and bodies into the structs of schemas/body, by the rules these declare. What cannot
// be read at all, or lacks something required, is problem.BadRequest; broken rules are problem.Violations,
// all of them at once. Nothing is guessed, clamped or ignored.
package input

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
	shape *shape.Shape
	err   error // T's tags are wrong
}

// For is the decoder of T.
func For[T any]() Decoder[T] {
	s, err := shape.Of(reflect.TypeFor[T]())
	return Decoder[T]{s, err}
}

// Body reads the body of a request. No body at all is read as {}. A body over the limit its reader sets
// is problem.TooLarge; a problem its reader fails with is passed on. There is no parameter beside a body: each one is a
// broken rule.
func (d Decoder[T]) Body(r *http.Request) (T, error) { return d.Examine(r, nil) }

// Examine is Body, and shows examine the text of the body as it was sent, once it is whole. The text must not be kept.
func (d Decoder[T]) Examine(r *http.Request, examine func(text []byte)) (T, error) {
	text, err := readWhole(r.Body, r.ContentLength)
	if err != nil {
		var none T
		return none, unread(err)
	}
	if examine != nil {
		examine(text)
	}
	v, err := d.Text(text)
	beside := noQuery(r.URL.RawQuery)
	if isMalformed(beside) && !isMalformed(err) {
		return v, beside
	}
	return v, cmp.Or(err, beside)
}

// firstRead is the most that is made room for before a body has begun to come.
const firstRead = 64 << 10

// readWhole reads a body to its end. Room for all of the length that was declared is made once the first of it is there:
// by then it is within its limits.
func readWhole(body io.Reader, declared int64) ([]byte, error) {
	text := make([]byte, 0, min(max(declared, 0), firstRead)+bytes.MinRead)
	for {
		n, err := body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case err == io.EOF:
			return text, nil
		case err != nil:
			return nil, err
		case cap(text)-len(text) >= bytes.MinRead:
		case declared > int64(len(text)):
			text = slices.Grow(text, int(declared)-len(text)+bytes.MinRead)
		default:
			text = slices.Grow(text, max(len(text), bytes.MinRead))
		}
	}
}

// noQuery says what is wrong with a query where there should be none.
func noQuery(raw string) error {
	var nothing struct{}
	return decodeQuery(raw, &shape.Shape{Kind: shape.Object}, reflect.ValueOf(&nothing).Elem())
}

func isMalformed(err error) bool {
	p, ok := errors.AsType[problem.Problem](err)
	return ok && p.Status == http.StatusBadRequest
}

// unread is the answer to a body that did not arrive whole, or was not read.
func unread(err error) error {
	if p, known := problem.Of(err); known {
		return p
	}
	return problem.BadRequest()
}

// Text reads a body's text.
func (d Decoder[T]) Text(text []byte) (T, error) {
	var v T
	if d.err != nil {
		return v, d.err
	}
	return v, decodeBody(text, d.shape, reflect.ValueOf(&v).Elem())
}

// Query reads the query of a request. Lists may be repeated, or written with commas; an optional
// parameter without a value counts as left out.
func (d Decoder[T]) Query(r *http.Request) (T, error) {
	var v T
	if d.err != nil {
		return v, d.err
	}
	return v, decodeQuery(r.URL.RawQuery, d.shape, reflect.ValueOf(&v).Elem())
}
