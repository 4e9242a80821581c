package body

import (
	"fmt"
	"strconv"
	"strings"

	"lieudit/schemas/body/shape"
	"lieudit/schemas/grant"
	"lieudit/schemas/token"
)

// The rules over several fields of one struct (shape.RuleChecker, shape.MemberChecker). They are checked once every field by
// itself keeps its own rules. The texts are part of the answers. The OpenAPI documents cannot show these rules.

// BrokenRules checks that only publishable keys have origins.
func (k IssueKey) BrokenRules() []string {
	return brokenIf(k.Kind != token.Publishable && k.Origins != nil, "origins go with a publishable key only")
}

// BrokenRules checks that the roles that act for one account name it, and the others name none.
func (t IssueToken) BrokenRules() []string {
	needs := t.Role == grant.RoleCustomer || t.Role == grant.RoleAgency
	return append(
		brokenIf(needs && t.Account == "", "account is required for this role"),
		brokenIf(!needs && t.Account != "", "account goes with the roles customer and agency only")...,
	)
}

// BrokenRules are those of the token that the invitation makes.
func (i Invite) BrokenRules() []string { return IssueToken(i).BrokenRules() }

// BrokenRules checks that a span of time does not end before it begins.
func (q HistoryQuery) BrokenRules() []string {
	return brokenIf(!q.From.IsZero() && !q.To.IsZero() && q.To.Before(q.From), "from must not be after to")
}

// brokenIf is a list of the rule where it is broken, otherwise an empty one.
func brokenIf(broken bool, rule string) []string {
	if broken {
		return []string{rule}
	}
	return nil
}

// BrokenRules checks that a bias has both coordinates or none.
func (q CompleteAddress) BrokenRules() []string {
	return brokenIf((q.Lat == nil) != (q.Lon == nil), "lat and lon go together")
}

// BrokenRules checks that an address is sent in one line or in parts, and that a bias has both coordinates or none.
func (q VerifyAddress) BrokenRules() []string {
	parts := q.Number != "" || q.Street != "" || q.Complement != "" || q.City != ""
	rules := brokenIf(q.Q != "" && parts, "q and the parts of an address exclude each other")
	return append(rules, brokenIf((q.Lat == nil) != (q.Lon == nil), "lat and lon go together")...)
}

// BrokenRules checks that a centre is given in one way: as a text, or by both coordinates.
func (q NearAddress) BrokenRules() []string {
	rules := brokenIf((q.Lat == nil) != (q.Lon == nil), "lat and lon go together")
	return append(rules, brokenIf(q.Center != "" && (q.Lat != nil || q.Lon != nil), "center and lat with lon exclude each other")...)
}

// BrokenRules checks that a bias has both coordinates or none.
func (q FormerSearch) BrokenRules() []string { return latLonRule(q.Lat, q.longitude()) }

// BrokenRules checks that a lower bound is not above the upper one.
func (q SearchLocality) BrokenRules() []string {
	return brokenIf(q.PopulationMin != nil && q.PopulationMax != nil && *q.PopulationMin > *q.PopulationMax,
		"population_min must be less than or equal to population_max")
}

// BrokenRules checks that a position has both coordinates or none.
func (r SiteRow) BrokenRules() []string { return latLonRule(r.Lat, r.Lon) }

// BrokenRules checks that a position has both coordinates or none.
func (s PutSite) BrokenRules() []string { return latLonRule(s.Lat, s.Lon) }

// latLonRule checks that a position has both coordinates or none.
func latLonRule(lat, lon *float64) []string {
	return brokenIf((lat == nil) != (lon == nil), "lat and lon go together")
}

// BrokenRules checks that a centre is given in one way, and that parameters which need a centre come with one.
func (q SearchLocations) BrokenRules() []string {
	centred := q.Near != "" || q.Lat != nil || q.Lon != nil
	rules := latLonRule(q.Lat, q.Lon)
	rules = append(rules, brokenIf(q.Near != "" && (q.Lat != nil || q.Lon != nil), "near and lat with lon exclude each other")...)
	rules = append(rules, brokenIf(q.Radius != nil && !centred, "radius needs lat and lon, or near")...)
	needsCenter := q.Sort == "distance" || q.Sort == "duree"
	return append(rules, brokenIf(needsCenter && !centred, "sort="+q.Sort+" needs lat and lon, or near")...)
}

// MemberFaults checks that the corners of a box are on the globe and in their order.
func (q SearchLocations) MemberFaults() []shape.MemberFault {
	if q.BBox == "" {
		return nil
	}
	if _, err := ParseBoundingBox(q.BBox); err != nil {
		return []shape.MemberFault{{Member: "bbox", Rule: err.Error()}}
	}
	return nil
}

// BoundingBox is the south-western and the north-eastern corner of a bbox, in degrees. A box across the antimeridian has a West
// greater than its East.
type BoundingBox struct{ West, South, East, North float64 }

// ParseBoundingBox parses a bbox: west,south,east,north. Its error is the text of a broken rule.
func ParseBoundingBox(text string) (BoundingBox, error) {
	var b BoundingBox
	parts := strings.Split(text, ",")
	if len(parts) != 4 {
		return b, fmt.Errorf("a box is lon,lat,lon,lat")
	}
	for i, bound := range []struct {
		into *float64
		most float64
	}{{&b.West, 180}, {&b.South, 90}, {&b.East, 180}, {&b.North, 90}} {
		n, err := strconv.ParseFloat(parts[i], 64)
		if err != nil || n < -bound.most || n > bound.most {
			return b, fmt.Errorf("a box is lon,lat,lon,lat with lon from -180 to 180 and lat from -90 to 90")
		}
		*bound.into = n
	}
	if b.South > b.North {
		return b, fmt.Errorf("the first lat of a box is not above the second")
	}
	return b, nil
}
