package locations

import (
	"errors"
	"fmt"

	"lieudit/schemas/refusal"
)

// These errors mean that what a command is about does not exist. Archived referentials and inactive sites exist. Both errors
// are refusal.NotFound for the client.
var (
	ErrUnknownReferential = fmt.Errorf("unknown referential: %w", refusal.NotFound)
	ErrUnknownSite        = fmt.Errorf("unknown site: %w", refusal.NotFound)
)

// ErrDuplicateExternalID: a batch has an external id in two rows.
var ErrDuplicateExternalID = errors.New("external id is given twice")
