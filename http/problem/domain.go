package problem

import (
	"errors"
	"fmt"
	"net/http"

	"lieudit/commands/access"
	"lieudit/commands/account"
	"lieudit/commands/repair"
	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/http/bodylimit"
	"lieudit/schemas/origin"
)

// fromDomainError is the answer of the errors that the domain's packages return. A new refusal gets its case here.
func fromDomainError(err error) (Problem, bool) {
	if e, ok := errors.AsType[*origin.TooManyError](err); ok {
		return newCodeProblem(422, e.Code(), e.Error()), true
	}
	if e, ok := errors.AsType[*origin.InvalidError](err); ok {
		return newCodeProblem(422, e.Code(), e.Error()), true
	}
	if e, ok := errors.AsType[*account.KeyCapError](err); ok {
		return PublishableKeyCapacityExceeded(e.Cap, e.Active), true
	}
	if p, ok := fromLocationError(err); ok {
		return p, true
	}
	if e, ok := errors.AsType[*account.QuotaError](err); ok {
		return quotaTooHigh(e), true
	}
	if e, ok := errors.AsType[*account.Refusal](err); ok {
		return newCodeProblem(409, e.Code(), e.Error()), true
	}
	if e, ok := errors.AsType[*usage.Refusal](err); ok {
		return newCodeProblem(409, e.Code(), e.Error()), true
	}
	for _, unknown := range []error{repair.ErrNoStreams, account.ErrUnknownAccount, account.ErrUnknownKey, access.ErrUnknownToken, usage.ErrUnknownPeriod} {
		if errors.Is(err, unknown) {
			return NotFound(), true
		}
	}
	if errors.Is(err, eventstore.ErrUnavailable) {
		return AuthUnavailable(), true
	}
	return fromBodyError(err)
}

// fromBodyError is the answer to a body that was not read to its end.
func fromBodyError(err error) (Problem, bool) {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return BodyTooLarge(), true
	}
	switch {
	case errors.Is(err, bodylimit.ErrOverloaded):
		return Overloaded(), true
	case errors.Is(err, bodylimit.ErrSlow):
		return BadRequest(), true
	}
	return Problem{}, false
}

func quotaTooHigh(e *account.QuotaError) Problem {
	return Violations(Violation{
		Type: "less_than_equal", Loc: []any{"body", "quota"},
		Msg:   fmt.Sprintf("Input should be less than or equal to %d", e.Max),
		Input: map[string]any{"quota": e.Quota},
	})
}
