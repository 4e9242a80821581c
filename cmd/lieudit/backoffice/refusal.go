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
}

// Error is the detail as people read it: a line, or one for each field that is wrong.
func (e *RefusedError) Error() string { return strings.Join(e.Lines, "\n") }

// detail is every form section 7 of the specification gives to a detail.
type detail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type item struct {
	Loc []any  `json:"loc"`
	Msg string `json:"msg"`
}

func refusal(status int, path string, answer []byte) error {
	var short detail
	var b struct {
		Detail json.RawMessage `json:"detail"`
	}
	e := &RefusedError{Status: status}
	switch {
	case json.Unmarshal(answer, &b) == nil && len(b.Detail) > 0:
		e.Code, e.Lines = told(b.Detail)
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

func told(raw json.RawMessage) (code string, lines []string) {
	var text string
	var coded detail
	var items []item
	switch {
	case json.Unmarshal(raw, &text) == nil:
		return "", []string{text}
	case json.Unmarshal(raw, &items) == nil:
		for _, i := range items {
			lines = append(lines, i.field()+": "+i.Msg)
		}
		return "", lines
	case json.Unmarshal(raw, &coded) == nil && coded.Code != "":
		return coded.Code, []string{strings.TrimSuffix(coded.Code+": "+coded.Message, ": ")}
	}
	return "", []string{string(raw)}
}

// field is where an item points to, without the part of the request it is in.
func (i item) field() string {
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
