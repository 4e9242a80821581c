package api_test

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/live"
	"lieudit/queries/locations/search"
	"lieudit/queries/route"
	"lieudit/schemas/geo"
	"lieudit/schemas/locations"
	"lieudit/schemas/refusal"
)

// fakeRouter is a router on a plane without roads: every way is straight, at 10 m/s. South of the equator no road is near, and no way
// leads from the western half of the globe to the eastern. It records what it is asked.
type fakeRouter struct {
	err error // of every question

	mu      sync.Mutex
	queries []any
}

func (r *fakeRouter) record(q any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queries = append(r.queries, q)
	return r.err
}

func isReachable(a, b route.Bound) bool {
	return a.Lat >= 0 && b.Lat >= 0 && (a.Lon < 0) == (b.Lon < 0)
}

// accessOf is 3 metres from the bound, on a road with the name of its street.
func accessOf(b route.Bound) route.Access {
	if b.Lat < 0 {
		return route.Access{}
	}
	return route.Access{Point: b.Point, Distance: 3.4, Street: b.Street, IsOnOwn: b.Street != ""}
}

func accessesOf(all []route.Bound) (accesses []route.Access) {
	for _, b := range all {
		accesses = append(accesses, accessOf(b))
	}
	return accesses
}

func (r *fakeRouter) Route(_ context.Context, q route.Query) (route.Answer, error) {
	if err := r.record(q); err != nil {
		return route.Answer{}, err
	}
	way := route.Route{TollDistance: 12.5}
	for i, b := range q.Bounds {
		if b.Lat < 0 {
			return route.Answer{}, &route.OffRoadError{Bound: i}
		}
		if q.Geometry {
			way.Geometry = append(way.Geometry, b.Point)
		}
		if i == 0 {
			continue
		}
		if !isReachable(q.Bounds[i-1], b) {
			return route.Answer{}, route.ErrNoRoute
		}
		leg := route.Leg{Distance: geo.Distance(q.Bounds[i-1].Point, b.Point)}
		leg.Duration = leg.Distance / 10
		if q.Steps {
			leg.Steps = []route.Step{
				{Distance: leg.Distance, Duration: leg.Duration, Name: "Avenue Foch", Ref: "D 806", Maneuver: route.Maneuver{Point: q.Bounds[i-1].Point, Type: route.Depart},
					Geometry: []geo.Point{q.Bounds[i-1].Point, b.Point}},
				{Name: "Avenue Foch", Maneuver: route.Maneuver{Point: b.Point, Type: route.Arrive}},
			}
		}
		way.Distance, way.Duration, way.Legs = way.Distance+leg.Distance, way.Duration+leg.Duration, append(way.Legs, leg)
	}
	if q.Avoid&route.Ferries != 0 {
		way.Avoided = []route.Avoided{{Kind: route.Ferries, Distance: 99.6}}
	}
	return route.Answer{Accesses: accessesOf(q.Bounds), Routes: slices.Repeat([]route.Route{way}, 1+q.Alternatives)}, nil
}

func (r *fakeRouter) Matrix(_ context.Context, q route.MatrixQuery) (route.Matrix, error) {
	m := route.Matrix{OriginAccesses: accessesOf(q.Origins), DestinationAccesses: accessesOf(q.Destinations)}
	for _, from := range q.Origins {
		var durations, distances []float64
		for _, to := range q.Destinations {
			duration, distance := float64(route.Unreachable), float64(route.Unreachable)
			if isReachable(from, to) {
				distance = geo.Distance(from.Point, to.Point)
				duration = distance / 10
			}
			durations, distances = append(durations, duration), append(distances, distance)
		}
		m.Durations, m.Distances = append(m.Durations, durations), append(m.Distances, distances)
	}
	return m, r.record(q)
}

func (r *fakeRouter) Nearest(_ context.Context, q route.NearestQuery) (route.Nearest, error) {
	if err := r.record(q); err != nil {
		return route.Nearest{}, err
	}
	if q.Origin.Lat < 0 {
		return route.Nearest{}, &route.OffRoadError{}
	}
	n := route.Nearest{Access: accessOf(q.Origin)}
	for i, d := range q.Destinations {
		if distance := geo.Distance(q.Origin.Point, d.Point); isReachable(q.Origin, d) {
			n.Found = append(n.Found, route.NearDestination{Index: i, Access: accessOf(d), Distance: distance, Duration: distance / 10})
		}
	}
	slices.SortStableFunc(n.Found, func(a, b route.NearDestination) int { return int(a.Distance - b.Distance) })
	n.Found = n.Found[:min(len(n.Found), q.Limit)]
	return n, nil
}

// Isochrone answers a square around the centre, of half a limit's degrees each way, with a hole a tenth as wide.
func (r *fakeRouter) Isochrone(_ context.Context, q route.IsochroneQuery) (route.Isochrone, error) {
	if err := r.record(q); err != nil {
		return route.Isochrone{}, err
	}
	if q.Center.Lat < 0 {
		return route.Isochrone{}, &route.OffRoadError{}
	}
	found := route.Isochrone{Access: accessOf(q.Center)}
	for _, limit := range q.Limits {
		border, hole := square(q.Center.Point, limit/1000), square(q.Center.Point, limit/10_000)
		slices.Reverse(hole)
		found.Areas = append(found.Areas, route.Area{{border, hole}})
	}
	return found, nil
}

