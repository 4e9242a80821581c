package findertest

import (
	"errors"
	"math"
	"strings"
	"testing"

	"lieudit/queries/places/finder"
	"lieudit/schemas/site"
)

var oddities = []rule{
	{"odd texts are texts", oddTexts},
	{"words of every script are found", scripts},
	{"odd filters hold literally", oddFilters},
	{"what makes no sense is refused", senseless},
}

func oddTexts(t *testing.T, s Stage) {
	s.Put(t, named("plain", "Magasin"), named("long", strings.Repeat("a", 200)), named("emoji", "🥐 Fournil 🥖"), named("account", "account a b"))
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
		finds(t, s, finder.Query{Text: c.text}, c.want...)
		finds(t, s, finder.Query{Text: c.text, Private: true}, c.want...)
	}
}

func scripts(t *testing.T, s Stage) {
	s.Put(t, named("arabic", "مخبز الزهور"), named("hebrew", "מאפיית הפרחים"), named("greek", "Φούρνος Λουλούδι"), named("russian", "Пекарня Цветы"),
		named("german", "Straße"))
	for _, c := range [][2]string{
		{"مخبز", "arabic"}, {"الزهو", "arabic"}, {"הפרחים", "hebrew"}, {"ΦΟΥΡΝΟΣ", "greek"}, {"пекарня", "russian"},
		{"ПЕКАРНЯ цветы", "russian"}, {"strasse", "german"}, {"STRAẞE", "german"},
	} {
		finds(t, s, finder.Query{Text: c[0]}, c[1])
	}
}

func oddFilters(t *testing.T, s Stage) {
	s.Put(t, Row("a", "shops", "x", site.Stored{Content: site.Content{Name: "Magasin", Tags: []string{`a"b`, `a' OR '1'='1`, "back\\slash"}}}))
	for _, tag := range []string{`a"b`, `a' OR '1'='1`, "back\\slash"} {
		finds(t, s, finder.Query{Tags: []string{tag}}, "x")
	}
	for _, tag := range []string{`x" OR account = "a`, `'`, `"`, "\\", "\x00", "\xff", "", " ", strings.Repeat("a", 10_000), "🥐"} {
		finds(t, s, finder.Query{Tags: []string{tag}})
	}
	for _, code := range []string{`x" OR referential = "shops`, `'`, `shops' --`, "shops\x00", "\xff", "sho*", "🥐"} {
		finds(t, s, finder.Query{Referential: code})
	}
}

func senseless(t *testing.T, s Stage) {
	s.Put(t, named("x", "Magasin"))
	here := &finder.Point{}
	for _, q := range []finder.Query{
		{Limit: -1}, {Limit: 0}, {Limit: 1, Status: "actives"}, {Limit: 1, Sort: "name"}, {Limit: 1, Sort: finder.ByDistance}, {Limit: 1, Radius: 10},
		{Limit: 1, Center: here, Radius: -1}, {Limit: 1, Center: here, Radius: math.NaN()},
		{Limit: 1, Center: &finder.Point{Lat: math.NaN()}}, {Limit: 1, Center: &finder.Point{Lat: 91}}, {Limit: 1, Center: &finder.Point{Lon: -181}},
		{Limit: 1, Box: &finder.Box{South: 1, North: -1}}, {Limit: 1, Box: &finder.Box{East: math.Inf(1)}}, {Limit: 1, Box: &finder.Box{North: math.NaN()}},
	} {
		q.Account = "a"
		if _, err := s.Engine().Search(t.Context(), q); !errors.Is(err, finder.ErrQuestion) {
			t.Errorf("%+v: got %v, want %v", q, err, finder.ErrQuestion)
		}
	}
}
