package api

import (
	"encoding/json"
	"errors"
	"slices"

	"lieudit/commands/locations"
	"lieudit/http/problem"
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
	return toFailure(faults, func(f locations.RowFault) []any { return []any{"body", "sites", places[f.ExternalID], f.Member} })
}

// toSiteFailure turns the error of a write of one site into its answer.
func toSiteFailure(err error) error {
	e, ok := errors.AsType[*locations.ContentError](err)
	if !ok {
		return err
	}
	return toFailure(e.Faults, func(f locations.RowFault) []any { return []any{"body", f.Member} })
}

func toFailure(faults []locations.RowFault, locate func(locations.RowFault) []any) error {
	var all []problem.Violation
	for _, f := range faults[:min(len(faults), problem.MaxViolations)] {
		all = append(all, problem.Violation{Type: "value_error", Loc: locate(f), Msg: "Value error, " + f.Rule, Input: inputOf(f)})
	}
	return problem.Violations(all...)
}

// inputOf is the site with the faulty member alone.
func inputOf(f locations.RowFault) map[string]any {
	input := map[string]any{"external_id": f.ExternalID}
	var members map[string]json.RawMessage
	if text, err := json.Marshal(f.Content); err == nil && json.Unmarshal(text, &members) == nil {
		input[f.Member] = members[f.Member]
	}
	return input
}
