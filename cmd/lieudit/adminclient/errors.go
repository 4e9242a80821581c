package adminclient

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// UnreachableError says that a request got no answer.
type UnreachableError struct {
	Address string
	Err     error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no answer from %s: %v", e.Address, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// APIError is an answer whose status is not 2xx.
type APIError struct {
	Status      int
	Code        string          // of a detail that has one, such as reduction_suspecte
	Lines       []string        // the detail for people, never empty
	FieldErrors []FieldError    // of a detail that is a list of broken rules
	Detail      json.RawMessage // as the service sent it, nil when there was none
}

// FieldError is one broken rule of a request: Loc is the path to the field, Msg the rule.
type FieldError struct {
	Loc []any  `json:"loc"`
	Msg string `json:"msg"`
}

// Error is the detail for people: one line, or one for each wrong field.
func (e *APIError) Error() string { return strings.Join(e.Lines, "\n") }

// codedDetail is a detail with a code, or a bare body with a message (section 7 of the specification).
type codedDetail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// newAPIError reads the body of a refusal. A body of an unknown form is a line that names status and path.
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

// parseDetail reads a detail: a text, a list of broken rules or a code with a message.
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

// Row is the index in a list of the body that the error is about, and the field of that row. Ok is false when the error is
// about no row of the list.
func (i FieldError) Row(list string) (row int, field string, ok bool) {
	if len(i.Loc) < 3 || i.Loc[1] != list {
		return 0, "", false
	}
	n, ok := i.Loc[2].(float64)
	return int(n), FieldError{Loc: append([]any{""}, i.Loc[3:]...)}.fieldPath(), ok
}

// fieldPath is the path to the field, such as sites[3].lat, without the part of the request (body, query) it is in.
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