// square is a ring around a position, n degrees away from it.
func square(p geo.Point, half float64) []geo.Point {
	return []geo.Point{{Lon: p.Lon - half, Lat: p.Lat - half}, {Lon: p.Lon + half, Lat: p.Lat - half}, {Lon: p.Lon + half, Lat: p.Lat + half},
		{Lon: p.Lon - half, Lat: p.Lat + half}, {Lon: p.Lon - half, Lat: p.Lat - half}}
}

func (r *fakeRouter) Network(context.Context) (route.Network, error) {
	if r.err != nil {
		return route.Network{}, r.err
	}
	return route.Network{Engine: "own", Date: time.Date(2026, 11, 20, 21, 0, 0, 0, time.UTC), Attribution: route.OSMAttribution}, nil
}

// ownSites are the sites of the account acme: two in the referential shops, one of them far away, and one without a position.
type ownSites struct {
	noLocations
	sites    []locations.Site
	pageSize int // at most this many sites to a page
}

func newOwnSites() *ownSites {
	at := func(code, id string, lon, lat float64, tags ...string) locations.Site {
		s := locations.Site{Referential: code, ExternalID: id, Active: true}
		s.Name, s.Tags = "Boutique "+id, tags
		if lat != 0 {
			s.Lat, s.Lon = &lat, &lon
		}
		return s
	}
	placed := at("shops", "a", 3.5, 44.51, "bio")
	placed.IDBan = "5c1a1f0e-3c0f-4a53-9d36-6b5b0e7c0001"
	return &ownSites{pageSize: 2, sites: []locations.Site{placed, at("shops", "b", 3.6, 44.6), at("depots", "z", 3.5, 44.56, "bio"), at("shops", "nowhere", 0, 0)}}
}

func (o *ownSites) FindSite(_ context.Context, account, code, externalID string) (locations.Site, error) {
	for _, s := range o.sites {
		if account == "acme" && s.Referential == code && s.ExternalID == externalID {
			return s, nil
		}
	}
	return locations.Site{}, refusal.NotFound
}

// Search finds the sites by external id, few to a page, so that readers must turn pages.
func (o *ownSites) Count(context.Context, search.Query, []search.Facet) (search.Counts, error) {
	return search.Counts{}, refusal.Internal
}

func (o *ownSites) Search(_ context.Context, q search.Query) (r search.Result, err error) {
	for _, s := range o.sites {
		isTagged := !slices.ContainsFunc(q.Tags, func(tag string) bool { return !slices.Contains(s.Tags, tag) })
		isPlaced := s.Lat != nil && (q.Box == nil || q.Box.Contains(geo.Point{Lat: *s.Lat, Lon: *s.Lon}))
		if q.Account == "acme" && s.ExternalID > q.After && isTagged && (q.Referential == "" || s.Referential == q.Referential) && (isPlaced || q.Box == nil) {
			r.Hits = append(r.Hits, search.Hit{Site: s})
		}
	}
	slices.SortFunc(r.Hits, func(a, b search.Hit) int { return strings.Compare(a.Site.ExternalID, b.Site.ExternalID) })
	if size := min(o.pageSize, q.Limit); len(r.Hits) > size {
		r.Hits = r.Hits[:size]
		r.Next = r.Hits[size-1].Site.ExternalID
	}
	return r, nil
}

// newAddresses is an address base of two house numbers in Mende and one in Florac.
func newAddresses(t testing.TB) *live.Vintage {
	t.Helper()
	at := func(id string, number uint32, street, postcode, code, city string, lon, lat float64) ban.Row {
		return ban.Row{ID: id, Numero: number, Voie: street, CodePostal: postcode, CodeInsee: code, Commune: city, Lon: lon, Lat: lat}
	}
	rows := []ban.Row{
		at("48095_0100_00012", 12, "Avenue Foch", "48000", "48095", "Mende", 3.5, 44.51),
		at("48095_0100_00014", 14, "Avenue Foch", "48000", "48095", "Mende", 3.501, 44.511),
		at("48061_0200_00001", 1, "Rue du Pêcher", "48400", "48061", "Florac Trois Rivières", 3.59, 44.32),
	}
	rows[0].IDBan = "5c1a1f0e-3c0f-4a53-9d36-6b5b0e7c0001"
	v, err := addresstest.BuildVintage(rows)
	if err != nil {
		t.Fatal(err)
	}
	communes, err := commune.Load()
	if err != nil {
		t.Fatal(err)
	}
	a := live.New(communes)
	a.Swap(v)
	t.Cleanup(func() { a.Swap(nil) })
	return a
}

// newRoutingAPI is a testAPI with a router, a few addresses and a few sites.
func newRoutingAPI(t testing.TB, r route.Router, change func(*fakeParts)) *testAPI {
	t.Helper()
	b, own, addresses := newTestAPI(t), newOwnSites(), newAddresses(t)
	b.replaceHandler(func(p *fakeParts) {
		p.router, p.addresses, p.locations.Queries, p.locations.Search = r, addresses, own, own
		change(p)
	})
	return b
}

func unchanged(*fakeParts) {}

// post sends a body to a route with the key of a BUSINESS account.
func (b *testAPI) post(path, text string) *httptest.ResponseRecorder {
	return b.sendBody("POST", path, "BUSINESS secret", strings.NewReader(text))
}

// get sends a query to a route with the key of a BUSINESS account.
func (b *testAPI) get(target string) *httptest.ResponseRecorder {
	return b.send("GET", "/services/v1"+target, "BUSINESS secret")
}
