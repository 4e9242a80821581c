package adminclient

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// UnreachableError means that a request got no answer. Whether the service received it is unknown.
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

// FieldError is one broken rule of a request. Loc is the path to the field: first the part of the request (body, query),
// then names, and indexes of lists as float64. Msg is the rule.
type FieldError struct {
	Loc []any  `json:"loc"`
	Msg string `json:"msg"`
}

// Error is the detail for people: one line, or one for each wrong field.
func (e *APIError) Error() string { return strings.Join(e.Lines, "\n") }

// codedDetail covers the two forms of a refusal that are neither a text nor a list: a detail with a code and a message, or
// a body with a message and no detail (section 7 of the specification).
type codedDetail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// newAPIError reads the body of an answer that is not 2xx. A body of an unknown form, such as a proxy's page, becomes a
// line that names the status and the path. The texts of a 404 name no resource, so the path is added to them.
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
		for _, field := range e.FieldErrors {
			e.Lines = append(e.Lines, field.fieldPath()+": "+field.Msg)
		}
	case json.Unmarshal(raw, &coded) == nil && coded.Code != "":
		e.Code, e.Lines = coded.Code, []string{strings.TrimSuffix(coded.Code+": "+coded.Message, ": ")}
	default:
		e.Lines = []string{string(raw)}
	}
}

// Row returns which row of a list in the body the error is about: its index from 0, and the path of the field within the
// row, "" for the row itself. Ok is false when the error is about no row of the list.
func (e FieldError) Row(list string) (row int, field string, ok bool) {
	if len(e.Loc) < 3 || e.Loc[1] != list {
		return 0, "", false
	}
	n, ok := e.Loc[2].(float64)
	return int(n), FieldError{Loc: append([]any{""}, e.Loc[3:]...)}.fieldPath(), ok
}

// fieldPath is the path to the field, such as sites[3].lat, without the part of the request (body, query) it is in.
func (e FieldError) fieldPath() string {
	var path strings.Builder
	for i, part := range e.Loc {
		switch p := part.(type) {
		case float64:
			fmt.Fprintf(&path, "[%d]", int(p))
		default:
			if i > 0 || len(e.Loc) == 1 {
				fmt.Fprintf(&path, ".%v", p)
			}
		}
	}
	return strings.TrimPrefix(path.String(), ".")
}
