package geo_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"lieudit/schemas/geo"
)

func TestDistanceIsThatAlongTheGreatCircle(t *testing.T) {
	t.Parallel()
	paris, marseille := geo.Point{Lat: 48.8566, Lon: 2.3522}, geo.Point{Lat: 43.2965, Lon: 5.3698}
	for _, c := range []struct {
		a, b geo.Point
		want float64
	}{
		{paris, paris, 0}, {paris, marseille, 660_479}, {marseille, paris, 660_479}, {geo.Point{Lon: 180}, geo.Point{Lon: -180}, 0},
		{geo.Point{Lat: 90}, geo.Point{Lat: -90}, math.Pi * geo.EarthRadius}, {geo.Point{Lat: 90}, geo.Point{Lat: 90, Lon: 120}, 0},
		{geo.Point{Lat: 44, Lon: 3}, geo.Point{Lat: 44, Lon: 3.00001}, 0.8}, {geo.Point{Lat: 44, Lon: 3}, geo.Point{Lat: 45, Lon: 3}, geo.MetresPerDegree},
	} {
		if got := geo.Distance(c.a, c.b); math.Abs(got-c.want) > 1 {
			t.Errorf("from %v to %v: %f, want %f", c.a, c.b, got, c.want)
		}
	}
}

func TestAPlaneMeasuresAsTheSphereDoesToAHundredth(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		origin := geo.Point{Lon: rng.Float64()*20 - 10, Lat: rng.Float64()*102 - 51}
		plane := geo.PlaneAt(origin)
		sin, cos := math.Sincos(rng.Float64() * 2 * math.Pi)
		metres := rng.Float64() * 100_000
		p := plane.At(metres*sin, metres*cos)
		if d := geo.Distance(origin, p); math.Abs(d-metres) > metres/100 {
			t.Errorf("%v is %f m from %v, and %f m on the plane", p, d, origin, metres)
		}
		if east, north := plane.Project(p); math.Hypot(east-metres*sin, north-metres*cos) > 1e-6 {
			t.Errorf("%v lies %f, %f from %v, and was at %f, %f", p, east, north, origin, metres*sin, metres*cos)
		}
	}
}

func TestAPointOnTheGlobeHasDegreesOfIt(t *testing.T) {
	t.Parallel()
	for p, want := range map[geo.Point]bool{
		{}: true, {Lon: 180, Lat: -90}: true, {Lon: 180.1}: false, {Lat: 91}: false, {Lon: math.NaN()}: false, {Lat: math.Inf(1)}: false,
	} {
		if got := p.IsOnGlobe(); got != want {
			t.Errorf("%v: got %v, want %v", p, got, want)
		}
	}
}
