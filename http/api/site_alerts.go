package api

import (
	"lieudit/commands/locations"
	"lieudit/queries/locations/alert"
	"lieudit/schemas/body"
	sites "lieudit/schemas/locations"
)

// maxAlerts is how many alerts an answer lists. All are counted.
const maxAlerts = 100

// findAlerts finds what is doubtful in the rows of a batch, with the positions that the outcome says they have now. A repeated
// request has the outcome of the first one, and so gets the same alerts.
func (h *handler) findAlerts(rows []locations.Row, o locations.Outcome) ([]body.Alert, body.AlertCounts) {
	geocoded := geocodedPositions(o)
	byCode, counts := map[alert.Code][]body.Alert{}, map[alert.Code]int{}
	for _, r := range rows {
		p, isGeocoded := geocoded[r.ExternalID]
		if !isGeocoded {
			p = r.Content.OwnPosition()
		}
		for _, a := range h.locations.Alerts.Check(r.Content, p) {
			if counts[a.Code]++; counts[a.Code] <= maxAlerts {
				byCode[a.Code] = append(byCode[a.Code], body.Alert{Code: string(a.Code), ExternalID: r.ExternalID, Message: a.Message})
			}
		}
	}
	listed := []body.Alert{}
	for _, code := range alert.Codes {
		listed = append(listed, byCode[code]...)
	}
	return listed[:min(len(listed), maxAlerts)], body.AlertCounts{
		InvertedPosition: counts[alert.InvertedPosition], NullPosition: counts[alert.NullPosition], FarPosition: counts[alert.FarPosition],
		CommunePosition: counts[alert.CommunePosition], EmptyAddress: counts[alert.EmptyAddress], EmptyName: counts[alert.EmptyName],
	}
}

// geocodedPositions are the positions, by external id, of the sites whose position does not come from the request: nil for those
// without one. A request may carry a position and yet be placed by its address, where it is the one that the site showed.
func geocodedPositions(o locations.Outcome) map[string]*sites.Position {
	positions := make(map[string]*sites.Position, len(o.GeocodedSites)+len(o.UnlocatedSites)+len(o.CommuneSites))
	for _, id := range o.UnlocatedSites {
		positions[id] = nil
	}
	for _, g := range o.GeocodedSites {
		positions[g.ExternalID] = &sites.Position{Source: sites.SourceBAN, Precision: g.Precision}
	}
	for _, id := range o.CommuneSites {
		positions[id] = &sites.Position{Source: sites.SourceBAN, Precision: sites.PrecisionMunicipality}
	}
	return positions
}
