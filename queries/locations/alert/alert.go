// Package alert finds what is doubtful in a customer's sites: positions that cannot be meant, and missing data. It refuses
// nothing, and an alert must be worth a look: a position in the sea off its commune, or just across the border of its
// department, does not cause one.
//
//	locations.Content, locations.Position ──Checker.Check──► []Alert
//	                            commune.Table ──► where communes and departments lie
package alert

import (
	"fmt"
	"strings"

	"lieudit/queries/address/commune"
	"lieudit/queries/locations/geocode"
	"lieudit/schemas/geo"
	"lieudit/schemas/locations"
)

// Code is the kind of an alert. The values are those of the API.
type Code string

const (
	InvertedPosition Code = "position_inversee" // outside France, but inside if lat and lon are swapped
	NullPosition     Code = "position_nulle"    // 0, 0
	FarPosition      Code = "position_loin"     // far from the commune or the department of the address
	CommunePosition  Code = "place_commune"     // the address was placed at the centre of a commune
	EmptyAddress     Code = "adresse_vide"
	EmptyName        Code = "sans_nom"
)

// Codes lists all codes, the gravest first.
var Codes = [...]Code{InvertedPosition, NullPosition, FarPosition, CommunePosition, EmptyAddress, EmptyName}

// Alert is a doubt about a site. Message is a French sentence.
type Alert struct {
	Code    Code
	Message string
}

// Checker checks sites. It is safe for concurrent use.
type Checker struct {
	communes    *commune.Table
	departments map[string]*department // by code
	boxes       []commune.Bounds       // of the departments
}

// NewChecker makes a Checker that knows communes and departments from a table.
func NewChecker(t *commune.Table) *Checker {
	c := &Checker{communes: t, departments: groupByDepartment(t)}
	for _, d := range c.departments {
		c.boxes = append(c.boxes, d.box)
	}
	return c
}

// Check returns the alerts of a site, at most one of them about its position. p is the position that the site has or will have,
// or nil. Only the precision of a geocoded position is checked, because geocoding respects the codes of the address.
func (c *Checker) Check(content locations.Content, p *locations.Position) (found []Alert) {
	switch {
	case p == nil:
	case p.Source == locations.SourceClient:
		if a, ok := c.checkPosition(content, geo.Point{Lon: p.Lon, Lat: p.Lat}); ok {
			found = append(found, a)
		}
	case p.Precision == locations.PrecisionMunicipality:
		found = append(found, Alert{CommunePosition, "Le site est placé au centre de sa commune, faute d'adresse plus précise."})
	}
	if isEmptyAddress(content.Address) {
		found = append(found, Alert{EmptyAddress, "Le site n'a pas d'adresse."})
	}
	if strings.TrimSpace(content.Name) == "" {
		found = append(found, Alert{EmptyName, "Le site n'a pas de nom."})
	}
	return found
}

// isEmptyAddress reports whether an address holds nothing but a country.
func isEmptyAddress(a *locations.SiteAddress) bool {
	return a == nil || strings.TrimSpace(a.Line1+a.Line2+a.PostalCode+a.City+a.InseeCode) == ""
}

// checkPosition finds the gravest alert about a position that the customer gave. For a site abroad only 0, 0 is doubtful.
func (c *Checker) checkPosition(content locations.Content, p geo.Point) (Alert, bool) {
	if p == (geo.Point{}) {
		return Alert{NullPosition, "La position est lat 0, lon 0, au large de l'Afrique."}, true
	}
	a := content.Address
	if a == nil {
		a = &locations.SiteAddress{}
	}
	if !geocode.IsFrenchCountry(a.Country) {
		return Alert{}, false
	}
	place, isFar := c.findFarPlace(*a, p)
	if turned := (geo.Point{Lon: p.Lat, Lat: p.Lon}); !c.isInFrance(p) && c.isInFrance(turned) {
		return Alert{InvertedPosition, fmt.Sprintf("La position (lat %v, lon %v) est hors de France, et en France si l'on échange lat et lon.", p.Lat, p.Lon)}, true
	}
	return Alert{FarPosition, "La position est à " + place + "."}, isFar
}
