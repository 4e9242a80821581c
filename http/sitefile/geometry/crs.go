package geometry

import (
	"lieudit/schemas/geo"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// CRS is a coordinate reference system whose positions ToWGS84 can convert. The zero CRS is degrees of WGS 84.
type CRS struct {
	// Name is what people call it, such as Lambert-93.
	Name string
	// area is where it is used, with a margin. A result outside it comes from numbers that are not coordinates of this system.
	area       box
	projection projection // nil: degrees
}

// projection converts metres to a longitude and a latitude in degrees on WGS 84.
type projection interface {
	unproject(x, y float64) (lon, lat float64)
}

// ToWGS84 converts a position, x to the east and y to the north, or x the longitude and y the latitude. It is not ok if the
// result lies outside the area for which the system is made: those numbers mean something else.
func (c CRS) ToWGS84(x, y float64) (geo.Point, bool) {
	p := geo.Point{Lat: y, Lon: x}
	if c.projection == nil {
		return p, p.IsOnGlobe()
	}
	if !isFinite(x) || !isFinite(y) {
		return geo.Point{}, false
	}
	p.Lon, p.Lat = c.projection.unproject(x, y)
	return p, c.area.contains(p)
}

// IsDegrees reports whether positions of the system are longitude and latitude.
func (c CRS) IsDegrees() bool { return c.projection == nil }

// The ellipsoids: GRS 80, from which WGS 84 differs by a tenth of a millimetre; and Clarke 1880 of IGN, of the old French datum.
var (
	grs80      = newEllipsoid(6378137, 298.257222101)
	clarke1880 = newEllipsoid(6378249.2, 293.4660212936269)
)

// The areas of the projections.
var (
	mainland = box{39, -9, 53, 12}
	antilles = box{13, -67, 20, -58}
	globe    = box{-90, -180, 90, 180}
)

// legalSystems are the projections that are legal in France and its territories, and the two that people still use: Web Mercator and
// the Lambert zones of NTF. Parameters: IGN's register of reference systems, by their EPSG numbers.
var legalSystems = map[int]CRS{
	2154:  {"Lambert-93", mainland, newConic(grs80, 46.5, 3, 44, 49, 700_000, 6_600_000)},
	9793:  {"Lambert-93 (RGF93 v2)", mainland, newConic(grs80, 46.5, 3, 44, 49, 700_000, 6_600_000)},
	9794:  {"Lambert-93 (RGF93 v2b)", mainland, newConic(grs80, 46.5, 3, 44, 49, 700_000, 6_600_000)},
	5490:  {"RGAF09 / UTM 20N", antilles, newUTM(20, false)},
	4559:  {"RRAF 91 / UTM 20N", antilles, newUTM(20, false)},
	2972:  {"RGFG95 / UTM 22N", box{0, -57, 8, -49}, newUTM(22, false)},
	2975:  {"RGR92 / UTM 40S", box{-24, 53, -18, 58}, newUTM(40, true)},
	4471:  {"RGM04 / UTM 38S", box{-16, 42, -10, 48}, newUTM(38, true)},
	4467:  {"RGSPM06 / UTM 21N", box{44, -60, 50, -54}, newUTM(21, false)},
	3163:  {"RGNC91-93 / Lambert", box{-28, 155, -12, 175}, newConic(grs80, -21.5, 166, -(20 + 40./60), -(22 + 20./60), 400_000, 300_000)},
	3296:  {"RGPF / UTM 5S", box{-30, -160, 0, -145}, newUTM(5, true)},
	3297:  {"RGPF / UTM 6S", box{-30, -155, 0, -139}, newUTM(6, true)},
	3857:  {"Web Mercator", box{-85.1, -180, 85.1, 180}, webMercator{}},
	27571: {"Lambert I", mainland, newParisConic(55, 0.999877341, 1_200_000)},
	27572: {"Lambert II étendu", mainland, newParisConic(52, 0.99987742, 2_200_000)},
	27573: {"Lambert III", mainland, newParisConic(49, 0.999877499, 3_200_000)},
	27574: {"Lambert IV", mainland, newCorsicanConic()},
}

// degreesSystems are the EPSG numbers of systems in degrees that equal WGS 84 within a metre: ETRS 89, RGF 93 and those of the
// territories.
var degreesSystems = map[int]string{
	4326: "WGS 84", 4979: "WGS 84", 4258: "ETRS89", 4171: "RGF93", 9777: "RGF93 v2", 9782: "RGF93 v2b", 4624: "RGFG95", 4627: "RGR92",
	5489: "RGAF09", 4558: "RRAF 91", 4470: "RGM04", 4463: "RGSPM06", 4749: "RGNC91-93", 4687: "RGPF",
}

// systemNames are names of systems as people write them, without spaces and signs.
var systemNames = map[string]int{
	"crs84": 4326, "ogccrs84": 4326, "ogc13crs84": 4326, "wgs84": 4326, "gps": 4326, "rgf93": 4171, "etrs89": 4258,
	"lambert93": 2154, "rgf93lambert93": 2154, "rgf93v1lambert93": 2154, "l93": 2154, "rgf93l93": 2154,
	"lambert2etendu": 27572, "lambertiietendu": 27572, "lambert2e": 27572, "lambertiie": 27572, "ntfparislambertzoneii": 27572, "l2e": 27572,
	"webmercator": 3857, "pseudomercator": 3857, "wgs84pseudomercator": 3857,
	"rgaf09utm20n": 5490, "utm20n": 5490, "rgfg95utm22n": 2972, "utm22n": 2972, "rgr92utm40s": 2975, "utm40s": 2975,
	"rgm04utm38s": 4471, "utm38s": 4471, "rgspm06utm21n": 4467, "utm21n": 4467,
}

// epsgPattern matches an EPSG number in the ways that people and programs write it.
var epsgPattern = regexp.MustCompile(`(?i)^(?:urn:(?:x-)?ogc:def:crs:|https?://www\.opengis\.net/def/crs/)?` +
	`(?:epsg[:/]+(?:[\d.]*[:/])?)?(\d{4,6})(?:\.0)?$`)

// conicZonePattern matches the names of the nine conic zones CC42 to CC50.
var conicZonePattern = regexp.MustCompile(`^(?:rgf93)?(?:v1)?(?:lambert)?cc(4[2-9]|50)$`)

// FindCRS finds a system by its name or EPSG number: EPSG:2154, urn:ogc:def:crs:EPSG::2154, 2154, Lambert 93, CC46, CRS84. The URN
// of 4326 names the latitude first, but files of GeoJSON that carry it write the longitude first; so x is the longitude.
func FindCRS(name string) (CRS, bool) {
	name = strings.TrimSpace(name)
	if m := epsgPattern.FindStringSubmatch(name); m != nil {
		number, _ := strconv.Atoi(m[1])
		return findEPSG(number)
	}
	key := strings.TrimPrefix(normalizeName(name), "urnogcdefcrs")
	if number, known := systemNames[key]; known {
		return findEPSG(number)
	}
	if m := conicZonePattern.FindStringSubmatch(key); m != nil {
		parallel, _ := strconv.Atoi(m[1])
		return findEPSG(3900 + parallel)
	}
	return CRS{}, false
}

// normalizeName is a name in lower case without accents, spaces and signs.
func normalizeName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			return r
		case r == 'é':
			return 'e'
		}
		return -1
	}, strings.ToLower(name))
}

