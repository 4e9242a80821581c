// Package refusal names every reason to refuse a request, and has in one table the client's answer: the status, the text and
// the shape of the body (section 7 of the specification). Commands and handlers return a Code, or an Error if the answer holds
// numbers; no other code writes a status or a text.
//
//	commands, http ── Code, Code.With(Details) ──> error ──> problem.FromError ─┐
//	                                                                            ├─> Code.Row ──> body.FailureOf
//	schemas/body, the operations of OpenAPI ── Code, Row.Example ───────────────┘
//
// A new refusal is a constant in codes.go and its row in table.go; a test demands both. Validation errors are not refusals:
// package kit finds them from the tags of the request's struct.
package refusal

import (
	"errors"
	"fmt"

	"lieudit/schemas/plan"
)

// Code is a reason to refuse a request. Its text is part of the API: it is the code in answers that have one, the name of
// the example in the OpenAPI documents, and the code in events. A Code is an error that matches itself with errors.Is.
type Code string

// Error is the text of the answer without details.
func (c Code) Error() string { return Error{Code: c}.Error() }

// With is the refusal with the details that its answer shows.
func (c Code) With(d Details) Error { return Error{c, d} }

// Details are the facts shown in the texts and members of answers. Each code uses some of them, as its row of the table shows.
// Sites, referentials and keys are counts; requests are those of a period.
type Details struct {
	Active   int    // in use already
	Capacity int    // what the plan includes
	Ceiling  int    // the most there may be, tolerance included
	Before   int    // active sites before a sync
	After    int    // active sites that a sync would leave
	Count    int    // how many were sent
	Limit    int64  // the maximum
	Typed    string // what the client typed
	Reason   string // why that is refused, in French; for a role, the roles that may
	Plan     plan.Name
}

// Error is a refusal with its details. Two refusals are equal if code and details are; errors.Is also matches it with its
// Code.
type Error struct {
	Code Code
	Details
}

// Error is the text of the answer, or the code and the details if the form has no text.
func (e Error) Error() string {
	row := e.Code.Row()
	if row.Text == nil {
		return fmt.Sprintf("%s %+v", string(e.Code), e.Details) // %s of a Code would call this method again
	}
	return row.Text(e.Details)
}

// Is reports whether target is the code of this refusal.
func (e Error) Is(target error) bool { return target == error(e.Code) }

// FromError finds the refusal in the tree of an error. ok is false if there is none.
func FromError(err error) (Error, bool) {
	if e, ok := errors.AsType[Error](err); ok {
		return e, true
	}
	c, ok := errors.AsType[Code](err)
	return Error{Code: c}, ok
}
