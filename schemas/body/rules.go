package body

import (
	"lieudit/schemas/access"
	"lieudit/schemas/token"
)

// The rules over several fields of one body (shape.Checked).

// BrokenRules: only publishable keys have origins.
func (k IssueKey) BrokenRules() []string {
	return brokenIf(k.Kind != token.Publishable && k.Origins != nil, "origins go with a publishable key only")
}

// BrokenRules: the roles that act for one account name it, the others name none.
func (t IssueToken) BrokenRules() []string {
	needs := t.Role == access.RoleCustomer || t.Role == access.RoleAgency
	return append(
		brokenIf(needs && t.Account == "", "account is required for this role"),
		brokenIf(!needs && t.Account != "", "account goes with the roles customer and agency only")...,
	)
}

// BrokenRules: a span of time runs forward.
func (q HistoryQuery) BrokenRules() []string {
	return brokenIf(!q.From.IsZero() && !q.To.IsZero() && q.To.Before(q.From), "from must not be after to")
}

func brokenIf(broken bool, rule string) []string {
	if broken {
		return []string{rule}
	}
	return nil
}

// BrokenRules: a bias is a whole point.
func (q CompleteAddress) BrokenRules() []string {
	return brokenIf((q.Lat == nil) != (q.Lon == nil), "lat and lon go together")
}

// BrokenRules: an address is sent in one line or in parts; a bias is a whole point.
func (q VerifyAddress) BrokenRules() []string {
	parts := q.Number != "" || q.Street != "" || q.Complement != "" || q.City != ""
	rules := brokenIf(q.Q != "" && parts, "q and the parts of an address exclude each other")
	return append(rules, brokenIf((q.Lat == nil) != (q.Lon == nil), "lat and lon go together")...)
}

// BrokenRules: a centre is one point, given in one way.
func (q NearAddress) BrokenRules() []string {
	rules := brokenIf((q.Lat == nil) != (q.Lon == nil), "lat and lon go together")
	return append(rules, brokenIf(q.Center != "" && (q.Lat != nil || q.Lon != nil), "center and lat with lon exclude each other")...)
}

// BrokenRules: bounds are in order.
func (q SearchLocality) BrokenRules() []string {
	return brokenIf(q.PopulationMin != nil && q.PopulationMax != nil && *q.PopulationMin > *q.PopulationMax,
		"population_min must be less than or equal to population_max")
}
