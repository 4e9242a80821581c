package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"lieudit/http/api"
	"lieudit/queries/locations/search"
	"lieudit/queries/route"
	"lieudit/schemas/geo"
	"lieudit/schemas/locations"
)

// timedSites are nine sites: three distances from 3, 44, each three times, and three in the west, which nobody can reach.
func timedSites() *ownSites {
	o := &ownSites{pageSize: 10_000}
	for i := range 12 {
		lat, lon := 44+0.1*float64(3-i%4), 3.0
		if i%4 == 3 {
			lat, lon = 44, -3
		}
		s := locations.Site{Referential: "shops", ExternalID: fmt.Sprint("s", 20-i), Active: true}
		s.Lat, s.Lon = &lat, &lon
		o.sites = append(o.sites, s)
	}
	return o
}

// durationPage is a page of a search by duration.
type durationPage struct {
	Results []struct {
		ExternalID    string `json:"external_id"`
		Duration      *int   `json:"duree"`
		RouteDistance *int   `json:"distance_route"`
	}
	Cursor string `json:"curseur"`
}

func (b *testAPI) searchByDuration(t *testing.T, query string) (p durationPage) {
	t.Helper()
	w := b.get("/locations/search?sort=duree&" + query)
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 200 {
		t.Fatalf("%s: %d %s", query, w.Code, w.Body)
	}
	return p
}

func TestSitesAreSortedByTheTimeToDrive(t *testing.T) {
	t.Parallel()
	own := timedSites()
	b := newRoutingAPI(t, &fakeRouter{}, func(p *fakeParts) { p.locations.Search = own })
	want := []string{"s10", "s14", "s18", "s11", "s15", "s19", "s12", "s16", "s20", "s13", "s17", "s9"}
	for limit := 1; limit <= 13; limit++ {
		var got []string
		for cursor := ""; ; {
			p := b.searchByDuration(t, fmt.Sprintf("lat=44&lon=3&limit=%d&curseur=%s", limit, cursor))
			for _, r := range p.Results {
				got = append(got, r.ExternalID)
				if isWest := len(got) > 9; isWest != (r.Duration == nil) || isWest != (r.RouteDistance == nil) || !isWest && *r.Duration != (*r.RouteDistance+5)/10 {
					t.Errorf("%s: %v, %v", r.ExternalID, r.Duration, r.RouteDistance)
				}
			}
			if cursor = p.Cursor; cursor == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("by %d: %q, want %q", limit, got, want)
		}
	}
}

func TestSitesThatNoWayLeadsToComeLastTheNearestFirst(t *testing.T) {
	t.Parallel()
	e := &fakeSearch{}
	for id, at := range map[string]geo.Point{"d": {Lat: 44.2, Lon: 3}, "a": {Lat: 44, Lon: -1.1}, "b": {Lat: 44, Lon: -1}, "c": {Lat: 44.1, Lon: 3}, "e": {Lat: 44, Lon: -1}} {
		hit := search.Hit{Site: locations.Site{ExternalID: id}, Distance: geo.Distance(geo.Point{Lat: 44, Lon: 3}, at)}
		hit.Site.Lat, hit.Site.Lon = &at.Lat, &at.Lon
		e.hits = append(e.hits, hit)
	}
	b := newRoutingAPI(t, &fakeRouter{}, func(p *fakeParts) { p.locations.Search = e })
	for center, want := range map[string][]string{
		"lat=44&lon=3":  {"c", "d", "b", "e", "a"}, // no way leads to a, b and e in the west
		"lat=-44&lon=3": {"c", "d", "b", "e", "a"}, // no road is near; the distances are those from 44, 3
	} {
		for limit := 1; limit <= len(want); limit++ {
			if got := b.collectByDuration(t, center, limit); !slices.Equal(got, want) {
				t.Errorf("%s by %d: %q, want %q", center, limit, got, want)
			}
		}
	}
}

// collectByDuration is the external ids of all pages of a search by duration.
func (b *testAPI) collectByDuration(t *testing.T, query string, limit int) (ids []string) {
	t.Helper()
	for cursor := ""; ; {
		p := b.searchByDuration(t, fmt.Sprintf("%s&limit=%d&curseur=%s", query, limit, cursor))
		for _, r := range p.Results {
			ids = append(ids, r.ExternalID)
		}
		if cursor = p.Cursor; cursor == "" {
			return ids
		}
	}
}

