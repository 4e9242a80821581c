package api

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"

	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/http/resolve"
	"lieudit/http/routing"
	"lieudit/queries/address/live"
	"lieudit/queries/locations/search"
	"lieudit/queries/worker"
	"lieudit/schemas/body"
	"lieudit/schemas/geo"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// defaultRadius is how far from the centre sites are looked for, in metres. A search that asks for the order by distance has no limit:
// its first page is the nearest sites, however far they are.
const defaultRadius = 10_000

// searchLocations finds sites of the account. A secret key sees all members of them, a publishable key those that a web page may
// show (toPublicSite); it neither searches external ids nor sees inactive sites.
func (h *handler) searchLocations(ctx context.Context, c call, in body.SearchLocations) (kit.Response, error) {
	isPublic := c.Principal.Kind == token.Publishable
	if err := checkSearchAccess(c.Principal, in); err != nil {
		return kit.Response{}, err
	}
	q, center, err := h.buildSiteQuery(ctx, in)
	if err != nil {
		return kit.Response{}, err
	}
	q.Account, q.MatchExternalIDs = c.Principal.Account, !isPublic
	// The engine's cursor names a site, so a client gets it encrypted, and it is decrypted only for the same search.
	question := in
	question.Limit, question.Cursor, question.Total, question.Facets = 0, "", false, nil // these may differ from page to page
	sealer := cursorSealer{secret: h.locations.CursorSecret, account: c.Principal.Account, kind: c.Principal.Kind, question: question}
	if q.After, err = sealer.open(ctx, in.Cursor); err != nil {
		return kit.Response{}, err
	}
	if err := reserveSites(ctx, c, in); err != nil {
		return kit.Response{}, err
	}
	page := resultPage{center: center, hasCenter: q.Center != nil}
	if in.Sort == sortByDuration {
		page.hits, page.next, err = h.findByDuration(ctx, q, center)
	} else {
		page.hits, page.next, err = h.findSites(ctx, q)
	}
	switch {
	case errors.Is(err, search.ErrInvalidCursor):
		return kit.Response{}, problem.InvalidCursor()
	case err != nil || len(page.hits) == 0:
		return kit.Response{Body: noSites(in.Format)}, err
	}
	if page.counts, err = h.countSites(ctx, q, in); err != nil {
		return kit.Response{}, err
	}
	if page.next, err = sealer.seal(ctx, page.next); err != nil {
		return kit.Response{}, err
	}
	return kit.OK(page.render(isPublic, in.Format == geoJSON))
}

// siteBytes is what a site of the largest size takes in an answer that is built of it.
const siteBytes = 32 << 10

// maxUnreservedSites is how many sites a search may look at without a reservation of memory for its answer: as many as a page has that names
// no limit, and more. Such an answer is built within a millisecond, and takes its share only once it is large. So clients that read
// their answers slowly cannot keep others from searching.
const maxUnreservedSites = 25

// reserveSites reserves memory for the sites that a search looks at. It may wait, so it gives back the worker that found the center.
func reserveSites(ctx context.Context, c call, in body.SearchLocations) error {
	n := in.Limit
	if in.Sort == sortByDuration {
		n = maxTimedSites
		if p, ok := plan.Lookup(c.Principal.Plan); ok {
			n = max(in.Limit, min(n, p.SiteCeiling()))
		}
	}
	if n <= maxUnreservedSites && len(in.Facets) == 0 {
		return nil
	}
	worker.Release(ctx)
	return c.Answer.Reserve(int64(n) * siteBytes)
}

// checkSearchAccess refuses what a search asks for and its key or its plan does not give.
func checkSearchAccess(c caller, in body.SearchLocations) error {
	isPublic, isByDuration := c.Kind == token.Publishable, in.Sort == sortByDuration
	switch {
	case isPublic && in.Status != "":
		return problem.BrokenRule("query", "statut", "extra_forbidden", "Extra inputs are not permitted")
	case isPublic && in.Total:
		return problem.BrokenRule("query", "total", "extra_forbidden", "Extra inputs are not permitted")
	case isPublic && in.Facets != nil:
		return problem.BrokenRule("query", "facettes", "extra_forbidden", "Extra inputs are not permitted")
	case isPublic && isByDuration:
		return problem.BrokenRule("query", "sort", "literal_error", "Input should be 'pertinence', 'distance' or 'nom'")
	case isByDuration && !planIncludes(c.Plan, plan.RouteTools):
		return refusal.PlanInsufficient.With(refusal.Details{Plan: c.Plan})
	}
	return nil
}

// findSites returns one page of a search, in the order of the engine, and the engine's cursor of the next.
func (h *handler) findSites(ctx context.Context, q search.Query) ([]pageHit, string, error) {
	r, err := h.locations.Search.Search(ctx, q)
	return mapSlice(r.Hits, func(hit search.Hit) pageHit { return pageHit{Hit: hit} }), r.Next, err
}

