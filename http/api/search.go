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
	"net/http"

	"lieudit/http/problem"
	"lieudit/queries/address"
	"lieudit/queries/address/atlas"
	"lieudit/queries/locations/search"
	"lieudit/schemas/body"
	"lieudit/schemas/token"
)

// defaultRadius is how far from the centre sites are looked for, in metres.
const defaultRadius = 10_000

// searchLocations finds sites of the account: for a secret key all there is to know of them, for a publishable key what
// a page may show.
func (h *handler) searchLocations(ctx context.Context, c call, in body.SearchLocations) (any, error) {
	isPublic := c.grant.Kind == token.Publishable
	if isPublic && in.Status != "" {
		return nil, problem.Violations(problem.Violation{
			Type: "extra_forbidden", Loc: []any{"query", "statut"}, Msg: "Extra inputs are not permitted",
			Input: map[string]any{"statut": in.Status},
		})
	}
	if h.SiteSearch == nil {
		return body.NoResultsAnswer, nil
	}
	q, found, err := h.buildSiteQuery(ctx, in)
	if err != nil || !found {
		return body.NoResultsAnswer, err
	}
	q.Account, q.MatchExternalIDs = c.account(), !isPublic
	sealer := cursorSealer{secret: h.CursorSecret, call: c, search: in}
	if q.After, err = sealer.open(ctx, in.Cursor); err != nil {
		return nil, err
	}
	r, err := h.SiteSearch.Search(ctx, q)
	switch {
	case errors.Is(err, search.ErrInvalidCursor):
		return nil, invalidCursor(in.Cursor)
	case err != nil || len(r.Hits) == 0:
		return body.NoResultsAnswer, err
	}
	page := resultPage{hits: r.Hits, hasCenter: q.Center != nil}
	if page.next, err = sealer.seal(ctx, r.Next); err != nil {
		return nil, err
	}
	return page.render(isPublic, in.Format == geoJSON), nil
}

// buildSiteQuery is a query as an engine is asked. It is false when the centre is an address that leads nowhere.
func (h *handler) buildSiteQuery(ctx context.Context, in body.SearchLocations) (search.Query, bool, error) {
	q := search.Query{
		Text: in.Q, Referential: in.Referential, Tags: in.Tags, Limit: in.Limit,
		Status: search.Status(in.Status), Sort: search.Sort(in.Sort),
	}
	if in.BBox != "" {
		box, err := body.ParseBoundingBox(in.BBox)
		if err != nil {
			return q, false, err
		}
		b := search.Box(box)
		q.Box = &b
	}
	center, err := h.resolveSearchCenter(ctx, in)
	if statusOf(err) == http.StatusUnprocessableEntity {
		return q, false, nil
	}
	if err != nil || center == nil {
		return q, true, err
	}
	q.Center, q.Radius = center, defaultRadius
	if in.Radius != nil {
		q.Radius = float64(*in.Radius)
	}
	return q, true, nil
}

// resolveSearchCenter is where a search is centred, nil when it is not.
func (h *handler) resolveSearchCenter(ctx context.Context, in body.SearchLocations) (*search.Point, error) {
	switch {
	case in.Lat != nil:
		return &search.Point{Lat: *in.Lat, Lon: *in.Lon}, nil
	case in.Near == "":
		return nil, nil
	}
	return queryAddresses(h, func(e *atlas.Edition) (*search.Point, error) { return resolvePoint(ctx, e.Engine, in.Near) })
}

func resolvePoint(ctx context.Context, e *address.Engine, near string) (*search.Point, error) {
	c, err := resolveCenter(ctx, e, body.NearAddress{Center: near})
	if err != nil {
		return nil, err
	}
	return &search.Point{Lat: c.Lat, Lon: c.Lon}, nil
}

// resultPage is what was found.
type resultPage struct {
	hits      []search.Hit
	next      string
	hasCenter bool
}

func (p resultPage) render(isPublic, isGeoJSON bool) any {
	collection := body.CollectionEnvelope{Type: "FeatureCollection", Envelope: body.OKEnvelope, Cursor: p.next}
	switch {
	case isPublic && isGeoJSON:
		return body.PublicCollection{CollectionEnvelope: collection, Features: mapSlice(p.hits, func(h search.Hit) body.PublicFeature {
			return body.PublicFeature{FeatureGeometry: body.NewFeatureGeometry(h.Site.Lat, h.Site.Lon), Properties: toPublicSite(h, p.distance(h))}
		})}
	case isGeoJSON:
		return body.LocationCollection{CollectionEnvelope: collection, Features: mapSlice(p.hits, func(h search.Hit) body.LocationFeature {
			return body.LocationFeature{FeatureGeometry: body.NewFeatureGeometry(h.Site.Lat, h.Site.Lon), Properties: body.FoundSite{Site: h.Site, Distance: p.distance(h)}}
		})}
	case isPublic:
		return body.PublicLocations{Envelope: body.OKEnvelope, Cursor: p.next, Results: mapSlice(p.hits, func(h search.Hit) body.PublicSite {
			return toPublicSite(h, p.distance(h))
		})}
	}
	return body.Locations{Envelope: body.OKEnvelope, Cursor: p.next, Results: mapSlice(p.hits, func(h search.Hit) body.FoundSite {
		return body.FoundSite{Site: h.Site, Distance: p.distance(h)}
	})}
}

// distance is in metres, of what has a position and is looked for around a centre.
func (p resultPage) distance(h search.Hit) *int {
	if !p.hasCenter || h.Site.Lat == nil {
		return nil
	}
	metres := int(math.Round(h.Distance))
	return &metres
}

// toPublicSite is what a publishable key may see: every member is copied by its name, so that a fact that a site comes to
// have is not shown unless it is added here.
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

// cursorSealer makes the cursors of one search, of one account and one kind of key: whoever holds a cursor can neither make nor
// change one, nor read of it which site a page ended with, which a publishable key must not tell.
type cursorSealer struct {
	secret func(ctx context.Context, account string) ([]byte, error) // nil: there are no cursors
	call   call
	search body.SearchLocations
}

// seal is a cursor as strangers may hold it. There is none after the last page.
func (s cursorSealer) seal(ctx context.Context, next string) (string, error) {
	if next == "" || s.secret == nil {
		return "", nil
	}
	aead, bound, err := s.newCipher(ctx)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, []byte(next), bound)), nil
}

// open is the cursor that was sealed.
func (s cursorSealer) open(ctx context.Context, cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || s.secret == nil {
		return "", invalidCursor(cursor)
	}
	aead, bound, err := s.newCipher(ctx)
	if err != nil {
		return "", err
	}
	next, err := aead.Open(nil, nil, sealed, bound)
	if err != nil {
		return "", invalidCursor(cursor)
	}
	return string(next), nil
}

// newCipher seals for this search: bound is all it asks but which page of it, and how long that is.
func (s cursorSealer) newCipher(ctx context.Context) (aead cipher.AEAD, bound []byte, err error) {
	secret, err := s.secret(ctx, s.call.account())
	if err != nil {
		return nil, nil, err
	}
	s.search.Limit, s.search.Cursor = 0, ""
	if bound, err = json.Marshal([]any{s.call.account(), s.call.grant.Kind, s.search}); err != nil {
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
