package alert

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/text"
	"lieudit/schemas/geo"
	"lieudit/schemas/locations"
)

// How far a position may be, in metres, from the bounds of its commune, and from those of the nearest commune of its department. The
// bounds enclose the addresses of a commune; its woods and beaches may lie a little outside.
const (
	communeTolerance    = 30_000
	departmentTolerance = 10_000
)

// department is a department or an overseas territory, its communes and the box around them.
type department struct {
	communes []*commune.Commune // those that have a position
	box      commune.Bounds
}

// groupByDepartment groups the communes of a table by the codes of their departments. It leaves out the islands of the southern seas:
// nobody lives there, and the box around them covers half an ocean.
func groupByDepartment(t *commune.Table) map[string]*department {
	all := map[string]*department{}
	for c := range t.All() {
		code := c.Department()
		if !c.Located() || code == "984" || code == "989" {
			continue
		}
		d, ok := all[code]
		if !ok {
			d = &department{box: c.Bounds}
			all[code] = d
		}
		d.communes = append(d.communes, c)
		d.box = commune.Bounds{
			West: min(d.box.West, c.Bounds.West), South: min(d.box.South, c.Bounds.South),
			East: max(d.box.East, c.Bounds.East), North: max(d.box.North, c.Bounds.North),
		}
	}
	return all
}

// isInFrance reports whether a position lies in the box of a department, or near enough to be on its coast.
func (c *Checker) isInFrance(p geo.Point) bool {
	const margin = 0.1 // degrees
	for _, b := range c.boxes {
		if b.West-margin <= p.Lon && p.Lon <= b.East+margin && b.South-margin <= p.Lat && p.Lat <= b.North+margin {
			return true
		}
	}
	return false
}

// findFarPlace finds what a position is too far from to be that of an address: the commune or, failing that, the department of the
// postcode. The text has the form "412 km de sa commune, Mende (48095)".
func (c *Checker) findFarPlace(a locations.SiteAddress, p geo.Point) (place string, isFar bool) {
	postcode := strings.ReplaceAll(a.PostalCode, " ", "")
	served := c.communes.ByPostcode(postcode)
	possible := c.findCommunes(a, served, p)
	if metres, nearest := findNearest(possible, p); nearest != nil && metres > communeTolerance {
		which := "sa commune"
		if len(possible) > 1 {
			which = "la plus proche des communes que dit l'adresse"
		}
		return fmt.Sprintf("%d km de %s, %s (%s)", toKilometres(metres), which, nearest.Name, nearest.Code), true
	}
	if metres, nearest := findNearest(served, p); nearest != nil && metres <= departmentTolerance {
		return "", false
	}
	metres, code := c.findNearestDepartment(departmentCodes(postcode, served), p)
	if code == "" || metres <= departmentTolerance {
		return "", false
	}
	division, _ := commune.Department(code)
	return fmt.Sprintf("%d km du département %s (%s), celui du code postal %s", toKilometres(metres), code, division.Name, postcode), true
}

// findCommunes returns the communes that an address may be in: that of its INSEE code; otherwise those of its postcode, narrowed down
// by the name of its commune; without a postcode, all communes of that name. Names are compared only if that matters, which is not
// the case if the position is near every commune of the postcode.
func (c *Checker) findCommunes(a locations.SiteAddress, served []*commune.Commune, p geo.Point) []*commune.Commune {
	if found, ok := c.communes.ByCode(strings.ToUpper(strings.TrimSpace(a.InseeCode))); ok {
		return []*commune.Commune{found}
	}
	isFar := func(s *commune.Commune) bool { return s.Located() && distanceToBounds(p, s.Bounds) > communeTolerance }
	if len(served) > 0 && !slices.ContainsFunc(served, isFar) || a.City == "" {
		return served
	}
	named := c.communes.Named(text.Terms(a.City))
	if len(served) == 0 {
		if a.PostalCode == "" {
			return named
		}
		return nil
	}
	both := slices.DeleteFunc(slices.Clone(named), func(n *commune.Commune) bool { return !slices.Contains(served, n) })
	if len(both) == 0 {
		return served
	}
	return both
}

// findNearest returns the commune nearest to a position, and the distance to its bounds in metres. It returns nil if no commune has a
// position.
func findNearest(communes []*commune.Commune, p geo.Point) (least float64, nearest *commune.Commune) {
	for _, c := range communes {
		if !c.Located() {
			continue
		}
		if metres := distanceToBounds(p, c.Bounds); nearest == nil || metres < least {
			least, nearest = metres, c
		}
	}
	return least, nearest
}

// findNearestDepartment returns the department nearest to a position, and the distance to its nearest commune in metres. It returns
// "" if all codes are unknown.
func (c *Checker) findNearestDepartment(codes []string, p geo.Point) (least float64, nearest string) {
	for _, code := range codes {
		d, ok := c.departments[code]
		if !ok {
			continue
		}
		if metres, _ := findNearest(d.communes, p); nearest == "" || metres < least {
			least, nearest = metres, code
		}
	}
	return least, nearest
}

// departmentCodes returns the departments that a postcode may be in: those of the communes that it serves or, for a company postcode
// (CEDEX), those of its first digits. It returns nil for a text that is not a postcode.
func departmentCodes(postcode string, served []*commune.Commune) (codes []string) {
	for _, s := range served {
		if code := s.Department(); !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	switch {
	case len(codes) > 0 || len(postcode) != 5:
		return codes
	case strings.HasPrefix(postcode, "20"):
		return []string{"2A", "2B"}
	case strings.HasPrefix(postcode, "971"):
		return []string{"971", "977", "978"}
	}
	return []string{commune.DepartmentOf(postcode)}
}

// distanceToBounds returns the distance in metres from a position to a rectangle, 0 inside. It is computed on the plane as long as
// that is accurate to one percent, because a large batch needs it often.
func distanceToBounds(p geo.Point, b commune.Bounds) float64 {
	const planeEnd = 100_000 // metres
	nearest := geo.Point{Lat: min(max(p.Lat, b.South), b.North), Lon: min(max(p.Lon, b.West), b.East)}
	if p == nearest {
		return 0
	}
	if metres := math.Hypot(geo.PlaneAt(p).Project(nearest)); metres < planeEnd {
		return metres
	}
	return geo.Distance(p, nearest)
}

func toKilometres(metres float64) int { return int(math.Round(metres / 1000)) }
