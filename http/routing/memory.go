package routing

import (
	"lieudit/schemas/body"
	"lieudit/schemas/geo"
)

// Estimates of the memory that an answer takes at most. It is reserved before the router is called, and corrected once the answer is
// built.
const (
	boundBytes = 2 << 10 // a bound with its address
	cellBytes  = 64      // of a matrix
	areaBytes  = 2 << 20 // within reach of an origin
	// drawnBytesPerMetre is what a drawn way takes for each metre between its bounds as the crow flies: the way is half as long again and
	// has a position every 20 metres, and each position is kept in the form of the router and in that of the answer.
	drawnBytesPerMetre = 8
)

// drawingBytes estimates the memory of n routes through bounds, drawn as e encodes them. The shapes of steps come on top.
func (e encoder) drawingBytes(bounds []bound, routes int) int64 {
	size := int64(len(bounds)) * boundBytes
	if !e.wantsGeometry() && !e.Steps {
		return size
	}
	metres := 0.0
	for i := 1; i < len(bounds); i++ {
		metres += geo.Distance(bounds[i-1].Point, bounds[i].Point)
	}
	if e.Steps {
		routes *= 2
	}
	return size + int64(metres)*drawnBytesPerMetre*int64(routes)
}

// matrixBytes estimates the memory of a matrix.
func matrixBytes(origins, destinations int) int64 {
	return int64(origins+destinations)*boundBytes + int64(origins*destinations)*cellBytes
}

// isochroneBytes estimates the memory of the areas of an answer.
func isochroneBytes(in body.ComputeIsochrone) int64 {
	if in.Geometry == noGeometry && !in.Sites {
		return 0
	}
	return int64(len(in.Costs)) * areaBytes
}
