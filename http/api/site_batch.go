package api

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"lieudit/commands/locations"
	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/queries/locations/alert"
	"lieudit/queries/locations/geocode"
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

// maxUnplaced is how many of the sites without a position an answer explains. Explaining one costs as much as geocoding it.
const maxUnplaced = 1_000

// explainUnplaced returns why sites of a batch have no position. The reasons are found again, so that a repeated request has them too. The
// batch is written already: if a reason cannot be found, the rest is left out.
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

// toRowFailure turns the error of a batch into its answer: a rule that a row breaks is located by the row's place in the request,
// and rules come in that order. Other errors stay as they are.
func toRowFailure(err error, rows []locations.Row) error {
	e, ok := errors.AsType[*locations.ContentError](err)
	if !ok {
		return err
	}
	places := make(map[string]int, len(rows))
	for i, r := range rows {
		places[r.ExternalID] = i
	}
	faults := slices.Clone(e.Faults)
	slices.SortStableFunc(faults, func(a, b locations.RowFault) int { return places[a.ExternalID] - places[b.ExternalID] })
	var all []problem.Violation
	for _, f := range faults[:min(len(faults), problem.MaxViolations)] {
		row, _ := kit.MarshalJSON(body.SiteRow{ExternalID: f.ExternalID, Content: f.Content}) // a row that was decoded always encodes
		for _, v := range locateFault(f) {
			v.Input = kit.HoldingObject(row, v.Loc[1:])
			v.Loc = slices.Insert(v.Loc, 1, any("sites"), any(places[f.ExternalID]))
			all = append(all, v)
		}
	}
	return problem.Violations(all...)
}

// toSiteFailure turns the error of a write of one site into its answer.
func toSiteFailure(err error) error {
	e, ok := errors.AsType[*locations.ContentError](err)
	if !ok {
		return err
	}
	var all []problem.Violation
	for _, f := range e.Faults {
		all = append(all, locateFault(f)...)
	}
	return problem.Violations(all...)
}

// locateFault returns the violations of a faulty member, without their input. For horaires, each names the field inside that is wrong.
// Loc is as in the write of one site.
func locateFault(f locations.RowFault) []problem.Violation {
	if f.Member == "horaires" {
		if all := locateHoursFaults(f.Content.Hours); len(all) > 0 {
			return all
		}
	}
	return []problem.Violation{{Type: "value_error", Loc: []any{"body", f.Member}, Msg: "Value error, " + f.Rule}}
}

// locateHoursFaults decodes hours by the tags and rules of their struct. Which hours are refused is not decided here but by
// sites.ParseHours: it may refuse what the decoder takes, and then there is no violation.
func locateHoursFaults(hours json.RawMessage) []problem.Violation {
	type holder struct {
		Hours sites.Hours `json:"horaires"`
	}
	text := slices.Concat([]byte(`{"horaires":`), hours, []byte("}"))
	_, err := kit.NewDecoder[holder]().DecodeText(text)
	p, _ := errors.AsType[problem.Problem](err)
	failure, _ := p.Body.(body.RuleFailure)
	for i := range failure.Detail {
		failure.Detail[i].Input = nil // of the request, and not of text
	}
	return failure.Detail
}
