package commune

import (
	"math"
	"testing"
)

func TestLambert93IsTheLegalProjectionOfTheMainland(t *testing.T) {
	t.Parallel()
	// Two rows of the official file of Lozère and Seine-Saint-Denis.
	for _, p := range [][4]float64{{3.24568, 44.897472, 719394.83, 6422061.73}, {2.488881, 48.893494, 662524.1, 6866064.08}} {
		if x, y := Lambert93(p[0], p[1]); math.Hypot(x-p[2], y-p[3]) > 0.5 {
			t.Errorf("got %.2f %.2f, want %.2f %.2f", x, y, p[2], p[3])
		}
	}
}

func TestUTMIsTheLegalProjectionOverseas(t *testing.T) {
	t.Parallel()
	// On the meridian in the middle, the length of the meridian from the equator: 4,984,944.38 m to 45 degrees. Next to it,
	// the mirror image. The last is a landmark in zone 17, whose coordinates are published to the metre.
	for _, p := range []struct {
		lon, lat, meridian float64
		south              bool
		x, y               float64
	}{
		{-63, 45, -63, false, 500_000, 0.9996 * 4984944.378},
		{57, -45, 57, true, 500_000, 10_000_000 - 0.9996*4984944.378},
		{-(79 + 23/60. + 13.7/3600), 43 + 38/60. + 33.24/3600, -81, false, 630_084, 4_833_438},
	} {
		if x, y := projectUTM(p.lon, p.lat, p.meridian, p.south); math.Hypot(x-p.x, y-p.y) > 1 {
			t.Errorf("got %.2f %.2f, want %.2f %.2f", x, y, p.x, p.y)
		}
	}
}

func TestEveryLocatedCommuneOfADepartmentHasMetres(t *testing.T) {
	t.Parallel()
	for c := range table(t).All() {
		x, y, ok := c.Projected()
		_, overseas := utmZones[c.Department()]
		if ok != (c.Located() && (overseas || len(c.Department()) == 2)) || ok && (x < 0 || x > 1_300_000 || y < 0 || y > 10_000_000) {
			t.Errorf("%s in %s: %.0f %.0f, %v", c.Code, c.Department(), x, y, ok)
		}
	}
}
