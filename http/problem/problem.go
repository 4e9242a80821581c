// Package problem turns errors into error answers. It only decides what a client gets; package kit sends it, and logs unknown
// errors.
//
//	error ──> FromError ─┬─ refusal.Code, refusal.Error ──> refusal.Row, body.FailureOf ──┐
//	                     ├─ Problem (Violations, MethodNotAllowed) ──────────────────────┼──> Problem ──> kit.WriteError
//	                     ├─ errors of reading a body, of a log that cannot be reached ───┤
//	                     └─ any other: Internal error, not known ────────────────────────┘
package problem

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"lieudit/eventstore"
	"lieudit/http/budget"
	"lieudit/http/connlimit"
	"lieudit/schemas/body"
	"lieudit/schemas/refusal"
)

// Problem is an error answer. It is an error, so that what fails can return it.
type Problem struct {
	Status int
	Allow  string       // of a 405: the methods of the path
	Code   refusal.Code // why, for the operator; "" for broken rules
	Body   any          // is sent as JSON; nil: the answer has no body
}

func (p Problem) Error() string { return fmt.Sprintf("%d %v", p.Status, p.Body) }

// MarshalDetail is the detail of the error body, as it is sent.
func (p Problem) MarshalDetail() (json.RawMessage, error) {
	var wrapper struct {
		Detail json.RawMessage `json:"detail"`
	}
	text, err := json.Marshal(p.Body)
	if err == nil {
		err = json.Unmarshal(text, &wrapper)
	}
	return wrapper.Detail, err
}

// FromError is the answer to an error. It returns false for an error that clients must not see; the answer is then Internal.
func FromError(err error) (Problem, bool) {
	if p, ok := errors.AsType[Problem](err); ok {
		return p, true
	}
	if r, ok := refusal.FromError(err); ok {
		return fromRefusal(r), true
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fromCode(refusal.BodyTooLarge), true
	}
	switch {
	case errors.Is(err, budget.ErrOverloaded):
		return fromCode(refusal.Overloaded), true
	case errors.Is(err, connlimit.ErrSlow):
		return fromCode(refusal.RequestMalformed), true
	case errors.Is(err, eventstore.ErrUnavailable):
		return fromCode(refusal.AuthUnavailable), true
	}
	return fromCode(refusal.Internal), false
}

// StatusOf is the status of the answer that an error gets; 200 for nil.
func StatusOf(err error) int {
	if err == nil {
		return http.StatusOK
	}
	p, _ := FromError(err)
	return p.Status
}

func fromCode(c refusal.Code) Problem { return fromRefusal(refusal.Error{Code: c}) }

func fromRefusal(r refusal.Error) Problem {
	return Problem{Status: r.Code.Row().Status, Code: r.Code, Body: body.FailureOf(r)}
}

// MethodNotAllowed refuses a method: the path exists, for these others.
func MethodNotAllowed(allowed ...string) Problem {
	p := fromCode(refusal.MethodNotAllowed)
	p.Allow = strings.Join(allowed, ", ")
	return p
}

// Violation is one broken rule of a request's form. Loc begins with "query", "body", "path" or "header". Input is always an object
// once it is sent; until then nil means that it is to be taken from the request.
type Violation = body.Violation

// MaxViolations is the most violations that one answer holds.
const MaxViolations = 100

// Violations is the 422 of broken rules.
func Violations(all ...Violation) Problem {
	return Problem{
		Status: http.StatusUnprocessableEntity,
		Body:   body.RuleFailure{Detail: all[:min(len(all), MaxViolations)]},
	}
}

// BrokenRule is the 422 of one broken rule, of the member or parameter name in part ("query", "body", "path", "header").
// rule and msg are Pydantic's. It has no input: the endpoint of the request sets it (kit.NewEndpoint).
func BrokenRule(part, name, rule, msg string) Problem {
	return Violations(Violation{Type: rule, Loc: []any{part, name}, Msg: msg})
}

// InvalidCursor is the 422 of a cursor that was not given to this account for this question.
func InvalidCursor() Problem {
	return BrokenRule("query", "curseur", "value_error", "Value error, not a cursor that was given")
}
