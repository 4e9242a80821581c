package routing

import (
	"lieudit/schemas/body"
	"lieudit/schemas/geo"
)

// Estimates of the most memory that answers take. It is reserved before the router is called, and corrected once the answer is built.
const (
	boundBytes = 2 << 10 // a bound with its address
	cellBytes  = 64      // of a matrix
	areaBytes  = 2 << 20 // within reach of an origin
	// drawnBytesPerMetre is what a drawn way takes for each metre between its bounds as the crow flies: the way is half as long again, has
	// a position every 20 metres, and each is kept as the router has it and as the answer has it.
	drawnBytesPerMetre = 8
)

// drawingBytes estimates the memory of a number of routes through bounds, drawn as p says. The shapes of steps are drawn in addition.
func (p painter) drawingBytes(bounds []bound, routes int) int64 {
	size := int64(len(bounds)) * boundBytes
	if !p.wantsGeometry() && !p.Steps {
		return size
	}
	metres := 0.0
	for i := 1; i < len(bounds); i++ {
		metres += geo.Distance(bounds[i-1].Point, bounds[i].Point)
	}
	if p.Steps {
		routes *= 2
	}
	return size + int64(metres)*drawnBytesPerMetre*int64(routes)
}

// matrixBytes is what a matrix takes.
func matrixBytes(origins, destinations int) int64 {
	return int64(origins+destinations)*boundBytes + int64(origins*destinations)*cellBytes
}

// isochroneBytes is what the areas of an answer take.
func isochroneBytes(in body.ComputeIsochrone) int64 {
	if in.Geometry == noGeometry && !in.Sites {
		return 0
	}
	return int64(len(in.Costs)) * areaBytes
}
