package search_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"lieudit/queries/locations/search"
)

func TestDistancesOnEarth(t *testing.T) {
	t.Parallel()
	paris, marseille := search.Point{Lat: 48.8566, Lon: 2.3522}, search.Point{Lat: 43.2965, Lon: 5.3698}
	for _, c := range []struct {
		a, b search.Point
		want float64
	}{
		{paris, paris, 0}, {paris, marseille, 660_479}, {marseille, paris, 660_479}, {search.Point{Lon: 180}, search.Point{Lon: -180}, 0},
		{search.Point{Lat: 90}, search.Point{Lat: -90}, math.Pi * 6371008.8}, {search.Point{Lat: 90}, search.Point{Lat: 90, Lon: 120}, 0},
		{search.Point{Lat: 44, Lon: 3}, search.Point{Lat: 44, Lon: 3.00001}, 0.8},
	} {
		if got := search.Distance(c.a, c.b); math.Abs(got-c.want) > 1 {
			t.Errorf("%v to %v: got %f, want %f", c.a, c.b, got, c.want)
		}
	}
}

func TestABoxAroundHoldsWhatIsWithin(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	within := 0
	for range 200_000 {
		p := search.Point{Lat: rng.Float64()*180 - 90, Lon: rng.Float64()*360 - 180}
		metres := math.Pow(10, rng.Float64()*7.5)
		turn := metres / 6371008.8 * 180 / math.Pi
		o := search.Point{
			Lat: max(-90, min(90, p.Lat+(rng.Float64()*2-1)*turn)),
			Lon: math.Mod(p.Lon+(rng.Float64()*2-1)*turn/math.Max(0.01, math.Cos(p.Lat*math.Pi/180))+540, 360) - 180,
		}
		if o.Lon < -180 {
			o.Lon += 360
		}
		if search.Distance(p, o) > metres {
			continue
		}
		within++
		if box := search.BoxAround(p, metres); !box.Contains(o) {
			t.Fatalf("%v is %f from %v and not in %+v", o, search.Distance(p, o), p, box)
		}
	}
	if within < 10_000 {
		t.Fatalf("only %d of the points were within", within)
	}
	edge := search.Point{Lat: 44.51, Lon: 3.5}
	p := search.Point{Lat: 44.5, Lon: 3.5}
	if !search.BoxAround(p, search.Distance(p, edge)).Contains(edge) {
		t.Error("the edge is not held")
	}
}

func TestNoBoxHoldsWhatIsNowhere(t *testing.T) {
	t.Parallel()
	nowhere := search.Point{Lat: math.NaN(), Lon: math.NaN()}
	for _, b := range []search.Box{{-180, -90, 180, 90}, {170, -90, -170, 90}} {
		if b.Contains(nowhere) {
			t.Errorf("%+v holds it", b)
		}
	}
}
