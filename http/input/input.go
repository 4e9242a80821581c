// Package input reads queries and bodies into the structs of schemas/body, by the rules these declare. What cannot
// be read at all, or lacks something required, is problem.BadRequest; broken rules are problem.Violations,
// all of them at once. Nothing is guessed, clamped or ignored.
package input

import (
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"reflect"

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
// is problem.TooLarge. There is no parameter beside a body: each one is a broken rule.
func (d Decoder[T]) Body(r *http.Request) (T, error) {
	v, _, err := d.Sent(r)
	return v, err
}

// Sent is Body, and the text of the body as it was sent.
func (d Decoder[T]) Sent(r *http.Request) (T, []byte, error) {
	var sent bytes.Buffer
	sent.Grow(int(min(max(r.ContentLength, 0), firstRead)) + bytes.MinRead)
	if _, err := sent.ReadFrom(r.Body); err != nil {
		var none T
		return none, nil, unread(err)
	}
	v, err := d.Text(sent.Bytes())
	beside := noQuery(r.URL.RawQuery)
	if isMalformed(beside) && !isMalformed(err) {
		return v, sent.Bytes(), beside
	}
	return v, sent.Bytes(), cmp.Or(err, beside)
}

// firstRead is the most that is made room for on the word of the sender alone.
const firstRead = 1 << 20

// noQuery says what is wrong with a query where there should be none.
func noQuery(raw string) error {
	var nothing struct{}
	return decodeQuery(raw, &shape.Shape{Kind: shape.Object}, reflect.ValueOf(&nothing).Elem())
}

func isMalformed(err error) bool {
	p, ok := errors.AsType[problem.Problem](err)
	return ok && p.Status == http.StatusBadRequest
}

// unread is the answer to a body that did not arrive whole.
func unread(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return problem.TooLarge()
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
