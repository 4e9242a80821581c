package commune

import "math"

// The ellipsoid GRS 80, on which all French projections are defined.
const (
	eccentricity = 0.0818191910428
	majorAxis    = 6378137.0
	flattening   = 1 / 298.257222101
)

// utmZones are the central meridians of the legal UTM zones overseas, by department, and whether a zone is in the
// southern hemisphere.
var utmZones = map[string]struct {
	meridian float64
	south    bool
}{
	"971": {-63, false}, "972": {-63, false}, "977": {-63, false}, "978": {-63, false}, // RGAF09, zone 20 north
	"973": {-51, false}, // RGFG95, zone 22 north
	"974": {57, true},   // RGR92, zone 40 south
	"975": {-57, false}, // RGSPM06, zone 21 north
	"976": {45, true},   // RGM04, zone 38 south
}

// Projected is the centre in metres of the projection that is legal where the commune lies. It is unknown when the
// centre is, and in the territories of the Pacific and the southern seas.
func (c *Commune) Projected() (x, y float64, ok bool) {
	department := c.Department()
	zone, overseas := utmZones[department]
	switch {
	case !c.Located():
		return 0, 0, false
	case overseas:
		x, y = projectUTM(c.Lon, c.Lat, zone.meridian, zone.south)
	case len(department) == 2:
		x, y = Lambert93(c.Lon, c.Lat)
	default:
		return 0, 0, false
	}
	return math.Round(x*100) / 100, math.Round(y*100) / 100, true
}

// Lambert93 projects degrees of the mainland and Corsica to metres (IGN, NTG_71: conformal conic projection of GRS 80).
func Lambert93(lon, lat float64) (x, y float64) {
	const (
		n  = 0.7256077650
		c  = 11754255.426
		xs = 700000.0
		ys = 12655612.050
	)
	sin, cos := math.Sincos(n * (lon - 3) * math.Pi / 180)
	r := c * math.Exp(-n*isometricLatitude(lat))
	return xs + r*sin, ys - r*cos
}

// isometricLatitude is the isometric latitude of a latitude in degrees.
func isometricLatitude(lat float64) float64 {
	sin := math.Sin(lat * math.Pi / 180)
	return math.Atanh(sin) - eccentricity*math.Atanh(eccentricity*sin)
}

// projectUTM projects degrees to metres around a meridian by Krüger's series to the third power of n, exact to a
// millimetre within a zone.
func projectUTM(lon, lat, meridian float64, south bool) (x, y float64) {
	const (
		n      = flattening / (2 - flattening)
		radius = majorAxis / (1 + n) * (1 + n*n/4 + n*n*n*n/64)
		scale  = 0.9996
	)
	series := [...]float64{n/2 - n*n*2/3 + n*n*n*5/16, n*n*13/48 - n*n*n*3/5, n * n * n * 61 / 240}
	t := math.Sinh(isometricLatitude(lat))
	sin, cos := math.Sincos((lon - meridian) * math.Pi / 180)
	xi, eta := math.Atan2(t, cos), math.Atanh(sin/math.Hypot(1, t))
	east, north := eta, xi
	for i, a := range series {
		k := float64(2 * (i + 1))
		east += a * math.Cos(k*xi) * math.Sinh(k*eta)
		north += a * math.Sin(k*xi) * math.Cosh(k*eta)
	}
	x, y = 500_000+scale*radius*east, scale*radius*north
	if south {
		y += 10_000_000
	}
	return x, y
}
