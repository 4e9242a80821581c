package geometry

import "math"

// ellipsoid is the figure of the earth on which a system is defined.
type ellipsoid struct {
	majorAxis, flattening, eccentricity float64
}

// newEllipsoid returns the ellipsoid with an axis in metres and a flattening of 1 over a number.
func newEllipsoid(majorAxis, inverseFlattening float64) ellipsoid {
	f := 1 / inverseFlattening
	return ellipsoid{majorAxis, f, math.Sqrt(f * (2 - f))}
}

// isometricLatitude is the isometric latitude of a latitude, both in radians.
func (e ellipsoid) isometricLatitude(lat float64) float64 {
	sin := math.Sin(lat)
	return math.Atanh(sin) - e.eccentricity*math.Atanh(e.eccentricity*sin)
}

// latitude is the inverse of isometricLatitude. Each step brings the result some 150 times nearer.
func (e ellipsoid) latitude(isometric float64) float64 {
	lat := math.Atan(math.Sinh(isometric))
	for range 8 {
		lat = math.Atan(math.Sinh(isometric + e.eccentricity*math.Atanh(e.eccentricity*math.Sin(lat))))
	}
	return lat
}

// normalRadius is the radius of curvature across the meridian, at a latitude in radians.
func (e ellipsoid) normalRadius(lat float64) float64 {
	sin := e.eccentricity * math.Sin(lat)
	return e.majorAxis / math.Sqrt(1-sin*sin)
}

// conic is a conformal conic projection (IGN, NTG_71). Its radius is c·exp(-n·isometric latitude) around the pole at 0, poleY.
type conic struct {
	ellipsoid       ellipsoid
	n, c, lon0      float64 // lon0 in degrees
	easting, poleY  float64
	isOnFrenchDatum bool
}

// newConic returns a projection that is true along two parallels. Angles are in degrees.
func newConic(e ellipsoid, lat0, lon0, parallel1, parallel2, easting, northing float64) conic {
	p1, p2 := radians(parallel1), radians(parallel2)
	r1, r2 := e.normalRadius(p1)*math.Cos(p1), e.normalRadius(p2)*math.Cos(p2)
	n := math.Log(r2/r1) / (e.isometricLatitude(p1) - e.isometricLatitude(p2))
	c := r1 / n * math.Exp(n*e.isometricLatitude(p1))
	return conic{e, n, c, lon0, easting, northing + c*math.Exp(-n*e.isometricLatitude(radians(lat0))), false}
}

// The Paris meridian, in degrees from Greenwich.
const parisMeridian = 2.33722917

// newParisConic returns a Lambert zone of NTF: true but for a scale along one parallel, which is in grads.
func newParisConic(parallel, scale, northing float64) conic {
	lat0 := radians(parallel * 0.9)
	n, r0 := math.Sin(lat0), scale*clarke1880.normalRadius(lat0)/math.Tan(lat0)
	c := r0 * math.Exp(n*clarke1880.isometricLatitude(lat0))
	return conic{clarke1880, n, c, parisMeridian, 600_000, northing + r0, true}
}

// newCorsicanConic returns Lambert IV, whose coordinates have an origin of their own.
func newCorsicanConic() conic {
	c := newParisConic(46.85, 0.99994471, 4_185_861.369)
	c.easting = 234.358
	return c
}

// unproject turns the angle around the pole into the longitude, and the distance from it into the latitude. South of the equator the pole
// lies on the other side.
func (p conic) unproject(x, y float64) (lon, lat float64) {
	dx, dy := x-p.easting, p.poleY-y
	if p.n < 0 {
		dx, dy = -dx, -dy
	}
	lon = p.lon0 + degrees(math.Atan2(dx, dy)/p.n)
	lat = degrees(p.ellipsoid.latitude(-math.Log(math.Hypot(dx, dy)/math.Abs(p.c)) / p.n))
	if p.isOnFrenchDatum {
		return shiftFrenchDatum(lon, lat)
	}
	return lon, lat
}

// shiftFrenchDatum converts degrees of NTF to WGS 84 by IGN's one shift for all of France, which is right within some five metres.
func shiftFrenchDatum(lon, lat float64) (float64, float64) {
	const dx, dy, dz = -168, -60, 320
	sinLat, cosLat := math.Sincos(radians(lat))
	sinLon, cosLon := math.Sincos(radians(lon))
	v, e2 := clarke1880.normalRadius(radians(lat)), clarke1880.eccentricity*clarke1880.eccentricity
	x, y, z := v*cosLat*cosLon+dx, v*cosLat*sinLon+dy, v*(1-e2)*sinLat+dz
	return degrees(math.Atan2(y, x)), degrees(latitudeOf(math.Hypot(x, y), z))
}

// latitudeOf is the latitude on GRS 80 of a point near its surface, by its distances from the axis and from the equator.
func latitudeOf(fromAxis, fromEquator float64) float64 {
	e2 := grs80.eccentricity * grs80.eccentricity
	lat := math.Atan2(fromEquator, fromAxis*(1-e2))
	for range 6 {
		lat = math.Atan2(fromEquator+e2*grs80.normalRadius(lat)*math.Sin(lat), fromAxis)
	}
	return lat
}

// utm is a zone of the universal transverse Mercator projection on GRS 80.
type utm struct {
	meridian float64 // in degrees
	northing float64
}

// newUTM is a zone of six degrees. Northings of the southern hemisphere count from 10,000 km.
func newUTM(zone int, isSouthern bool) utm {
	u := utm{meridian: float64(zone*6 - 183)}
	if isSouthern {
		u.northing = 10_000_000
	}
	return u
}

// unproject is the inverse of Krüger's series to the third power of n, exact to a millimetre within a zone.
func (u utm) unproject(x, y float64) (lon, lat float64) {
	n := grs80.flattening / (2 - grs80.flattening)
	radius := 0.9996 * grs80.majorAxis / (1 + n) * (1 + n*n/4 + n*n*n*n/64)
	series := [...]float64{n/2 - n*n*2/3 + n*n*n*37/96, n*n/48 + n*n*n/15, n * n * n * 17 / 480}
	xi, eta := (y-u.northing)/radius, (x-500_000)/radius
	north, east := xi, eta
	for i, a := range series {
		k := float64(2 * (i + 1))
		north -= a * math.Sin(k*xi) * math.Cosh(k*eta)
		east -= a * math.Cos(k*xi) * math.Sinh(k*eta)
	}
	isometric := math.Atanh(math.Sin(north) / math.Cosh(east))
	return u.meridian + degrees(math.Atan2(math.Sinh(east), math.Cos(north))), degrees(grs80.latitude(isometric))
}

// webMercator is the projection of maps on the web: a sphere for the earth.
type webMercator struct{}

// unproject is the inverse of the projection of a sphere with the axis of GRS 80.
func (webMercator) unproject(x, y float64) (lon, lat float64) {
	return degrees(x / grs80.majorAxis), degrees(math.Atan(math.Sinh(y / grs80.majorAxis)))
}
