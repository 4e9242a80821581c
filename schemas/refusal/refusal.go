// Package refusal names every reason for which a request is refused, and has in one table what the client gets: the
// status, the text and the shape of the answer (section 7 of the specification). Commands and handlers return a Code, or
// an Error where the answer holds numbers; nobody else writes a status or a text.
//
//	commands, http ── Code, Code.With(Details) ──> error ──> problem.FromError ─┐
//	                                                                            ├─> Code.Row ──> body.FailureOf
//	schemas/body, the operations of OpenAPI ── Code, Row.Example ───────────────┘
//
// A new refusal is a constant in codes.go and its row in table.go; a test demands both. Broken rules of a request's form are none
// of these: package kit finds them from the tags of the request's struct.
package refusal

import (
	"errors"
	"fmt"

	"lieudit/schemas/plan"
)

// Code is a reason to refuse a request. Its text is part of the API: it is the code of answers that have one, the name of
// the example in the OpenAPI documents, and what events record. A Code is an error that matches itself with errors.Is.
type Code string

// Error is the text of the answer as it is without details.
func (c Code) Error() string { return Error{Code: c}.Error() }

// With is the refusal with what its answer shows.
func (c Code) With(d Details) Error { return Error{c, d} }

// Details are the facts that the texts and members of answers show. Each code uses some of them, which its row of the table shows.
// Sites, referentials and keys are counts, requests are those of a period.
type Details struct {
	Active   int    // in use already
	Capacity int    // what the plan includes
	Ceiling  int    // the most there may be, tolerance included
	Before   int    // active sites before a sync
	After    int    // active sites that a sync would leave
	Count    int    // as many as were sent
	Limit    int64  // the most that is allowed
	Typed    string // what the client typed
	Reason   string // why that is refused, in French; of a role, those that may
	Plan     plan.Name
}

// Error is a refusal with its details. Two refusals are equal when code and details are; errors.Is also matches it with
// its Code alone.
type Error struct {
	Code Code
	Details
}

// Error is the text of the answer, or the code and the details where the form has no text.
func (e Error) Error() string {
	row := e.Code.Row()
	if row.Text == nil {
		return fmt.Sprintf("%s %+v", string(e.Code), e.Details) // %s of a Code would call this method again
	}
	return row.Text(e.Details)
}

// Is reports whether target is the code of this refusal.
func (e Error) Is(target error) bool { return target == error(e.Code) }

// FromError finds the refusal in the tree of an error; false: it holds none.
func FromError(err error) (Error, bool) {
	if e, ok := errors.AsType[Error](err); ok {
		return e, true
	}
	c, ok := errors.AsType[Code](err)
	return Error{Code: c}, ok
}
