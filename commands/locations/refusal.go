package locations

import (
	"errors"
	"fmt"
)

var (
	// ErrUnknownReferential: the account never had such a referential.
	ErrUnknownReferential = errors.New("unknown referential")
	// ErrUnknownSite: the referential never had such a site.
	ErrUnknownSite = errors.New("unknown site")
	// ErrArchived: the referential is archived and takes no writes.
	ErrArchived = errors.New("referential is archived")
	// ErrCodeTaken: a referential of the account has the code. It may be an archived one.
	ErrCodeTaken = errors.New("code of a referential is taken")
	// ErrKeyReused: the Idempotency-Key came with another request in the last 24 hours.
	ErrKeyReused = errors.New("Idempotency-Key was used for another request")
	// ErrDuplicateExternalID: a batch has two rows with the same external id.
	ErrDuplicateExternalID = errors.New("external id is given twice")
)

// ReferentialCapError: the plan's referentials are all in use.
type ReferentialCapError struct{ Active, Maximum int }

func (e *ReferentialCapError) Error() string {
	return fmt.Sprintf("%d of %d referentials active", e.Active, e.Maximum)
}

// SiteCapError: the account would have more active sites than the ceiling of its plan. Active is how many it has.
type SiteCapError struct{ Active, Capacity, Ceiling int }

func (e *SiteCapError) Error() string {
	return fmt.Sprintf("%d sites active, %d allowed at most", e.Active, e.Ceiling)
}

// ReductionError: a sync would deactivate more than half of the active sites of its referential and was not confirmed.
type ReductionError struct{ Before, After int }

func (e *ReductionError) Error() string {
	return fmt.Sprintf("%d active sites would be %d", e.Before, e.After)
}
