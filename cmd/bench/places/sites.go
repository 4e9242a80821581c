package places

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/text"
	"lieudit/queries/locations/geocode"
	"lieudit/schemas/body"
	"lieudit/schemas/geo"
	"lieudit/schemas/locations"
)

// describeSites counts the stored sites, and finds those outside their communes without an alert.
func (f *File) describeSites(ctx context.Context, a account, path string, flags []string, r *run) error {
	sites, err := r.exportSites(ctx, a)
	if err != nil {
		return err
	}
	alerts, err := a.askAlerts(ctx, path, flags)
	if err != nil {
		return err
	}
	f.Sites, f.Alerts, f.Outside = len(sites), countByCode(alerts.AlertCounts), []Outside{}
	alerted := map[string]bool{} // the sites with an alert about their position
	for _, alert := range alerts.Alerts {
		if strings.HasPrefix(alert.Code, "position_") {
			alerted[alert.ExternalID] = true
		}
	}
	for id, site := range sites {
		f.count(site)
		if o, isOutside := findOutside(r.communes, site.Site); isOutside && !alerted[id] {
			f.Outside = append(f.Outside, o)
		}
	}
	slices.SortFunc(f.Outside, func(a, b Outside) int {
		return cmp.Or(cmp.Compare(b.Kilometres, a.Kilometres), strings.Compare(a.ExternalID, b.ExternalID))
	})
	c := alerts.AlertCounts
	f.Outside = withoutUnnamed(f.Outside, c.InvertedPosition+c.NullPosition+c.FarPosition-len(alerted))
	return nil
}

// withoutUnnamed omits sites whose alerts the service counts but does not name, since it names at most a hundred: the first unnamed sites
// beyond alertDistance.
func withoutUnnamed(farthestFirst []Outside, unnamed int) []Outside {
	n := 0
	for n < unnamed && n < len(farthestFirst) && farthestFirst[n].Kilometres > alertDistance {
		n++
	}
	return farthestFirst[n:]
}

// count counts a site if it has a position, a name, or a position found by its address.
func (f *File) count(s exportedSite) {
	if s.Lat != nil {
		f.Positioned++
	}
	if s.Name != "" {
		f.Named++
	}
	if s.Source == locations.SourceBAN {
		f.Placed++
	}
}

// askAlerts gets the service's alerts on the sites of a file with a dry run. It names at most 100 of them, positions first.
func (a account) askAlerts(ctx context.Context, path string, flags []string) (synced body.Synced, err error) {
	c := a.importFile(ctx, path, append(slices.Clone(flags), "--dry-run", "--json")...)
	if c.code != 0 {
		return synced, errors.New(c.stderr)
	}
	return synced, json.Unmarshal([]byte(c.stdout), &synced)
}

// countByCode returns the counts as a map without zeros.
func countByCode(counts body.AlertCounts) map[string]int {
	byCode := map[string]int{}
	if text, err := json.Marshal(counts); err == nil { // numbers always encode
		_ = json.Unmarshal(text, &byCode)
	}
	return byCode
}

// exportedSite is a site with its members as exported.
type exportedSite struct {
	locations.Site
	members map[string]json.RawMessage
}

// exportSites exports an account's sites as NDJSON and parses them, by external id. An import answers two seconds after its write even if the
// read models do not show it yet, as on a busy machine; so exportSites waits for them.
func (r *run) exportSites(ctx context.Context, a account) (map[string]exportedSite, error) {
	if err := r.Admin.WaitCaughtUp(ctx); err != nil {
		return nil, err
	}
	path := r.WorkDir.Path("sites.ndjson")
	if err := a.exportTo(ctx, path, "--format", "ndjson"); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseSites(text)
}

// parseSites reads an export, one site a line.
func parseSites(ndjson []byte) (map[string]exportedSite, error) {
	sites := map[string]exportedSite{}
	for line := range bytes.Lines(ndjson) {
		var s exportedSite
		if err := errors.Join(json.Unmarshal(line, &s.Site), json.Unmarshal(line, &s.members)); err != nil {
			return nil, err
		}
		sites[s.ExternalID] = s
	}
	return sites, nil
}

