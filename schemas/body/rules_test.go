package body_test

import (
	"testing"
	"time"

	"lieudit/schemas/body"
	"lieudit/schemas/body/shape"
	"lieudit/schemas/locations"
)

func TestRulesOverSeveralFields(t *testing.T) {
	t.Parallel()
	x, early, late := 1.5, time.Unix(1, 0), time.Unix(2, 0)
	for _, c := range []struct {
		v      shape.RuleChecker
		broken int
	}{
		{body.IssueKey{Kind: "secret"}, 0},
		{body.IssueKey{Kind: "secret", Origins: []string{}}, 1},
		{body.IssueKey{Kind: "secret", Origins: []string{"https://a.fr"}}, 1},
		{body.IssueKey{Kind: "publishable"}, 0}, // for the origins' own rules
		{body.IssueKey{Kind: "publishable", Origins: []string{"x"}}, 0},
		{body.IssueToken{Role: "operator"}, 0},
		{body.IssueToken{Role: "auditor", Account: "a"}, 1},
		{body.IssueToken{Role: "billing", Account: "a"}, 1},
		{body.IssueToken{Role: "operator", Account: "a"}, 1},
		{body.IssueToken{Role: "customer"}, 1},
		{body.IssueToken{Role: "agency"}, 1},
		{body.IssueToken{Role: "agency", Account: "a"}, 0},
		{body.IssueToken{Role: "customer", Account: "a"}, 0},
		{body.HistoryQuery{From: early, To: late}, 0},
		{body.HistoryQuery{From: early, To: early}, 0},
		{body.HistoryQuery{From: late}, 0},
		{body.HistoryQuery{To: early}, 0},
		{body.HistoryQuery{From: late, To: early}, 1},
		{body.SearchLocations{}, 0},
		{body.SearchLocations{Lat: &x, Lon: &x, Sort: "distance"}, 0},
		{body.SearchLocations{Near: "Paris", Sort: "distance"}, 0},
		{body.SearchLocations{Lat: &x}, 1},
		{body.SearchLocations{Lon: &x}, 1},
		{body.SearchLocations{Sort: "distance"}, 1},
		{body.SearchLocations{Lat: &x, Lon: &x, Near: "Paris"}, 1},
		{body.SearchLocations{Lat: &x, Near: "Paris"}, 2},
		{body.SearchLocations{Radius: new(5)}, 1},
		{body.SearchLocations{Radius: new(5), Near: "Paris"}, 0},
		{body.SiteRow{Content: locations.Content{Lat: &x}}, 1},
		{body.SiteRow{Content: locations.Content{Lat: &x, Lon: &x}}, 0},
		{body.PutSite{Content: locations.Content{Lon: &x}}, 1},
	} {
		if got := c.v.BrokenRules(); len(got) != c.broken {
			t.Errorf("%+v breaks %q, want %d rules", c.v, got, c.broken)
		}
	}
}

func TestBoxesHaveCornersOnTheGlobeInTheirOrder(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"": true, "1,2,3,4": true, "-180,-90,180,90": true, "170,0,-170,1": true, "1,2,1,2": true,
		"1,4,3,2": false, "1,2,3,91": false, "-181,2,3,4": false, "1,2,3": false,
	} {
		if got := (body.SearchLocations{BBox: text}).MemberFaults(); (len(got) == 0) != ok {
			t.Errorf("%q breaks %v", text, got)
		}
	}
}
