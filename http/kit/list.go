package kit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"

	"lieudit/http/budget"
)

// ListReader reads the next items of a list, in chunks of about budget.AnswerChunk bytes. more reports whether it must be called again;
// the next call may return no items.
type ListReader[T any] func(context.Context) (items []T, more bool, err error)

// List is an answer whose body is a struct with a long list. It is encoded while the list is read, so that only one chunk of it is in
// memory at a time. The text is the same as if the whole body were encoded at once.
type List[T any] struct {
	// Body returns the body with an empty list, which is not nil. It is called before the list is read and again afterwards, because
	// the fields after the list may depend on it, as a cursor does.
	Body   func() any
	Member string // the name of the list in JSON
	Read   ListReader[T]
	Log    *slog.Logger // gets the error that breaks the answer off

	text     bytes.Buffer // not sent yet
	hasItems bool         // an item was encoded
	more     bool         // Read must be called again
}

// Respond reads the beginning of the list, so that an early failure is answered as an error. A list that ends within budget.SmallAnswer
// bytes becomes an answer of known length. The rest of a longer list is read while it is sent.
func (l *List[T]) Respond(ctx context.Context) (Response, error) {
	before, _, err := l.encodeAround()
	if err != nil {
		return Response{}, err
	}
	l.text.Write(before)
	for l.more = true; l.more && l.text.Len() <= budget.SmallAnswer; {
		if err := l.readChunk(ctx); err != nil {
			return Response{}, err
		}
	}
	if l.more {
		return Response{Stream: l.stream}, nil
	}
	return Response{text: l.text.Bytes()}, nil
}

// encodeAround encodes the parts of the body before and after the items of the list.
func (l *List[T]) encodeAround() (before, after []byte, err error) {
	text, err := MarshalJSON(l.Body())
	if err != nil {
		return nil, nil, fmt.Errorf("encode answer: %w", err)
	}
	empty := `"` + l.Member + `":[]` // cannot occur within a string, where quotes are escaped
	before, after, found := bytes.Cut(text, []byte(empty))
	if !found {
		return nil, nil, fmt.Errorf("encode answer: %T has no empty list %q", l.Body(), l.Member)
	}
	return append(before, empty[:len(empty)-1]...), append([]byte("]"), append(after, '\n')...), nil
}

// readChunk reads and encodes the next items. After the last ones it appends the end of the body.
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

// stream sends the list chunk by chunk. An error after the first byte breaks the answer off. It is logged, unless the client has left.
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
