// Package geocode finds the position of a customer's site by its address. The position is stored, so it accepts only matches
// that a careful person would accept.
//
//	locations.Content ──> readSite ──> reading   the ways to read the address as an address.Query, and each code in it
//	                  ──> Engine.Resolve         each of them, by the rule that holds for every text
//	                  ──> reading.accepts        what lies where the codes say, and has its number or is named word for word
//	                  ──> locations.Position     of the best
//
// Codes are hard constraints, in whichever field they stand: a position outside the commune of an INSEE code, the communes of
// a postcode, or their department is not that of the address. Contradictory codes match nothing.
package geocode

import (
	"context"
	"errors"

	"lieudit/queries/address"
	"lieudit/queries/address/live"
	"lieudit/queries/worker"
	"lieudit/schemas/locations"
)

// Geocoder finds positions in the vintage that is being served. It is safe for concurrent use.
type Geocoder struct{ addresses *live.Vintage }

// New makes a Geocoder that uses the live vintage.
func New(a *live.Vintage) *Geocoder { return &Geocoder{a} }

// Geocode returns the position of a site's address, with the score of its verification. found is false if the BAN does not
// have the address, or if no vintage was ever imported. An id_ban that the vintage knows stands for the address, unless it
// contradicts a code of the address. A withdrawn vintage is an error.
//
// The sites of a request may be geocoded concurrently. Once they become costly together, each waits for a worker (package
// worker).
func (s *Geocoder) Geocode(ctx context.Context, c locations.Content) (p locations.Position, found bool, err error) {
	ctx, task := worker.Fork(ctx)
	defer task.Release()
	if err := worker.Yield(ctx, 0); err != nil { // the cost of the sites before this one
		return locations.Position{}, false, err
	}
	m, found, err := s.Resolve(ctx, c)
	if !found {
		return locations.Position{}, false, err
	}
	return positionOf(&m.Record, m.Score), true, err
}

// Resolve returns the match whose position Geocode returns. An accepted id_ban has the score 1.
func (s *Geocoder) Resolve(ctx context.Context, c locations.Content) (m address.Match, found bool, err error) {
	m, err = live.Query(s.addresses, func(e *live.Engine) (address.Match, error) { return resolveSite(ctx, e, c) })
	if _, withdrawn := errors.AsType[*live.WithdrawnError](err); errors.Is(err, live.ErrNone) && !withdrawn {
		return address.Match{}, false, nil
	}
	return m, m.Score > 0, err
}

// resolveSite finds the match of a site in a vintage. Without a match it returns one with score 0.
func resolveSite(ctx context.Context, e *live.Engine, c locations.Content) (best address.Match, err error) {
	reading := readSite(e.OwnIndex, c.Address)
	if c.IDBan != "" {
		if r, ok := e.View(c.IDBan); ok && reading.matchesCodes(&r) {
			return address.Match{Record: r, Score: 1}, nil
		}
	}
	for _, query := range reading.queries {
		m, ok, err := e.OwnIndex.Resolve(ctx, query)
		if err != nil {
			return address.Match{}, err
		}
		if ok && reading.accepts(&m) && isBetter(&m, &best) {
			best = m
		}
		if best.Verdict == address.Exact && best.Type == address.HouseNumber {
			break
		}
	}
	return best, nil
}

// isBetter reports whether a match is better than the best so far, which is from a likelier reading: a number is better than a
// street.
func isBetter(m, best *address.Match) bool {
	if isNumber := m.Type == address.HouseNumber; best.Score > 0 && isNumber != (best.Type == address.HouseNumber) {
		return isNumber
	}
	return m.Score > best.Score
}

func positionOf(r *address.Record, score float64) locations.Position {
	return locations.Position{Lat: r.Lat, Lon: r.Lon, Source: locations.SourceBAN, IDBan: r.BanID, Score: score, Precision: locations.Precision(r.Type)}
}
