package specimen

import "math"

// lambert projects degrees to Lambert 93 (IGN, NTG_71: a conformal cone over the GRS 80 ellipsoid), in metres.
func lambert(lon, lat float64) (x, y float64) {
	const (
		n  = 0.7256077650
		c  = 11754255.426
		xs = 700000.0
		ys = 12655612.050
		e  = 0.0818191910428
	)
	phi := lat * math.Pi / 180
	es := e * math.Sin(phi)
	iso := math.Atanh(math.Sin(phi)) - e*math.Atanh(es)
	sin, cos := math.Sincos(n * (lon - 3) * math.Pi / 180)
	r := c * math.Exp(-n*iso)
	return xs + r*sin, ys - r*cos
}
