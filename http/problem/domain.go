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
	"lieudit/http/bodies"
	"lieudit/schemas/origin"
)

// ofDomain is the answer of the errors that the domain's packages return. A new refusal gets its case here.
func ofDomain(err error) (Problem, bool) {
	if e, ok := errors.AsType[*origin.TooManyError](err); ok {
		return coded(422, e.Code(), e.Error()), true
	}
	if e, ok := errors.AsType[*origin.InvalidError](err); ok {
		return coded(422, e.Code(), e.Error()), true
	}
	if e, ok := errors.AsType[*account.KeyCapError](err); ok {
		return KeysOverCapacity(e.Cap, e.Active), true
	}
	if p, ok := ofPlaces(err); ok {
		return p, true
	}
	if e, ok := errors.AsType[*account.QuotaError](err); ok {
		return quotaAbove(e), true
	}
	if e, ok := errors.AsType[*account.Refusal](err); ok {
		return coded(409, e.Code(), e.Error()), true
	}
	if e, ok := errors.AsType[*usage.Refusal](err); ok {
		return coded(409, e.Code(), e.Error()), true
	}
	for _, missing := range []error{repair.ErrNothing, account.ErrUnknown, account.ErrUnknownKey, access.ErrUnknown, usage.ErrNoPeriod} {
		if errors.Is(err, missing) {
			return NotFound(), true
		}
	}
	if errors.Is(err, eventstore.ErrUnavailable) {
		return AuthUnavailable(), true
	}
	return ofBody(err)
}

// ofBody is the answer to a body that was not read to its end.
func ofBody(err error) (Problem, bool) {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return TooLarge(), true
	}
	switch {
	case errors.Is(err, bodies.ErrOverloaded):
		return Overloaded(), true
	case errors.Is(err, bodies.ErrSlow):
		return BadRequest(), true
	}
	return Problem{}, false
}

func quotaAbove(e *account.QuotaError) Problem {
	return Violations(Violation{
		Type: "less_than_equal", Loc: []any{"body", "quota"},
		Msg:   fmt.Sprintf("Input should be less than or equal to %d", e.Max),
		Input: map[string]any{"quota": e.Quota},
	})
}