func TestPagesByDurationNeitherRepeatNorSkipWhatStays(t *testing.T) {
	t.Parallel()
	own := timedSites()
	b := newRoutingAPI(t, &fakeRouter{}, func(p *fakeParts) { p.locations.Search = own })
	first := b.searchByDuration(t, "lat=44&lon=3&limit=4")
	own.sites = slices.DeleteFunc(own.sites, func(s locations.Site) bool { return s.ExternalID == "s11" }) // the last of the page
	nearer := locations.Site{Referential: "shops", ExternalID: "new", Active: true}
	lat, lon := 44.01, 3.0
	nearer.Lat, nearer.Lon = &lat, &lon
	own.sites = append(own.sites, nearer)
	rest := b.searchByDuration(t, "lat=44&lon=3&limit=20&curseur="+first.Cursor)
	var got []string
	for _, r := range rest.Results {
		got = append(got, r.ExternalID)
	}
	if want := []string{"s15", "s19", "s12", "s16", "s20", "s13", "s17", "s9"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	expectResponse(t, "another order", b.get("/locations/search?sort=distance&lat=44&lon=3&curseur="+first.Cursor), 422, "not a cursor that was given")
}

func TestTheCandidatesByDurationAreTheNearestAsTheCrowFlies(t *testing.T) {
	t.Parallel()
	e, r := &fakeSearch{}, &fakeRouter{}
	b := newRoutingAPI(t, r, func(p *fakeParts) { p.locations.Search = e })
	expectResponse(t, "none", b.get("/locations/search?sort=duree&q=x&near=12+avenue+foch+48000+mende&limit=3"), 200, nothingFound)
	want := search.Query{Account: "acme", Text: "x", Center: &geo.Point{Lat: 44.51, Lon: 3.5}, Radius: 10_000, Sort: search.ByDistance, Limit: 1_000, MatchExternalIDs: true}
	if got := e.queries[0]; fmt.Sprint(got.Center) != fmt.Sprint(want.Center) || got.Limit != want.Limit || got.Sort != want.Sort || got.Text != "x" || got.Radius != want.Radius {
		t.Errorf("got %+v, want %+v", got, want)
	}
	site := locations.Site{ExternalID: "a"}
	lat, lon := 44.6, 3.5
	site.Lat, site.Lon = &lat, &lon
	e.hits = []search.Hit{{Site: site}}
	expectResponse(t, "one", b.get("/locations/search?sort=duree&near=12+avenue+foch+48000+mende&format=geojson"), 200, `"duree":1001,"distance_route":10008`)
	expectResponse(t, "counted", b.get("/locations/search?sort=duree&lat=44&lon=3&total=true"), 200, `"total":1`)
	q := r.queries[0].(route.NearestQuery)
	if q.Origin.Street != "Avenue Foch" || q.Mode != route.Car || q.Optimization != route.Fastest {
		t.Errorf("asked %+v", q)
	}
}

func TestASearchByDurationNeedsSecretKeyPlanCenterAndRouter(t *testing.T) {
	t.Parallel()
	const around = "/services/v1/locations/search?sort=duree&lat=44&lon=3"
	b := newRoutingAPI(t, &fakeRouter{err: route.ErrUnavailable}, func(p *fakeParts) { p.locations.Search = timedSites() })
	w := b.send("GET", around, "BUSINESS publishable", "Origin", "https://a.fr")
	expectResponse(t, "a publishable key", w, 422, `{"detail":[{"type":"literal_error","loc":["query","sort"],"msg":"Input should be 'pertinence', 'distance' or 'nom'","input":{"lat":"44","lon":"3","sort":"duree"}}]}`)
	expectResponse(t, "a smaller plan", b.send("GET", around, "STARTER secret"), 403, planInsufficient("STARTER"))
	expectResponse(t, "no centre", b.send("GET", "/services/v1/locations/search?sort=duree", "GROWTH secret"), 422, "sort=duree needs lat and lon, or near")
	expectResponse(t, "no router", b.send("GET", around, "GROWTH secret"), 500, "Routing engine unavailable")
	b.changeHandler(func(p *fakeParts) { p.router = &fakeRouter{} })
	expectResponse(t, "a centre off the road", b.send("GET", "/services/v1/locations/search?sort=duree&lat=-44&lon=3&radius=100000", "GROWTH secret"), 200, `"distance":0}`)
}

func TestARefusalOfThePlanIsNotCounted(t *testing.T) {
	t.Parallel()
	for counting, want := range map[api.CountingPolicy]int64{{}: 0, api.CountAll: 1} {
		b, counted := newMeteredAPI(t, counting)
		b.send("GET", "/services/v1/locations/search?sort=duree&lat=44&lon=3", "STARTER secret")
		if got := counted(); got != want {
			t.Errorf("%+v: %d counted, want %d", counting, got, want)
		}
	}
}
