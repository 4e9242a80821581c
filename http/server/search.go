package server

import (
	"context"
	"errors"
	"math"
	"net/http"

	"lieudit/http/problem"
	"lieudit/queries/address"
	"lieudit/queries/address/atlas"
	"lieudit/queries/places/finder"
	"lieudit/schemas/body"
	"lieudit/schemas/token"
)

// defaultRadius is how far from the centre sites are looked for, in metres.
const defaultRadius = 10_000

// searchLocations finds sites of the account: for a secret key all there is to know of them, for a publishable key what
// a page may show.
func (a *api) searchLocations(ctx context.Context, c call, in body.SearchLocations) (any, error) {
	public := c.grant.Kind == token.Publishable
	if public && in.Status != "" {
		return nil, problem.Violations(problem.Violation{
			Type: "extra_forbidden", Loc: []any{"query", "statut"}, Msg: "Extra inputs are not permitted",
			Input: map[string]any{"statut": in.Status},
		})
	}
	if a.Search == nil {
		return body.NothingFound, nil
	}
	q, found, err := a.question(ctx, in)
	if err != nil || !found {
		return body.NothingFound, err
	}
	q.Account, q.Private = c.account(), !public
	seal := seal{key: a.Cursors, call: c, in: in}
	if q.After, err = seal.open(ctx, in.Cursor); err != nil {
		return nil, err
	}
	r, err := a.Search.Search(ctx, q)
	switch {
	case errors.Is(err, finder.ErrCursor):
		return nil, noCursor(in.Cursor)
	case err != nil || len(r.Hits) == 0:
		return body.NothingFound, err
	}
	page := page{hits: r.Hits, centred: q.Center != nil}
	if page.next, err = seal.close(ctx, r.Next); err != nil {
		return nil, err
	}
	return page.shown(public, in.Format == geoJSON), nil
}

// question is a query as an engine is asked. It is false when the centre is an address that leads nowhere.
func (a *api) question(ctx context.Context, in body.SearchLocations) (finder.Query, bool, error) {
	q := finder.Query{
		Text: in.Q, Referential: in.Referential, Tags: in.Tags, Limit: in.Limit,
		Status: finder.Status(in.Status), Sort: finder.Sort(in.Sort),
	}
	if in.BBox != "" {
		box, err := body.BoxOf(in.BBox)
		if err != nil {
			return q, false, err
		}
		b := finder.Box(box)
		q.Box = &b
	}
	center, err := a.centre(ctx, in)
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

// centre is where a search is centred, nil when it is not.
func (a *api) centre(ctx context.Context, in body.SearchLocations) (*finder.Point, error) {
	switch {
	case in.Lat != nil:
		return &finder.Point{Lat: *in.Lat, Lon: *in.Lon}, nil
	case in.Near == "":
		return nil, nil
	}
	return asking(a, func(e *atlas.Edition) (*finder.Point, error) { return resolved(ctx, e.Engine, in.Near) })
}

func resolved(ctx context.Context, e *address.Engine, near string) (*finder.Point, error) {
	c, err := centre(ctx, e, body.NearAddress{Center: near})
	if err != nil {
		return nil, err
	}
	return &finder.Point{Lat: c.Lat, Lon: c.Lon}, nil
}

// page is what was found.
type page struct {
	hits    []finder.Hit
	next    string
	centred bool
}

func (p page) shown(public, collected bool) any {
	around := body.Collected{Type: "FeatureCollection", Envelope: body.OK, Cursor: p.next}
	switch {
	case public && collected:
		return body.PublicCollection{Collected: around, Features: each(p.hits, func(h finder.Hit) body.PublicFeature {
			return body.PublicFeature{Placed: body.PlacedAt(h.Site.Lat, h.Site.Lon), Properties: projected(h, p.distance(h))}
		})}
	case collected:
		return body.LocationCollection{Collected: around, Features: each(p.hits, func(h finder.Hit) body.LocationFeature {
			return body.LocationFeature{Placed: body.PlacedAt(h.Site.Lat, h.Site.Lon), Properties: body.FoundSite{Site: h.Site, Distance: p.distance(h)}}
		})}
	case public:
		return body.PublicLocations{Envelope: body.OK, Cursor: p.next, Results: each(p.hits, func(h finder.Hit) body.PublicSite {
			return projected(h, p.distance(h))
		})}
	}
	return body.Locations{Envelope: body.OK, Cursor: p.next, Results: each(p.hits, func(h finder.Hit) body.FoundSite {
		return body.FoundSite{Site: h.Site, Distance: p.distance(h)}
	})}
}

// distance is in metres, of what has a position and is looked for around a centre.
func (p page) distance(h finder.Hit) *int {
	if !p.centred || h.Site.Lat == nil {
		return nil
	}
	metres := int(math.Round(h.Distance))
	return &metres
}

// projected is what a publishable key may see: every member is copied by its name, so that a fact that a site comes to
// have is not shown unless it is added here.
func projected(h finder.Hit, distance *int) body.PublicSite {
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
