package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"

	"lieudit/http/routing"
	"lieudit/queries/locations/search"
	routequeries "lieudit/queries/route"
	"lieudit/schemas/body"
	"lieudit/schemas/geo"
	sites "lieudit/schemas/locations"
)

// sortByDuration is the order of a search by the time to drive from the centre. The engines of the search do not know it.
const sortByDuration = "duree"

// maxTimedSites is how many sites a search by duration looks at: those nearest as the crow flies. It bounds the work of the router.
const maxTimedSites = 1_000

// durationKey is where a site stands in the order by duration. Sites that cannot be reached come last, those nearest as the crow flies
// first: all of them where no road is near the centre.
type durationKey struct {
	Seconds                 int
	Straight                float64 // metres as the crow flies; 0 for a site that can be reached
	ExternalID, Referential string
}

func (k durationKey) compare(o durationKey) int {
	return cmp.Or(cmp.Compare(k.Seconds, o.Seconds), cmp.Compare(k.Straight, o.Straight), cmp.Compare(k.ExternalID, o.ExternalID), cmp.Compare(k.Referential, o.Referential))
}

func (h pageHit) durationKey() durationKey {
	if h.drive != nil {
		return durationKey{h.drive.Duration, 0, h.Site.ExternalID, h.Site.Referential}
	}
	return durationKey{math.MaxInt, h.Distance, h.Site.ExternalID, h.Site.Referential}
}

// findByDuration is one page of a search, ordered by the time to drive from its centre, and the cursor of the next. Each page orders all
// candidates anew, and its cursor is the key of its last site: a site that stays as it is, among the nearest, is neither repeated nor left out while others
// come and go. center is what the centre was resolved to; nil: it is a position.
func (h *handler) findByDuration(ctx context.Context, q search.Query, center *body.Center) (hits []pageHit, next string, err error) {
	after, err := parseDurationCursor(q.After)
	if err != nil {
		return nil, "", err
	}
	limit := q.Limit
	q.Sort, q.Limit, q.After = search.ByDistance, maxTimedSites, ""
	if hits, _, err = h.findSites(ctx, q); err != nil {
		return nil, "", err
	}
	if err := h.timeDrives(ctx, centerBound(q, center), hits); err != nil {
		return nil, "", err
	}
	slices.SortFunc(hits, func(a, b pageHit) int { return a.durationKey().compare(b.durationKey()) })
	if after != nil {
		hits = slices.DeleteFunc(hits, func(hit pageHit) bool { return hit.durationKey().compare(*after) <= 0 })
	}
	if len(hits) > limit {
		hits = hits[:limit]
		next = formatDurationCursor(hits[limit-1].durationKey())
	}
	return hits, next, nil
}

// timeDrives sets the drive to each site that can be reached by car.
func (h *handler) timeDrives(ctx context.Context, center routequeries.Bound, hits []pageHit) error {
	var placed []int
	var found []sites.Site
	for i, hit := range hits {
		if hit.Site.Lat != nil {
			placed, found = append(placed, i), append(found, hit.Site)
		}
	}
	drives, err := h.routing.WaysByCar(ctx, center, found)
	for i, drive := range drives {
		hits[placed[i]].drive = drive
	}
	return err
}

// centerBound is the centre as a router takes it, with its street where it was resolved to an address on one.
func centerBound(q search.Query, center *body.Center) routequeries.Bound {
	b := routequeries.Bound{Point: geo.Point{Lon: q.Center.Lon, Lat: q.Center.Lat}}
	if center != nil && center.Address != nil {
		b.Street = routing.StreetOf(center.Address)
	}
	return b
}

func formatDurationCursor(k durationKey) string {
	text, _ := json.Marshal(k) // distances are finite, so this always encodes
	return string(text)
}

// parseDurationCursor parses the cursor of a page; nil for the first. The client cannot have changed it, but it may be one of a release
// that wrote another form.
func parseDurationCursor(cursor string) (*durationKey, error) {
	if cursor == "" {
		return nil, nil
	}
	var k durationKey
	if err := json.Unmarshal([]byte(cursor), &k); err != nil {
		return nil, errors.Join(search.ErrInvalidCursor, err)
	}
	return &k, nil
}
