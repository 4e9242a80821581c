package routeserver

import (
	"lieudit/schemas/geo"
	"math"
)

// CheckPoint fails with a *BadAnswerError if a position of an answer is not on Earth.
func CheckPoint(p geo.Point) error {
	if !p.IsOnGlobe() {
		return &BadAnswerError{"a position that does not exist"}
	}
	return nil
}

// CheckCosts fails with a *BadAnswerError if a duration or a distance of an answer is negative or not a number.
func CheckCosts(costs ...float64) error {
	for _, c := range costs {
		if !(c >= 0) || math.IsInf(c, 1) {
			return &BadAnswerError{"a cost that is no number from 0 on"}
		}
	}
	return nil
}

// DecodePolyline returns the positions of a polyline with six decimals: the differences of positions, five bits a character, the
// lowest first (https://developers.google.com/maps/documentation/utilities/polylinealgorithm). Libraries for it allocate a slice
// for each position. It fails with a *BadAnswerError.
func DecodePolyline(s string) ([]geo.Point, error) {
	points := make([]geo.Point, 0, len(s)/6)
	var lat, lon int64
	for s != "" {
		var ok1, ok2 bool
		var dLat, dLon int64
		dLat, s, ok1 = decodeDifference(s)
		dLon, s, ok2 = decodeDifference(s)
		if !ok1 || !ok2 {
			return nil, &BadAnswerError{"a broken polyline"}
		}
		lat, lon = lat+dLat, lon+dLon
		p := geo.Point{Lon: float64(lon) / 1e6, Lat: float64(lat) / 1e6}
		if err := CheckPoint(p); err != nil {
			return nil, err
		}
		points = append(points, p)
	}
	return points, nil
}

// decodeDifference returns the number at the beginning of a polyline and what follows it.
func decodeDifference(s string) (difference int64, rest string, ok bool) {
	var bits uint64
	for i := 0; i < len(s) && i < 7; i++ { // 7 × 5 bits hold any difference
		c := uint64(s[i]) - 63
		if c > 63 {
			return 0, "", false
		}
		bits |= c & 31 << (5 * i)
		if c < 32 {
			return int64(bits>>1) ^ -int64(bits&1), s[i+1:], true
		}
	}
	return 0, "", false
}

// AppendPoints appends positions to a line, without those that repeat the one before.
func AppendPoints(line, points []geo.Point) []geo.Point {
	for _, p := range points {
		if n := len(line); n == 0 || line[n-1] != p {
			line = append(line, p)
		}
	}
	return line
}