// countSites returns the total and the facets, if the search asks for them.
func (h *handler) countSites(ctx context.Context, q search.Query, in body.SearchLocations) (shown body.Counts, err error) {
	if !in.Total && len(in.Facets) == 0 {
		return shown, nil
	}
	q.Sort, q.After = "", "" // all pages in any order; that of duration is unknown to the engines
	counts, err := h.locations.Search.Count(ctx, q, mapSlice(in.Facets, func(f string) search.Facet { return search.Facet(f) }))
	if err != nil {
		return shown, err
	}
	if in.Total {
		shown.Total = &counts.Total
	}
	if len(in.Facets) > 0 {
		valuesOf := func(f search.Facet) []body.ValueCount {
			return mapSlice(counts.Facets[f], func(v search.ValueCount) body.ValueCount { return body.ValueCount(v) })
		}
		shown.Facets = &body.Facets{Tags: valuesOf(search.TagFacet), Towns: valuesOf(search.TownFacet), Referentials: valuesOf(search.ReferentialFacet)}
	}
	return shown, nil
}

// noSites is the answer to a search that found no site: as GeoJSON a collection without features.
func noSites(format string) any {
	if format != geoJSON {
		return body.NoResultsAnswer
	}
	return body.LocationCollection{
		CollectionEnvelope: body.CollectionEnvelope{Type: "FeatureCollection", Envelope: body.NoResultsAnswer.Envelope}, Features: []body.LocationFeature{},
	}
}

// buildSiteQuery is the engine's query for a request, and what near was resolved to, nil without it. A text that resolves to no address
// and to no place is refusal.AddressUnresolved.
func (h *handler) buildSiteQuery(ctx context.Context, in body.SearchLocations) (search.Query, *body.Center, error) {
	q := search.Query{
		Text: in.Q, Referential: in.Referential, Tags: in.Tags, Limit: in.Limit,
		Status: search.Status(in.Status), Sort: search.Sort(in.Sort), // findByDuration replaces duree
	}
	if in.Open {
		q.OpenAt = h.Now()
	}
	if in.BBox != "" {
		box, err := body.ParseBoundingBox(in.BBox)
		if err != nil {
			return q, nil, err
		}
		b := search.Box(box)
		q.Box = &b
	}
	if in.Lat != nil {
		q.Center = &geo.Point{Lat: *in.Lat, Lon: *in.Lon}
	}
	near, err := h.resolveNear(ctx, in.Near)
	if err != nil {
		return q, nil, err
	}
	if near != nil {
		q.Center = &geo.Point{Lat: near.Lat, Lon: near.Lon}
	}
	if q.Center != nil && q.Sort != search.ByDistance {
		q.Radius = defaultRadius
	}
	if in.Radius != nil {
		q.Radius = float64(*in.Radius)
	}
	return q, near, nil
}

// resolveNear is the centre that the parameter near means, nil without it: a postcode or a commune is a place with a centre
// (address.Engine.Place), any other text the one address that it means.
func (h *handler) resolveNear(ctx context.Context, near string) (*body.Center, error) {
	if near == "" {
		return nil, nil
	}
	return queryAddresses(h, func(e *live.Engine) (*body.Center, error) {
		if r, ok := e.Place(near); ok {
			shown := resolve.ShowRecord(&r)
			return &body.Center{Input: near, Score: 1, Place: r.Label, Address: &shown, Lon: r.Lon, Lat: r.Lat}, nil
		}
		return resolveCenter(ctx, e.Engine, body.NearAddress{Center: near})
	})
}

// pageHit is a site that was found. drive is nil unless the search is sorted by duration and a road leads there.
type pageHit struct {
	search.Hit
	drive *routing.Way
}

// resultPage is one page of what was found.
type resultPage struct {
	hits      []pageHit
	next      string
	center    *body.Center // that near was resolved to; nil without near
	hasCenter bool
	counts    body.Counts
}

