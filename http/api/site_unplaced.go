package api

import (
	"context"

	"lieudit/commands/locations"
	"lieudit/queries/locations/geocode"
	"lieudit/schemas/body"
)

// maxUnplaced is how many of the sites without a position an answer explains. Each takes as long as to geocode it.
const maxUnplaced = 1_000

// explainUnplaced is why sites of a batch have no position. They are asked anew, so that a repeated request gets the reasons too. The
// batch is written: where a reason cannot be found the rest is left out.
func (h *handler) explainUnplaced(ctx context.Context, rows []locations.Row, ids []string) []body.Unplaced {
	ids = ids[:min(len(ids), maxUnplaced)]
	var explained []body.Unplaced
	if len(ids) == 0 {
		return explained
	}
	contents := make(map[string]locations.Row, len(rows))
	for _, r := range rows {
		contents[r.ExternalID] = r
	}
	geocoder := geocode.New(h.addresses)
	for _, id := range ids {
		reason, err := geocoder.Explain(ctx, contents[id].Content)
		if err != nil {
			break
		}
		if reason != "" { // else it has no address, or a vintage that was loaded meanwhile has it
			explained = append(explained, body.Unplaced{ExternalID: id, Reason: string(reason)})
		}
	}
	return explained
}