// findEPSG finds a system by its number. Besides the tables: the conic zones CC42 to CC50 and every UTM zone of WGS 84 and of ETRS 89.
func findEPSG(number int) (CRS, bool) {
	if name, ok := degreesSystems[number]; ok {
		return CRS{Name: name}, true
	}
	if c, ok := legalSystems[number]; ok {
		return c, true
	}
	switch zone := number % 100; {
	case 3942 <= number && number <= 3950:
		return newConicZone(zone), true
	case number == 900913 || number == 102100:
		return legalSystems[3857], true
	case 1 <= zone && zone <= 60 && (number/100 == 326 || number/100 == 327):
		return CRS{"WGS 84 / UTM " + strconv.Itoa(zone), globe, newUTM(zone, number/100 == 327)}, true
	case 28 <= zone && zone <= 38 && number/100 == 258:
		return CRS{"ETRS89 / UTM " + strconv.Itoa(zone), globe, newUTM(zone, false)}, true
	}
	return CRS{}, false
}

// newConicZone is the conic zone around a parallel of the mainland. Its northings begin with the number of the zone.
func newConicZone(parallel int) CRS {
	lat := float64(parallel)
	northing := float64(parallel-41)*1_000_000 + 200_000
	return CRS{"CC" + strconv.Itoa(parallel), mainland, newConic(grs80, lat, 3, lat-0.75, lat+0.75, 1_700_000, northing)}
}

// LooksLambert93 reports whether two numbers can be metres of Lambert-93 on the mainland or Corsica.
func LooksLambert93(x, y float64) bool {
	return 90_000 <= x && x <= 1_260_000 && 6_030_000 <= y && y <= 7_130_000
}

// radians and degrees convert angles.
func radians(degrees float64) float64 { return degrees * math.Pi / 180 }
func degrees(radians float64) float64 { return radians * 180 / math.Pi }
