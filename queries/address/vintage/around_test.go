package vintage

import (
	"math"
	"math/rand/v2"
	"testing"

	"lieudit/schemas/geo"
)

func TestTheBoxAroundACircleHoldsIt(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for range 100_000 {
		centre := Fix(geo.Point{Lon: rng.Float64()*120 - 60, Lat: rng.Float64()*102 - 51})
		metres := 1 + rng.Float64()*16_000
		sin, cos := math.Sincos(float64(rng.IntN(16)) * math.Pi / 8)
		p := Fix(geo.PlaneAt(centre.Degrees()).At(metres*sin, metres*cos))
		if Metres(centre, p) > metres {
			continue
		}
		w, h := box{centre.Lon, centre.Lat, metres}.halfSize()
		if east, north := math.Abs(float64(p.Lon-centre.Lon)), math.Abs(float64(p.Lat-centre.Lat)); east > w || north > h {
			t.Fatalf("%v is within %f m of %v and %f, %f beside the box", p, metres, centre, east-w, north-h)
		}
	}
}
