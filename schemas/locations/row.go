package locations

import (
	"encoding/json"
	"fmt"

	"lieudit/schemas/table"
)

// SiteFromRow is the site in a row of the read model. It fails if the row's content is not JSON. The site of an erased account
// has no content and no position.
func SiteFromRow(row table.Site) (Site, error) {
	var stored StoredSite
	if row.Content != "" { // it is empty once the account's data key was destroyed
		if err := json.Unmarshal([]byte(row.Content), &stored); err != nil {
			return Site{}, fmt.Errorf("content of %s: %w", row.ID, err)
		}
	}
	s := Site{
		ID: row.PublicID, Referential: row.Referential, ExternalID: row.ExternalID, Active: row.Active, Version: row.Version,
		Created: row.Created.Time(), Modified: row.Modified.Time(), Deactivated: row.Deactivated.Time(),
	}
	s.Show(stored)
	return s, nil
}
