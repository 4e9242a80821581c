package locations_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"lieudit/schemas/locations"
)

func ptr(x float64) *float64 { return &x }

// newFullContent is a content with every field but a position.
func newFullContent() locations.Content {
	return locations.Content{
		Name: "N", Address: &locations.SiteAddress{Line1: "1", Line2: "2", PostalCode: "48000", City: "Mende", InseeCode: "48095", Country: "FR"},
		Phone: "04", Email: "a@b.fr", Website: "https://a.fr", Tags: []string{"a", "b"},
		Hours: json.RawMessage(`{"lundi":["08:00"],"mardi":[]}`), Properties: json.RawMessage(`{"a":1.50,"b":null}`),
	}
}

func newGeocodedSite() locations.StoredSite {
	return locations.StoredSite{Content: newFullContent(), Position: &locations.Position{Lat: 44.5, Lon: 3.5, Source: locations.SourceBAN, IDBan: "i"}}
}

func TestContentsCompare(t *testing.T) {
	t.Parallel()
	shown := newGeocodedSite().ShownContent()
	with := func(c locations.Content, change func(*locations.Content)) locations.Content {
		if c.Address != nil {
			a := *c.Address
			c.Address = &a
		}
		change(&c)
		return c
	}
	own := locations.StoredSite{Content: with(newFullContent(), func(c *locations.Content) { c.Lat, c.Lon = ptr(0), ptr(1) })}
	own.Position = own.Content.OwnPosition()
	for _, c := range []struct {
		rule    string
		stored  locations.StoredSite
		content locations.Content
		want    locations.Similarity
	}{
		{"what was said", newGeocodedSite(), newFullContent(), locations.Same},
		{"what is shown", newGeocodedSite(), shown, locations.Same},
		{"JSON in another order with spaces", newGeocodedSite(), with(newFullContent(), func(c *locations.Content) { c.Hours = json.RawMessage(" { \"mardi\" : [ ], \"lundi\":[\"08:00\"] } ") }), locations.Same},
		{"a number written otherwise", newGeocodedSite(), with(newFullContent(), func(c *locations.Content) { c.Properties = json.RawMessage(`{"a":1.5,"b":null}`) }), locations.Different},
		{"nothing and nothing said", locations.StoredSite{}, locations.Content{Address: &locations.SiteAddress{}, Tags: []string{}, Properties: json.RawMessage(`{}`), Hours: json.RawMessage(`null`)}, locations.Same},
		{"another name", newGeocodedSite(), with(newFullContent(), func(c *locations.Content) { c.Name = "M" }), locations.Different},
		{"another line", newGeocodedSite(), with(newFullContent(), func(c *locations.Content) { c.Address.Line2 = "" }), locations.Different},
		{"texts that moved to the next field", newGeocodedSite(), with(newFullContent(), func(c *locations.Content) { c.Phone, c.Email = "04a", "@b.fr" }), locations.Different},
		{"tags in another order", newGeocodedSite(), with(newFullContent(), func(c *locations.Content) { c.Tags = []string{"b", "a"} }), locations.Different},
		{"tags that join", newGeocodedSite(), with(newFullContent(), func(c *locations.Content) { c.Tags = []string{"ab"} }), locations.Different},
		{"another name where it is shown", newGeocodedSite(), with(shown, func(c *locations.Content) { c.Name = "M" }), locations.SameShownPosition},
		{"shown, but without its address's id", newGeocodedSite(), with(shown, func(c *locations.Content) { c.IDBan = "" }), locations.Different},
		{"shown, but elsewhere", newGeocodedSite(), with(shown, func(c *locations.Content) { c.Lat = ptr(44.500001) }), locations.Different},
		{"the customer's own position with another name", own, with(own.Content, func(c *locations.Content) { c.Name = "M" }), locations.Different},
		{"the one zero", own, with(own.Content, func(c *locations.Content) { c.Lat = ptr(-1 / inf) }), locations.Same},
	} {
		t.Run(strings.ReplaceAll(c.rule, " ", "_"), func(t *testing.T) {
			t.Parallel()
			if got := locations.DigestOf(c.stored).Compare(c.content.Hash()); got != c.want {
				t.Errorf("got similarity %d, want %d", got, c.want)
			}
		})
	}
}

var inf = math.Inf(1)

// Digests are on the log.
func TestDigestsNeverChange(t *testing.T) {
	t.Parallel()
	const want = "f3fca364cebdced3213ade11c428e8f315ec7bf0b50732b4f452ed0c1ea38a3e"
	if d := locations.DigestOf(newGeocodedSite()); fmt.Sprintf("%x", d) != want {
		t.Errorf("got %x, want %s", d, want)
	}
}
