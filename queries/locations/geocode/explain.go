package geocode

import (
	"context"
	"errors"

	"lieudit/queries/address"
	"lieudit/queries/address/live"
	"lieudit/schemas/locations"
)

// Explain returns the reason why Geocode finds no position for a site, in the terms of the address engine. It is empty if Geocode finds
// one, and for a site without an address. Without a vintage no address is covered, nor is any address abroad.
func (s *Geocoder) Explain(ctx context.Context, c locations.Content) (address.Reason, error) {
	if c.Address == nil || *c.Address == (locations.SiteAddress{Country: c.Address.Country}) {
		return "", nil
	}
	reason, err := live.Query(s.addresses, func(e *live.Engine) (address.Reason, error) { return explainSite(ctx, e, c) })
	if errors.Is(err, live.ErrNone) {
		return address.NotCovered, nil
	}
	return reason, err
}

// explainSite returns the reason of the reading that got furthest.
func explainSite(ctx context.Context, e *live.Engine, c locations.Content) (furthest address.Reason, err error) {
	reading := readSite(e.OwnIndex, c.Address)
	if len(reading.queries) == 0 {
		return address.NotCovered, nil
	}
	for _, query := range reading.queries {
		m, ok, err := e.OwnIndex.Resolve(ctx, query)
		if err != nil {
			return "", err
		}
		reason := reading.refuses(&m)
		if !ok {
			if reason, err = e.OwnIndex.ExplainUnresolved(ctx, query); err != nil {
				return "", err
			}
		}
		if reason == "" {
			return "", nil
		}
		if reason.Rank() > furthest.Rank() {
			furthest = reason
		}
	}
	return furthest, nil
}

// refuses returns the reason why a match for the address must not be stored, or "" if accepts returns true.
func (s *reading) refuses(m *address.Match) address.Reason {
	switch {
	case s.accepts(m):
		return ""
	case !s.matchesPostcodes(&m.Record):
		return address.PostcodeContradicted
	case !s.matchesCodes(&m.Record):
		return address.CityContradicted
	}
	return address.LowScore
}
