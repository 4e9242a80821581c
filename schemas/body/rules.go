package body

import (
	"lieudit/schemas/grant"
	"lieudit/schemas/token"
)

// The rules over several fields of one body (shape.Checked).

// Broken: only publishable keys have origins.
func (k IssueKey) Broken() []string {
	return when(k.Kind != token.Publishable && k.Origins != nil, "origins go with a publishable key only")
}

// Broken: the roles that act for one account name it, the others name none.
func (t IssueToken) Broken() []string {
	needs := t.Role == grant.Customer || t.Role == grant.Agency
	return append(
		when(needs && t.Account == "", "account is required for this role"),
		when(!needs && t.Account != "", "account goes with the roles customer and agency only")...,
	)
}

// Broken: a span of time runs forward.
func (q HistoryQuery) Broken() []string {
	return when(!q.From.IsZero() && !q.To.IsZero() && q.To.Before(q.From), "from must not be after to")
}

func when(broken bool, rule string) []string {
	if broken {
		return []string{rule}
	}
	return nil
}

// Broken: a bias is a whole point.
func (q CompleteAddress) Broken() []string {
	return when((q.Lat == nil) != (q.Lon == nil), "lat and lon go together")
}

// Broken: an address is sent in one line or in parts; a bias is a whole point.
func (q VerifyAddress) Broken() []string {
	parts := q.Number != "" || q.Street != "" || q.Complement != "" || q.City != ""
	rules := when(q.Q != "" && parts, "q and the parts of an address exclude each other")
	return append(rules, when((q.Lat == nil) != (q.Lon == nil), "lat and lon go together")...)
}

// Broken: a centre is one point, given in one way.
func (q NearAddress) Broken() []string {
	rules := when((q.Lat == nil) != (q.Lon == nil), "lat and lon go together")
	return append(rules, when(q.Center != "" && (q.Lat != nil || q.Lon != nil), "center and lat with lon exclude each other")...)
}

// Broken: bounds are in order.
func (q SearchLocality) Broken() []string {
	return when(q.PopulationMin != nil && q.PopulationMax != nil && *q.PopulationMin > *q.PopulationMax,
		"population_min must be less than or equal to population_max")
}
