package searchtest

import (
	"errors"
	"math"
	"strings"
	"testing"

	"lieudit/queries/locations/search"
	"lieudit/schemas/locations"
)

var edgeCases = []rule{
	{"odd texts are texts", oddTexts},
	{"words of every script are found", scripts},
	{"odd filters hold literally", oddFilters},
	{"what makes no sense is refused", invalidQueries},
}

func oddTexts(t *testing.T, s Fixture) {
	s.WriteSites(t, namedRow("plain", "Magasin"), namedRow("long", strings.Repeat("a", 200)), namedRow("emoji", "🥐 Fournil 🥖"), namedRow("account", "account a b"))
	for _, c := range []struct {
		text string
		want []string
	}{
		{strings.Repeat("a", 200), []string{"long"}},
		{strings.Repeat("a", 199), []string{"long"}},
		{strings.Repeat("a", 199) + "b", nil},
		{strings.Repeat("z", 200), nil},
		{strings.Repeat("é", 200), nil},
		{"???", nil},
		{"'\"`;--", nil},
		{"🥐", nil},
		{"🥐 fournil 🎉", []string{"emoji"}},
		{`account = "b"`, []string{"account"}},
		{`magasin" OR account = "b`, nil},
		{"magasin'); drop table site; --", nil},
		{"magasin\x00", []string{"plain"}},
		{"\x00", nil},
		{"mag\xffasin", nil},
		{"\xff\xfe", nil},
		{"-magasin", []string{"plain"}},
		{`"magasin"`, []string{"plain"}},
		{"magasin*", []string{"plain"}},
		{"* * *", nil},
		{"magasin " + strings.Repeat("magasin ", 20), []string{"plain"}},
		{"\u202emagasin\u202c", []string{"plain"}},
		{"ma\u00adgasin", nil},
	} {
		wantSites(t, s, search.Query{Text: c.text}, c.want...)
		wantSites(t, s, search.Query{Text: c.text, MatchExternalIDs: true}, c.want...)
	}
}

func scripts(t *testing.T, s Fixture) {
	s.WriteSites(t, namedRow("arabic", "مخبز الزهور"), namedRow("hebrew", "מאפיית הפרחים"), namedRow("greek", "Φούρνος Λουλούδι"), namedRow("russian", "Пекарня Цветы"),
		namedRow("german", "Straße"))
	for _, c := range [][2]string{
		{"مخبز", "arabic"}, {"الزهو", "arabic"}, {"הפרחים", "hebrew"}, {"ΦΟΥΡΝΟΣ", "greek"}, {"пекарня", "russian"},
		{"ПЕКАРНЯ цветы", "russian"}, {"strasse", "german"}, {"STRAẞE", "german"},
	} {
		wantSites(t, s, search.Query{Text: c[0]}, c[1])
	}
}

func oddFilters(t *testing.T, s Fixture) {
	s.WriteSites(t, NewSiteRow("a", "shops", "x", locations.StoredSite{Content: locations.Content{Name: "Magasin", Tags: []string{`a"b`, `a' OR '1'='1`, "back\\slash"}}}))
	for _, tag := range []string{`a"b`, `a' OR '1'='1`, "back\\slash"} {
		wantSites(t, s, search.Query{Tags: []string{tag}}, "x")
	}
	for _, tag := range []string{`x" OR account = "a`, `'`, `"`, "\\", "\x00", "\xff", "", " ", strings.Repeat("a", 10_000), "🥐"} {
		wantSites(t, s, search.Query{Tags: []string{tag}})
	}
	for _, code := range []string{`x" OR referential = "shops`, `'`, `shops' --`, "shops\x00", "\xff", "sho*", "🥐"} {
		wantSites(t, s, search.Query{Referential: code})
	}
}

func invalidQueries(t *testing.T, s Fixture) {
	s.WriteSites(t, namedRow("x", "Magasin"))
	here := &search.Point{}
	for _, q := range []search.Query{
		{Limit: -1}, {Limit: 0}, {Limit: 1, Status: "actives"}, {Limit: 1, Sort: "name"}, {Limit: 1, Sort: search.ByDistance}, {Limit: 1, Radius: 10},
		{Limit: 1, Center: here, Radius: -1}, {Limit: 1, Center: here, Radius: math.NaN()},
		{Limit: 1, Center: &search.Point{Lat: math.NaN()}}, {Limit: 1, Center: &search.Point{Lat: 91}}, {Limit: 1, Center: &search.Point{Lon: -181}},
		{Limit: 1, Box: &search.Box{South: 1, North: -1}}, {Limit: 1, Box: &search.Box{East: math.Inf(1)}}, {Limit: 1, Box: &search.Box{North: math.NaN()}},
	} {
		q.Account = "a"
		if _, err := s.Engine().Search(t.Context(), q); !errors.Is(err, search.ErrInvalidQuery) {
			t.Errorf("%+v: got %v, want %v", q, err, search.ErrInvalidQuery)
		}
	}
}
