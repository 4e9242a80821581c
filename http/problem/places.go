package problem

import (
	"errors"

	"lieudit/commands/locations"
	locationsqueries "lieudit/queries/locations"
)

// fromLocationError is the answer of what is refused on referentials and sites.
func fromLocationError(err error) (Problem, bool) {
	if e, ok := errors.AsType[*locations.ReferentialCapError](err); ok {
		return ReferentialCapacityExceeded(e.Active, e.Maximum), true
	}
	if e, ok := errors.AsType[*locations.SiteCapError](err); ok {
		return SiteCapacityExceeded(e.Active, e.Capacity, e.Ceiling), true
	}
	if e, ok := errors.AsType[*locations.ReductionError](err); ok {
		return SuspiciousReduction(e.Before, e.After), true
	}
	for _, mapping := range []struct {
		err     error
		problem Problem
	}{
		{locations.ErrUnknownReferential, NotFound()},
		{locations.ErrUnknownSite, NotFound()},
		{locationsqueries.ErrNotFound, NotFound()},
		{locations.ErrArchived, ReferentialArchived()},
		{locations.ErrCodeTaken, ReferentialCodeTaken()},
		{locations.ErrKeyReused, Unprocessable("Idempotency-Key was used for another request")},
	} {
		if errors.Is(err, mapping.err) {
			return mapping.problem, true
		}
	}
	return Problem{}, false
}
