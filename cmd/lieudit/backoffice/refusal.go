package backoffice

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// SilentError says that nothing answered.
type SilentError struct {
	Address string
	Err     error
}

func (e *SilentError) Error() string { return fmt.Sprintf("no answer from %s: %v", e.Address, e.Err) }

func (e *SilentError) Unwrap() error { return e.Err }

// RefusedError is an answer that is not a success.
type RefusedError struct {
	Status int
	Code   string // of a detail that has one
	Lines  []string
	Items  []Item          // of a detail that is a list of broken rules
	Detail json.RawMessage // as it came, nil when there was none
}

// Item is a broken rule: where, and what.
type Item struct {
	Loc []any  `json:"loc"`
	Msg string `json:"msg"`
}

// Error is the detail as people read it: a line, or one for each field that is wrong.
func (e *RefusedError) Error() string { return strings.Join(e.Lines, "\n") }

// detail is every form section 7 of the specification gives to a detail.
type detail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func refusal(status int, path string, answer []byte) error {
	var short detail
	var b struct {
		Detail json.RawMessage `json:"detail"`
	}
	e := &RefusedError{Status: status}
	switch {
	case json.Unmarshal(answer, &b) == nil && len(b.Detail) > 0:
		e.tell(b.Detail)
	case json.Unmarshal(answer, &short) == nil && short.Message != "":
		e.Lines = []string{short.Message}
	}
	switch {
	case len(e.Lines) == 0:
		e.Lines = []string{fmt.Sprintf("unexpected answer %d %s to %s", status, http.StatusText(status), path)}
	case status == http.StatusNotFound:
		e.Lines[0] += ": " + path
	}
	return e
}

func (e *RefusedError) tell(raw json.RawMessage) {
	e.Detail = raw
	var text string
	var coded detail
	switch {
	case json.Unmarshal(raw, &text) == nil:
		e.Lines = []string{text}
	case json.Unmarshal(raw, &e.Items) == nil:
		for _, i := range e.Items {
			e.Lines = append(e.Lines, i.field()+": "+i.Msg)
		}
	case json.Unmarshal(raw, &coded) == nil && coded.Code != "":
		e.Code, e.Lines = coded.Code, []string{strings.TrimSuffix(coded.Code+": "+coded.Message, ": ")}
	default:
		e.Lines = []string{string(raw)}
	}
}

// Row is the place in a list of the body that an item is about, and what of it is wrong; false when it is about no row.
func (i Item) Row(list string) (row int, field string, ok bool) {
	if len(i.Loc) < 3 || i.Loc[1] != list {
		return 0, "", false
	}
	n, ok := i.Loc[2].(float64)
	return int(n), Item{Loc: append([]any{""}, i.Loc[3:]...)}.field(), ok
}

// field is where an item points to, without the part of the request it is in.
func (i Item) field() string {
	var path strings.Builder
	for k, part := range i.Loc {
		switch p := part.(type) {
		case float64:
			fmt.Fprintf(&path, "[%d]", int(p))
		default:
			if k > 0 || len(i.Loc) == 1 {
				fmt.Fprintf(&path, ".%v", p)
			}
		}
	}
	return strings.TrimPrefix(path.String(), ".")
}
