package site_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"lieudit/schemas/site"
)

func ptr(x float64) *float64 { return &x }

// full is a content of which everything is said, placed by its address.
func full() site.Content {
	return site.Content{
		Name: "N", Address: &site.Address{Line1: "1", Line2: "2", PostalCode: "48000", City: "Mende", InseeCode: "48095", Country: "FR"},
		Phone: "04", Email: "a@b.fr", Website: "https://a.fr", Tags: []string{"a", "b"},
		Hours: json.RawMessage(`{"lundi":["08:00"],"mardi":[]}`), Properties: json.RawMessage(`{"a":1.50,"b":null}`),
	}
}

func placed() site.Stored {
	return site.Stored{Content: full(), Position: &site.Position{Lat: 44.5, Lon: 3.5, Source: site.FromBan, IDBan: "i"}}
}

func TestContentsCompare(t *testing.T) {
	t.Parallel()
	shown, _, _ := placed().Show()
	with := func(c site.Content, change func(*site.Content)) site.Content {
		if c.Address != nil {
			a := *c.Address
			c.Address = &a
		}
		change(&c)
		return c
	}
	own := site.Stored{Content: with(full(), func(c *site.Content) { c.Lat, c.Lon = ptr(0), ptr(1) })}
	own.Position = own.Content.Own()
	for _, c := range []struct {
		rule    string
		stored  site.Stored
		content site.Content
		want    site.Likeness
	}{
		{"what was said", placed(), full(), site.Same},
		{"what is shown", placed(), shown, site.Same},
		{"JSON in another order with spaces", placed(), with(full(), func(c *site.Content) { c.Hours = json.RawMessage(" { \"mardi\" : [ ], \"lundi\":[\"08:00\"] } ") }), site.Same},
		{"a number written otherwise", placed(), with(full(), func(c *site.Content) { c.Properties = json.RawMessage(`{"a":1.5,"b":null}`) }), site.Different},
		{"nothing and nothing said", site.Stored{}, site.Content{Address: &site.Address{}, Tags: []string{}, Properties: json.RawMessage(`{}`), Hours: json.RawMessage(`null`)}, site.Same},
		{"another name", placed(), with(full(), func(c *site.Content) { c.Name = "M" }), site.Different},
		{"another line", placed(), with(full(), func(c *site.Content) { c.Address.Line2 = "" }), site.Different},
		{"texts that moved to the next field", placed(), with(full(), func(c *site.Content) { c.Phone, c.Email = "04a", "@b.fr" }), site.Different},
		{"tags in another order", placed(), with(full(), func(c *site.Content) { c.Tags = []string{"b", "a"} }), site.Different},
		{"tags that join", placed(), with(full(), func(c *site.Content) { c.Tags = []string{"ab"} }), site.Different},
		{"another name where it is shown", placed(), with(shown, func(c *site.Content) { c.Name = "M" }), site.Echoed},
		{"shown, but without its address's id", placed(), with(shown, func(c *site.Content) { c.IDBan = "" }), site.Different},
		{"shown, but elsewhere", placed(), with(shown, func(c *site.Content) { c.Lat = ptr(44.500001) }), site.Different},
		{"the customer's own position with another name", own, with(own.Content, func(c *site.Content) { c.Name = "M" }), site.Different},
		{"the one zero", own, with(own.Content, func(c *site.Content) { c.Lat = ptr(-1 / inf) }), site.Same},
	} {
		t.Run(strings.ReplaceAll(c.rule, " ", "_"), func(t *testing.T) {
			t.Parallel()
			if got := site.DigestOf(c.stored).Compare(c.content.Sum()); got != c.want {
				t.Errorf("got likeness %d, want %d", got, c.want)
			}
		})
	}
}

var inf = math.Inf(1)

// TestDigestsStayWhatTheyAre: they are on the log.
func TestDigestsStayWhatTheyAre(t *testing.T) {
	t.Parallel()
	const want = "f3fca364cebdced3213ade11c428e8f315ec7bf0b50732b4f452ed0c1ea38a3e"
	if d := site.DigestOf(placed()); fmt.Sprintf("%x", d) != want {
		t.Errorf("got %x, want %s", d, want)
	}
}
