package locations

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"lieudit/eventstore"
	"lieudit/schemas/locations"
)

// findCommuneSites returns the external ids of the job's sites that lie at the centre of a commune, sorted: those that
// this write geocoded there, and those that keep such a position. The state does not hold the precision of a position, so the
// contents of the latter are read from the log, but only for sites whose address may be just a commune.
func (l *Locations) findCommuneSites(ctx context.Context, j *writeJob, o Outcome) ([]string, error) {
	var ids []string
	for _, g := range o.GeocodedSites {
		if g.Precision == locations.PrecisionMunicipality {
			ids = append(ids, g.ExternalID)
		}
	}
	var kept []*wantedSite
	for _, w := range j.rows {
		if w.keepsGeocodedPosition() && mayBePlacedAtCommune(w.Content) {
			kept = append(kept, w)
		}
	}
	keptIDs, err := l.filterCommuneSites(ctx, j.account, kept)
	ids = append(ids, keptIDs...)
	slices.Sort(ids)
	return ids, err
}

// filterCommuneSites returns the external ids of the sites whose stored position is the centre of a commune.
func (l *Locations) filterCommuneSites(ctx context.Context, account string, kept []*wantedSite) (ids []string, err error) {
	stored, err := l.readStored(ctx, account, kept)
	for i, s := range stored {
		if s.Position != nil && s.Position.Precision == locations.PrecisionMunicipality {
			ids = append(ids, kept[i].ExternalID)
		}
	}
	return ids, err
}

// keepsGeocodedPosition reports whether the site has a geocoded position that this write leaves unchanged.
func (w *wantedSite) keepsGeocodedPosition() bool { return w.chosen == nil && w.current.isGeocoded }

// recallStates sets the states that findCommuneSites needs for a request that was answered before: those of the sites that the
// answered write left unchanged. It leaves out sites whose content was written since, because their state at that time is no
// longer known.
func (j *writeJob) recallStates(s *State, answeredAt eventstore.Revision) {
	ref, err := s.findReferential(j.code)
	if err != nil {
		return
	}
	for _, w := range j.rows {
		w.chosen, w.current = nil, siteState{}
		if state, ok := ref.sites[w.ExternalID]; ok && state.contentAt.revision < answeredAt {
			w.current = state
		}
	}
}

// mayBePlacedAtCommune reports whether the address of a content may have been geocoded to the centre of a commune. An address
// with a house number never is: it is found with its number or not at all.
func mayBePlacedAtCommune(c locations.Content) bool {
	a := c.Address
	return a == nil || !beginsWithHouseNumber(a.Line1) && !beginsWithHouseNumber(a.Line2)
}

// beginsWithHouseNumber reports whether a line begins with one to four digits. Five digits are a postcode.
func beginsWithHouseNumber(line string) bool {
	line = strings.TrimSpace(line)
	digits := len(line) - len(strings.TrimLeft(line, "0123456789"))
	return 0 < digits && digits < 5
}

// compare orders references as their contents are on the log.
func (c contentRef) compare(o contentRef) int {
	return cmp.Or(cmp.Compare(c.revision, o.revision), cmp.Compare(c.stagedEvent, o.stagedEvent), cmp.Compare(c.row, o.row))
}
