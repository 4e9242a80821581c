package finder_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"lieudit/queries/places/finder"
)

func TestDistancesOnEarth(t *testing.T) {
	t.Parallel()
	paris, marseille := finder.Point{Lat: 48.8566, Lon: 2.3522}, finder.Point{Lat: 43.2965, Lon: 5.3698}
	for _, c := range []struct {
		a, b finder.Point
		want float64
	}{
		{paris, paris, 0}, {paris, marseille, 660_479}, {marseille, paris, 660_479}, {finder.Point{Lon: 180}, finder.Point{Lon: -180}, 0},
		{finder.Point{Lat: 90}, finder.Point{Lat: -90}, math.Pi * 6371008.8}, {finder.Point{Lat: 90}, finder.Point{Lat: 90, Lon: 120}, 0},
		{finder.Point{Lat: 44, Lon: 3}, finder.Point{Lat: 44, Lon: 3.00001}, 0.8},
	} {
		if got := finder.Distance(c.a, c.b); math.Abs(got-c.want) > 1 {
			t.Errorf("%v to %v: got %f, want %f", c.a, c.b, got, c.want)
		}
	}
}

func TestABoxAroundHoldsWhatIsWithin(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	within := 0
	for range 200_000 {
		p := finder.Point{Lat: rng.Float64()*180 - 90, Lon: rng.Float64()*360 - 180}
		metres := math.Pow(10, rng.Float64()*7.5)
		turn := metres / 6371008.8 * 180 / math.Pi
		o := finder.Point{
			Lat: max(-90, min(90, p.Lat+(rng.Float64()*2-1)*turn)),
			Lon: math.Mod(p.Lon+(rng.Float64()*2-1)*turn/math.Max(0.01, math.Cos(p.Lat*math.Pi/180))+540, 360) - 180,
		}
		if o.Lon < -180 {
			o.Lon += 360
		}
		if finder.Distance(p, o) > metres {
			continue
		}
		within++
		if box := finder.Around(p, metres); !box.Holds(o) {
			t.Fatalf("%v is %f from %v and not in %+v", o, finder.Distance(p, o), p, box)
		}
	}
	if within < 10_000 {
		t.Fatalf("only %d of the points were within", within)
	}
	edge := finder.Point{Lat: 44.51, Lon: 3.5}
	p := finder.Point{Lat: 44.5, Lon: 3.5}
	if !finder.Around(p, finder.Distance(p, edge)).Holds(edge) {
		t.Error("the edge is not held")
	}
}

func TestNoBoxHoldsWhatIsNowhere(t *testing.T) {
	t.Parallel()
	nowhere := finder.Point{Lat: math.NaN(), Lon: math.NaN()}
	for _, b := range []finder.Box{{-180, -90, 180, 90}, {170, -90, -170, 90}} {
		if b.Holds(nowhere) {
			t.Errorf("%+v holds it", b)
		}
	}
}