// ownMembers are the members that differ between two referentials even for the same site.
var ownMembers = []string{"id", "referentiel", "version", "cree_le", "modifie_le"}

// compareSites describes how many sites differ and the first difference, by external id; "" if all are equal.
func compareSites(want, got map[string]exportedSite) string {
	first, count := "", 0
	for _, id := range slices.Sorted(maps.Keys(union(want, got))) {
		difference := compareSite(want[id], got[id])
		if difference == "" {
			continue
		}
		if count++; count == 1 {
			first = id + ": " + difference
		}
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d differ, first %s", count, len(want), first)
}

// union returns all ids of two exports.
func union(a, b map[string]exportedSite) map[string]exportedSite {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// compareSite describes the first member of a site that differs, by name. A site without members is missing.
func compareSite(want, got exportedSite) string {
	switch {
	case want.members == nil:
		return "was not there"
	case got.members == nil:
		return "is missing"
	}
	// A member that only one of the two has differs too.
	all := maps.Clone(want.members)
	maps.Copy(all, got.members)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if w, g := want.members[name], got.members[name]; !slices.Contains(ownMembers, name) && !bytes.Equal(w, g) {
			return fmt.Sprintf("%s: want %s, got %s", name, shorten(w), shorten(g))
		}
	}
	return ""
}

// shorten truncates JSON at 300 characters, for people.
func shorten(raw json.RawMessage) string {
	const limit = 300
	if text := []rune(string(raw)); len(text) > limit {
		return string(text[:limit]) + "…"
	}
	return string(raw)
}

// boundsTolerance is how far, in kilometres, a site may be outside the bounds of its commune. Bounds are those of addresses: a commune's woods
// and beaches lie a little outside.
const boundsTolerance = 1

// alertDistance is how many kilometres outside its commune a site raises an alert.
const alertDistance = 30

// findOutside returns how far a site is outside the communes that its address can mean; false: inside one, or nothing to compare.
func findOutside(t *commune.Table, s locations.Site) (nearest Outside, isOutside bool) {
	if s.Lat == nil || s.Lon == nil || s.Address == nil || !geocode.IsFrenchCountry(s.Address.Country) {
		return nearest, false
	}
	nearest = Outside{ExternalID: s.ExternalID, Kilometres: math.Inf(1), Placed: s.Source == locations.SourceBAN}
	for _, c := range findCommunes(t, *s.Address) {
		if km := kilometresTo(c.Bounds, *s.Lat, *s.Lon); c.Located() && km < nearest.Kilometres {
			nearest.Kilometres, nearest.Commune = km, c.Name+" ("+c.Code+")"
		}
	}
	return nearest, nearest.Commune != "" && nearest.Kilometres > boundsTolerance
}

// findCommunes returns the communes that an address can mean: that of its INSEE code; otherwise those of its postcode that have its name;
// otherwise all of its postcode, or without one all with its name.
func findCommunes(t *commune.Table, a locations.SiteAddress) []*commune.Commune {
	if c, ok := t.ByCode(strings.ToUpper(a.InseeCode)); ok {
		return []*commune.Commune{c}
	}
	served, named := t.ByPostcode(a.PostalCode), t.Named(text.Terms(a.City))
	both := slices.DeleteFunc(slices.Clone(named), func(c *commune.Commune) bool { return !slices.Contains(served, c) })
	switch {
	case len(both) > 0:
		return both
	case a.PostalCode != "":
		return served
	}
	return named
}

// kilometresTo returns how far a position is from a rectangle; 0 inside.
func kilometresTo(b commune.Bounds, lat, lon float64) float64 {
	nearest := geo.Point{Lat: min(max(lat, b.South), b.North), Lon: min(max(lon, b.West), b.East)}
	return math.Round(geo.Distance(geo.Point{Lat: lat, Lon: lon}, nearest)/100) / 10
}
