package routing

import (
	"context"
	"errors"
	"time"

	"lieudit/http/resolve"
	"lieudit/queries/address"
	"lieudit/queries/address/live"
	"lieudit/queries/route"
	"lieudit/queries/worker"
	"lieudit/schemas/body"
	"lieudit/schemas/geo"
	sites "lieudit/schemas/locations"
	"lieudit/schemas/refusal"
)

// bound is a resolved bound of a request, as the router and the answer need it.
type bound struct {
	route.Bound
	shown body.ResolvedBound
}

// resolveBounds resolves bounds in order. It fails with refusal.AddressUnresolved at the first bound that leads to no address, to no site
// of the account, or to a site without a position, and with refusal.AddressUnavailable at a text while no vintage is served. A bound takes
// about 0.1 ms, so they are resolved sequentially.
func (s *Service) resolveBounds(ctx context.Context, account string, all ...body.Bound) ([]bound, error) {
	resolved := make([]bound, len(all))
	for i := range all {
		var err error
		if resolved[i], err = s.resolveBound(ctx, account, &all[i]); err != nil {
			return nil, err
		}
	}
	return resolved, nil
}

func (s *Service) resolveBound(ctx context.Context, account string, b *body.Bound) (bound, error) {
	switch {
	case b.IsPosition():
		return positionBound(b.Typed(), *b.Lon, *b.Lat), nil
	case b.IsSite():
		return s.resolveSite(ctx, account, b)
	}
	found, err := resolve.QueryServed(s.Addresses, func(e *live.Engine) (resolve.Found, error) {
		return resolve.Address(ctx, e.Engine, b.Typed())
	})
	if errors.Is(err, refusal.AddressUnavailable) {
		s.Log.Error("a typed bound was refused: no vintage of the address base is served")
	}
	if err != nil {
		return bound{}, err
	}
	return addressBound(b.Typed(), &found), nil
}

func positionBound(typed string, lon, lat float64) bound {
	return bound{route.Bound{Point: geo.Point{Lon: lon, Lat: lat}}, body.ResolvedBound{Input: typed, Lon: lon, Lat: lat}}
}

func addressBound(typed string, found *resolve.Found) bound {
	b := positionBound(typed, found.Record.Lon, found.Record.Lat)
	record := resolve.ShowRecord(&found.Record)
	b.IsAddress, b.Street = true, StreetOf(&record)
	b.shown.Score, b.shown.Verdict, b.shown.Address = found.Score, string(found.Verdict), &record
	return b
}

// StreetOf returns the name of the street that an address lies on, or "" if it lies on none: the name of a locality is not the name of a
// road.
func StreetOf(a *body.Address) string {
	if a.Type == string(address.HouseNumber) || a.Type == string(address.StreetType) {
		return a.Street
	}
	return ""
}

// resolveSite resolves a site of the account, active or not.
func (s *Service) resolveSite(ctx context.Context, account string, b *body.Bound) (bound, error) {
	worker.Release(ctx) // the database may not answer
	site, err := s.Sites.FindSite(ctx, account, b.Referential, b.ExternalID)
	if errors.Is(err, refusal.NotFound) || err == nil && site.Lat == nil {
		return bound{}, resolve.Unresolved(b.Typed())
	}
	if err != nil {
		return bound{}, err
	}
	bounds, err := s.siteBounds(ctx, b.Typed(), site)
	if err != nil {
		return bound{}, err
	}
	return bounds[0], nil
}

// siteBounds returns the bounds of sites that have a position. A site lies on the street of its id_ban if the address base has it. Unknown
// streets are left out, because a route does not need them. The error is that of worker.Yield.
func (s *Service) siteBounds(ctx context.Context, typed string, all ...sites.Site) ([]bound, error) {
	bounds := make([]bound, len(all))
	for i, site := range all {
		bounds[i] = positionBound(typed, *site.Lon, *site.Lat)
		name := nameOf(site)
		bounds[i].shown.Site = &name
	}
	_, err := live.Query(s.Addresses, func(e *live.Engine) (struct{}, error) {
		for i, site := range all {
			if err := giveWay(ctx, i); err != nil {
				return struct{}{}, err
			}
			if r, ok := e.View(site.IDBan); ok {
				record := resolve.ShowRecord(&r)
				bounds[i].IsAddress, bounds[i].Street = true, StreetOf(&record)
			}
		}
		return struct{}{}, nil
	})
	if errors.Is(err, live.ErrNone) {
		return bounds, nil
	}
	return bounds, err
}

// giveWay yields to other requests after every sitesToYield sites. i is the number of sites processed so far.
func giveWay(ctx context.Context, i int) error {
	const (
		sitesToYield = 64
		viewWork     = 5 * time.Microsecond
	)
	if i%sitesToYield != 0 {
		return nil
	}
	return worker.Yield(ctx, time.Duration(min(i, sitesToYield))*viewWork)
}

func nameOf(s sites.Site) body.SiteName {
	return body.SiteName{Referential: s.Referential, ExternalID: s.ExternalID, Name: s.Name}
}

// routeBounds returns the bounds as the router takes them.
func routeBounds(all []bound) []route.Bound {
	plain := make([]route.Bound, len(all))
	for i := range all {
		plain[i] = all[i].Bound
	}
	return plain
}

// showBounds returns the bounds as an answer shows them, each with the point at which it meets the network.
func showBounds(all []bound, accesses []route.Access) []body.ResolvedBound {
	shown := make([]body.ResolvedBound, len(all))
	for i := range all {
		shown[i] = all[i].show(accesses[i])
	}
	return shown
}

// show returns the bound as an answer shows it. A bound too far from any road has the zero Access.
func (b *bound) show(a route.Access) body.ResolvedBound {
	shown := b.shown
	if a == (route.Access{}) {
		return shown
	}
	shown.Access = &body.Access{Lon: roundDegrees(a.Lon), Lat: roundDegrees(a.Lat), Distance: roundInt(a.Distance), Street: a.Street}
	if b.Street != "" {
		shown.Access.IsOnOwn = &a.IsOnOwn
	}
	return shown
}
