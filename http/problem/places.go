package problem

import (
	"errors"

	"lieudit/commands/locations"
	"lieudit/queries/places"
)

// ofPlaces is the answer of what is refused on referentials and sites.
func ofPlaces(err error) (Problem, bool) {
	if e, ok := errors.AsType[*locations.ReferentialCapError](err); ok {
		return ReferentialsOverCapacity(e.Active, e.Maximum), true
	}
	if e, ok := errors.AsType[*locations.SiteCapError](err); ok {
		return SitesOverCapacity(e.Active, e.Capacity, e.Ceiling), true
	}
	if e, ok := errors.AsType[*locations.ReductionError](err); ok {
		return SuspiciousReduction(e.Before, e.After), true
	}
	for _, known := range []struct {
		err     error
		problem Problem
	}{
		{locations.ErrUnknownReferential, NotFound()},
		{locations.ErrUnknownSite, NotFound()},
		{places.ErrUnknown, NotFound()},
		{locations.ErrArchived, ReferentialArchived()},
		{locations.ErrCodeTaken, CodeTaken()},
		{locations.ErrOtherRequest, Unprocessable("Idempotency-Key was used for another request")},
	} {
		if errors.Is(err, known.err) {
			return known.problem, true
		}
	}
	return Problem{}, false
}
