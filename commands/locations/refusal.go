package locations

import (
	"errors"
	"fmt"

	"lieudit/schemas/refusal"
)

// What a command is about does not exist, archived referentials and inactive sites excepted. Both are refusal.NotFound
// for the client.
var (
	ErrUnknownReferential = fmt.Errorf("unknown referential: %w", refusal.NotFound)
	ErrUnknownSite        = fmt.Errorf("unknown site: %w", refusal.NotFound)
)

// ErrDuplicateExternalID: a batch has an external id in two rows.
var ErrDuplicateExternalID = errors.New("external id is given twice")
