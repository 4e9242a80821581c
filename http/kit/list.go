package kit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"

	"lieudit/http/answerlimit"
)

// ListReader reads the next items of a list, in chunks of about answerlimit.Chunk bytes. more reports whether it is to be called
// again; then there may be no further item.
type ListReader[T any] func(context.Context) (items []T, more bool, err error)

// List is an answer whose body is a struct with a long list. It is encoded while the list is read, so that one chunk of it is in memory
// at a time. The text is the same as if the whole body were encoded at once.
type List[T any] struct {
	// Body returns the body with an empty list, which is not nil. It is called before the list is read, and again after it: what
	// follows the list may have become known meanwhile, such as a cursor.
	Body   func() any
	Member string // the name of the list in JSON
	Read   ListReader[T]
	Log    *slog.Logger // of what breaks the answer off

	text     bytes.Buffer // that is not sent yet
	hasItems bool
	more     bool
}

// Respond reads the beginning of the list, so that what fails at once is an error before the answer begins. A list that ends within
// answerlimit.Small bytes is an answer of known length. Of any other the rest is read while it is sent.
func (l *List[T]) Respond(ctx context.Context) (Response, error) {
	before, _, err := l.encodeAround()
	if err != nil {
		return Response{}, err
	}
	l.text.Write(before)
	for l.more = true; l.more && l.text.Len() <= answerlimit.Small; {
		if err := l.readChunk(ctx); err != nil {
			return Response{}, err
		}
	}
	if l.more {
		return Response{Stream: l.stream}, nil
	}
	return Response{text: l.text.Bytes()}, nil
}

// encodeAround encodes what stands before the items of the list, and after them.
func (l *List[T]) encodeAround() (before, after []byte, err error) {
	text, err := MarshalJSON(l.Body())
	if err != nil {
		return nil, nil, fmt.Errorf("encode answer: %w", err)
	}
	empty := `"` + l.Member + `":[]` // stands in no string, whose quotes are escaped
	before, after, found := bytes.Cut(text, []byte(empty))
	if !found {
		return nil, nil, fmt.Errorf("encode answer: %T has no empty list %q", l.Body(), l.Member)
	}
	return append(before, empty[:len(empty)-1]...), append([]byte("]"), append(after, '\n')...), nil
}

// readChunk reads the next items and encodes them, and after the last ones the end of the body.
func (l *List[T]) readChunk(ctx context.Context) error {
	items, more, err := l.Read(ctx)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(&l.text)
	encoder.SetEscapeHTML(false)
	for i := range items {
		if l.hasItems {
			l.text.WriteByte(',')
		}
		l.hasItems = true
		if err := encoder.Encode(&items[i]); err != nil {
			return fmt.Errorf("encode answer: %w", err)
		}
		l.text.Truncate(l.text.Len() - 1) // without the newline
	}
	if l.more = more; more {
		return nil
	}
	_, after, err := l.encodeAround()
	l.text.Write(after)
	return err
}

// stream sends the list chunk by chunk. What fails after the first byte breaks the answer off and is logged, unless the client is gone.
func (l *List[T]) stream(ctx context.Context, w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	for {
		_, err := w.Write(l.text.Bytes())
		l.text.Reset()
		if err == nil && !l.more {
			return nil
		}
		if err == nil {
			err = l.readChunk(ctx)
		}
		if err != nil {
			logBreakOff(ctx, l.Log, "list broken off", err)
			AbortResponse(w)
			return nil
		}
	}
}
