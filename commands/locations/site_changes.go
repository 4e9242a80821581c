package locations

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"lieudit/schemas/event"
	"lieudit/schemas/locations"
)

// SiteChange is the effect of a batch on one site. Operation is that of event.SiteRow. Fields are the members of the site that
// get another value, by their API names, those of its address prefixed with "adresse.". Fields is nil for a site that is
// created, deactivated or reactivated unchanged, and if the former content is not read.
type SiteChange struct {
	ExternalID string
	Operation  string
	Fields     []string
}

// listChanges returns a change for each row that is written, in order.
func listChanges(rows []event.SiteRow) (changes []SiteChange) {
	for _, r := range rows {
		changes = append(changes, SiteChange{ExternalID: r.ExternalID, Operation: r.Operation})
	}
	return changes
}

// nameChangedFields sets the fields of the changes. The state holds no contents, so the former contents of the changed sites
// are read from the log, after the decision.
func (l *Locations) nameChangedFields(ctx context.Context, j *writeJob, changes []SiteChange) error {
	var rewritten []*wantedSite
	for _, w := range j.rows {
		if w.chosen != nil && w.current.version > 0 {
			rewritten = append(rewritten, w)
		}
	}
	former, err := l.readStored(ctx, j.account, rewritten)
	if err != nil {
		return err
	}
	fields := make(map[string][]string, len(rewritten))
	for i, w := range rewritten {
		fields[w.ExternalID] = changedFields(former[i], locations.StoredSite{Content: w.chosen.content, Position: w.chosen.position})
	}
	for i := range changes {
		changes[i].Fields = fields[changes[i].ExternalID]
	}
	return nil
}

// changedFields names the members that differ between two contents as a site shows them, with the geocoded position.
func changedFields(former, now locations.StoredSite) (fields []string) {
	a, b := former.ShownContent(), now.ShownContent()
	var x, y locations.SiteAddress
	if a.Address != nil {
		x = *a.Address
	}
	if b.Address != nil {
		y = *b.Address
	}
	for _, member := range []struct {
		name   string
		isSame bool
	}{
		{"nom", a.Name == b.Name},
		{"adresse.ligne_1", x.Line1 == y.Line1}, {"adresse.ligne_2", x.Line2 == y.Line2}, {"adresse.code_postal", x.PostalCode == y.PostalCode},
		{"adresse.commune", x.City == y.City}, {"adresse.code_insee", x.InseeCode == y.InseeCode}, {"adresse.pays", x.Country == y.Country},
		{"id_ban", a.IDBan == b.IDBan}, {"lat", isSameNumber(a.Lat, b.Lat)}, {"lon", isSameNumber(a.Lon, b.Lon)},
		{"horaires", isSameJSON(a.Hours, b.Hours)}, {"telephone", a.Phone == b.Phone}, {"email", a.Email == b.Email}, {"site_web", a.Website == b.Website},
		{"tags", slices.Equal(a.Tags, b.Tags)}, {"proprietes", isSameJSON(a.Properties, b.Properties)},
	} {
		if !member.isSame {
			fields = append(fields, member.name)
		}
	}
	return fields
}

func isSameNumber(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }

// isSameJSON compares two JSON texts, ignoring spaces.
func isSameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return len(a) > 0 && len(b) > 0 && json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
