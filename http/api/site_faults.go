package api

import (
	"encoding/json"
	"errors"
	"slices"

	"lieudit/commands/locations"
	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/schemas/body"
	sites "lieudit/schemas/locations"
)

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

// locateFault is the violations of a faulty member, without their input. Of horaires each names the field inside that breaks a rule.
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