// render shows a page in one of four bodies: for a secret or a publishable key, as a list or as GeoJSON.
func (p resultPage) render(isPublic, isGeoJSON bool) any {
	if isPublic {
		p.center = toPublicCenter(p.center)
	}
	collection := body.CollectionEnvelope{Type: "FeatureCollection", Envelope: body.OKEnvelope, Center: p.center, Cursor: p.next}
	switch {
	case isPublic && isGeoJSON:
		return body.PublicCollection{CollectionEnvelope: collection, Features: mapSlice(p.hits, func(h pageHit) body.PublicFeature {
			return body.PublicFeature{FeatureGeometry: body.NewFeatureGeometry(h.Site.Lat, h.Site.Lon), Properties: toPublicSite(h.Hit, p.distance(h))}
		})}
	case isGeoJSON:
		return body.LocationCollection{CollectionEnvelope: collection, Counts: p.counts, Features: mapSlice(p.hits, func(h pageHit) body.LocationFeature {
			return body.LocationFeature{FeatureGeometry: body.NewFeatureGeometry(h.Site.Lat, h.Site.Lon), Properties: p.foundSite(h)}
		})}
	case isPublic:
		return body.PublicLocations{Envelope: body.OKEnvelope, Center: p.center, Cursor: p.next, Results: mapSlice(p.hits, func(h pageHit) body.PublicSite {
			return toPublicSite(h.Hit, p.distance(h))
		})}
	}
	return body.Locations{Envelope: body.OKEnvelope, Counts: p.counts, Center: p.center, Cursor: p.next, Results: mapSlice(p.hits, p.foundSite)}
}

// foundSite is what a secret key sees of a site.
func (p resultPage) foundSite(h pageHit) body.FoundSite {
	shown := body.FoundSite{Site: h.Site, Distance: p.distance(h)}
	if h.drive != nil {
		shown.Duration, shown.RouteDistance = &h.drive.Duration, &h.drive.Distance
	}
	return shown
}

// toPublicCenter is what a publishable key may see of a centre: where it lies, and the commune that a postcode or a name means. The
// record is for secret keys, to which /address/* is open.
func toPublicCenter(c *body.Center) *body.Center {
	if c == nil {
		return nil
	}
	return &body.Center{Input: c.Input, Place: c.Place, Lon: c.Lon, Lat: c.Lat}
}

// distance is how many metres a site is from the centre; nil where either has no position.
func (p resultPage) distance(h pageHit) *int {
	if !p.hasCenter || h.Site.Lat == nil {
		return nil
	}
	metres := int(math.Round(h.Distance))
	return &metres
}

// toPublicSite is what a publishable key may see. Every member is copied by its name, so that a member that sites get later
// is not shown unless it is added here.
func toPublicSite(h search.Hit, distance *int) body.PublicSite {
	s := h.Site
	shown := body.PublicSite{
		Name: s.Name, Lat: s.Lat, Lon: s.Lon, Hours: s.Hours, Phone: s.Phone, Website: s.Website, Tags: s.Tags, Distance: distance,
	}
	if a := s.Address; a != nil {
		shown.Address = &body.PublicAddress{
			Line1: a.Line1, Line2: a.Line2, PostalCode: a.PostalCode, City: a.City, InseeCode: a.InseeCode, Country: a.Country,
		}
	}
	return shown
}

// cursorSealer encrypts the cursors of one question of one account and one kind of key (AES-GCM). A client can neither make nor
// change a cursor, nor read from it which site a page ended with, which a publishable key must not show. The question is
// authenticated with the cursor but not stored in it: a cursor of another question does not open.
type cursorSealer struct {
	secret   func(ctx context.Context, account string) ([]byte, error)
	account  string
	kind     token.Kind
	question any // without its cursor; its JSON is what counts
}

// seal encrypts a cursor, as base64 for a URL. After the last page next is "", and so is the result.
func (s cursorSealer) seal(ctx context.Context, next string) (string, error) {
	if next == "" {
		return "", nil
	}
	aead, bound, err := s.newCipher(ctx)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, []byte(next), bound)), nil
}

// open decrypts a cursor that seal made for the same question. "", the first page, stays "". Any other text that seal did not make
// is a broken rule.
func (s cursorSealer) open(ctx context.Context, cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return "", problem.InvalidCursor()
	}
	aead, bound, err := s.newCipher(ctx)
	if err != nil {
		return "", err
	}
	next, err := aead.Open(nil, nil, sealed, bound)
	if err != nil {
		return "", problem.InvalidCursor()
	}
	return string(next), nil
}

// newCipher is the cipher of the account's cursors. Its key is derived from the account's secret for cursors alone, of searches and of changes. bound is
// what a cursor is bound to.
func (s cursorSealer) newCipher(ctx context.Context) (aead cipher.AEAD, bound []byte, err error) {
	worker.Release(ctx) // the vault may take long
	secret, err := s.secret(ctx, s.account)
	if err != nil {
		return nil, nil, err
	}
	if bound, err = json.Marshal([]any{s.account, s.kind, s.question}); err != nil {
		return nil, nil, err
	}
	key := hmac.New(sha256.New, secret)
	key.Write([]byte("cursor of a search of sites"))
	block, err := aes.NewCipher(key.Sum(nil))
	if err != nil {
		return nil, nil, err
	}
	aead, err = cipher.NewGCMWithRandomNonce(block)
	return aead, bound, err
}
