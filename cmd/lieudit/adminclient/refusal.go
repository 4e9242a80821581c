package adminclient

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// UnreachableError says that nothing answered.
type UnreachableError struct {
	Address string
	Err     error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no answer from %s: %v", e.Address, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// APIError is an answer that is not a success.
type APIError struct {
	Status      int
	Code        string // of a detail that has one
	Lines       []string
	FieldErrors []FieldError    // of a detail that is a list of broken rules
	Detail      json.RawMessage // as it came, nil when there was none
}

// FieldError is a broken rule: where, and what.
type FieldError struct {
	Loc []any  `json:"loc"`
	Msg string `json:"msg"`
}

// Error is the detail as people read it: a line, or one for each field that is wrong.
func (e *APIError) Error() string { return strings.Join(e.Lines, "\n") }

// codedDetail is every form section 7 of the specification gives to a codedDetail.
type codedDetail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func newAPIError(status int, path string, responseBody []byte) error {
	var unwrapped codedDetail
	var wrapped struct {
		Detail json.RawMessage `json:"detail"`
	}
	e := &APIError{Status: status}
	switch {
	case json.Unmarshal(responseBody, &wrapped) == nil && len(wrapped.Detail) > 0:
		e.parseDetail(wrapped.Detail)
	case json.Unmarshal(responseBody, &unwrapped) == nil && unwrapped.Message != "":
		e.Lines = []string{unwrapped.Message}
	}
	switch {
	case len(e.Lines) == 0:
		e.Lines = []string{fmt.Sprintf("unexpected answer %d %s to %s", status, http.StatusText(status), path)}
	case status == http.StatusNotFound:
		e.Lines[0] += ": " + path
	}
	return e
}

func (e *APIError) parseDetail(raw json.RawMessage) {
	e.Detail = raw
	var text string
	var coded codedDetail
	switch {
	case json.Unmarshal(raw, &text) == nil:
		e.Lines = []string{text}
	case json.Unmarshal(raw, &e.FieldErrors) == nil:
		for _, i := range e.FieldErrors {
			e.Lines = append(e.Lines, i.fieldPath()+": "+i.Msg)
		}
	case json.Unmarshal(raw, &coded) == nil && coded.Code != "":
		e.Code, e.Lines = coded.Code, []string{strings.TrimSuffix(coded.Code+": "+coded.Message, ": ")}
	default:
		e.Lines = []string{string(raw)}
	}
}

// Row is the place in a list of the body that an item is about, and what of it is wrong; false when it is about no row.
func (i FieldError) Row(list string) (row int, field string, ok bool) {
	if len(i.Loc) < 3 || i.Loc[1] != list {
		return 0, "", false
	}
	n, ok := i.Loc[2].(float64)
	return int(n), FieldError{Loc: append([]any{""}, i.Loc[3:]...)}.fieldPath(), ok
}

// fieldPath is where an item points to, without the part of the request it is in.
func (i FieldError) fieldPath() string {
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
