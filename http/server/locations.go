package server

import (
	"context"

	"lieudit/schemas/body"
)

// searchLocations searches the account's sites; there are none yet.
func searchLocations(context.Context, call, body.SearchLocations) (any, error) {
	return body.NothingFound, nil
}
