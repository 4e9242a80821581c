package geometry_test

import (
	"math"
	"testing"

	"lieudit/http/sitefile/geometry"
	"lieudit/queries/address/commune"
	"lieudit/schemas/geo"
)

// metresApart is about how far two positions are apart.
func metresApart(p, q geo.Point) float64 {
	return math.Hypot(geo.PlaneAt(p).Project(q))
}

// TestProjectionsAreThePublishedOnes: known points in metres and in degrees. Sources: two rows of the BAN's files; the origins of the
// projections, where metres and degrees are their parameters; a landmark in Toronto; the others by PROJ 9.
func TestProjectionsAreThePublishedOnes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		crs         string
		x, y        float64
		want        geo.Point
		withinMetre float64
	}{
		{"EPSG:2154", 719394.83, 6422061.73, geo.Point{Lat: 44.897472, Lon: 3.24568}, 0.5},
		{"EPSG:2154", 662524.1, 6866064.08, geo.Point{Lat: 48.893494, Lon: 2.488881}, 0.5},
		{"EPSG:2154", 700_000, 6_600_000, geo.Point{Lat: 46.5, Lon: 3}, 0.01},
		{"CC42", 1_700_000, 1_200_000, geo.Point{Lat: 42, Lon: 3}, 0.01},
		{"EPSG:3946", 1_700_000, 5_200_000, geo.Point{Lat: 46, Lon: 3}, 0.01},
		{"EPSG:3950", 1_700_000, 9_200_000, geo.Point{Lat: 50, Lon: 3}, 0.01},
		{"EPSG:3163", 400_000, 300_000, geo.Point{Lat: -21.5, Lon: 166}, 0.01},
		{"EPSG:32617", 630_084, 4_833_438, geo.Point{Lat: 43.642567, Lon: -79.387139}, 1},
		{"EPSG:2975", 340_000, 7_690_000, geo.Point{Lat: -20.8833187, Lon: 55.4618158}, 0.05},
		{"EPSG:5490", 655_000, 1_797_000, geo.Point{Lat: 16.2487495, Lon: -61.5496111}, 0.05},
		{"EPSG:4467", 560_000, 5_180_000, geo.Point{Lat: 46.7708515, Lon: -56.2141439}, 0.05},
		{"EPSG:3297", 230_000, 8_060_000, geo.Point{Lat: -17.5300628, Lon: -149.5431289}, 1},
		{"EPSG:3163", 447_000, 214_000, geo.Point{Lat: -22.2761115, Lon: 166.4560474}, 0.05},
		{"EPSG:3946", 1_842_000, 5_176_000, geo.Point{Lat: 45.7694106, Lon: 4.8258585}, 0.05},
		{"EPSG:3942", 1_900_000, 1_200_000, geo.Point{Lat: 41.9746187, Lon: 5.4135457}, 0.05},
		{"EPSG:3857", 261_845.7, 6_250_564.3, geo.Point{Lat: 48.8565997, Lon: 2.3521999}, 0.05},
		{"EPSG:27571", 600_000, 1_128_000, geo.Point{Lat: 48.8524607, Lon: 2.3365056}, 0.1},
		{"EPSG:27572", 600_000, 2_200_000, geo.Point{Lat: 46.7999488, Lon: 2.3365336}, 0.1},
		{"EPSG:27572", 970_000, 1_820_000, geo.Point{Lat: 43.2859247, Lon: 6.8900757}, 0.1},
		{"EPSG:27573", 600_000, 3_200_000, geo.Point{Lat: 44.0999911, Lon: 2.3365660}, 0.1},
		{"EPSG:27574", 530_000, 4_230_000, geo.Point{Lat: 42.3824588, Lon: 8.7758364}, 0.1},
	} {
		crs, known := geometry.FindCRS(c.crs)
		got, ok := crs.ToWGS84(c.x, c.y)
		if d := metresApart(got, c.want); !known || !ok || d > c.withinMetre {
			t.Errorf("%s: %v %v is %v, %v m off %v", c.crs, c.x, c.y, got, d, c.want)
		}
	}
}

// TestProjectionsAreTheInverseOfThoseOfCommunes: the other half stands in queries/address/commune.
func TestProjectionsAreTheInverseOfThoseOfCommunes(t *testing.T) {
	t.Parallel()
	systems := map[string]string{"971": "5490", "972": "5490", "973": "2972", "974": "2975", "975": "4467", "976": "4471"}
	table, err := commune.Load()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for c := range table.All() {
		x, y, ok := c.Projected()
		if !ok {
			continue
		}
		number := systems[c.Department()]
		if len(c.Department()) == 2 {
			number = "2154"
		}
		crs, known := geometry.FindCRS("EPSG:" + number)
		if !known {
			continue
		}
		got, ok := crs.ToWGS84(x, y)
		if d := metresApart(got, geo.Point{Lat: c.Lat, Lon: c.Lon}); !ok || d > 0.05 {
			t.Fatalf("%s in %s: %v m off", c.Code, number, d)
		}
		seen[number] = true
	}
	if len(seen) < 5 {
		t.Errorf("only %v have communes", seen)
	}
}

func TestSystemsAreFoundByNameAndNumber(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"EPSG:2154": "Lambert-93", "epsg:2154": "Lambert-93", "2154": "Lambert-93", "2154.0": "Lambert-93", "urn:ogc:def:crs:EPSG::2154": "Lambert-93",
		"urn:ogc:def:crs:EPSG:9.9.1:2154": "Lambert-93", "http://www.opengis.net/def/crs/EPSG/0/2154": "Lambert-93", "Lambert 93": "Lambert-93",
		"LAMBERT-93": "Lambert-93", "lambert93": "Lambert-93", "L93": "Lambert-93", "RGF93 / Lambert-93": "Lambert-93", "RGF93 v1 / Lambert-93": "Lambert-93",
		"urn:ogc:def:crs:OGC:1.3:CRS84": "WGS 84", "urn:ogc:def:crs:EPSG::4326": "WGS 84", "WGS84": "WGS 84", "EPSG:4171": "RGF93",
		"CC46": "CC46", "RGF93 / CC48": "CC48", "EPSG:3942": "CC42", "Lambert II étendu": "Lambert II étendu", "EPSG:27572": "Lambert II étendu",
		"EPSG:5490": "RGAF09 / UTM 20N", "RGR92 / UTM 40S": "RGR92 / UTM 40S", "EPSG:900913": "Web Mercator", "EPSG:32631": "WGS 84 / UTM 31", "EPSG:25831": "ETRS89 / UTM 31",
	} {
		if got, ok := geometry.FindCRS(name); !ok || got.Name != want {
			t.Errorf("%s: got %q %v, want %q", name, got.Name, ok, want)
		}
	}
	for _, name := range []string{"", "EPSG:31370", "local", "EPSG:", "93", "Lambert", "CC51", "EPSG:32661"} {
		if got, ok := geometry.FindCRS(name); ok {
			t.Errorf("%s: got %q", name, got.Name)
		}
	}
}

func TestDegreesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	crs, _ := geometry.FindCRS("urn:ogc:def:crs:EPSG::4326")
	if got, ok := crs.ToWGS84(3.5, 44.5); !ok || got != (geo.Point{Lat: 44.5, Lon: 3.5}) || !crs.IsDegrees() {
		t.Errorf("got %v %v", got, ok)
	}
	if _, ok := crs.ToWGS84(652093, 6862619); ok {
		t.Error("metres are degrees")
	}
}

func TestNumbersOfAnotherSystemAreNotConverted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		crs  string
		x, y float64
	}{
		{"2154", 2.35, 48.85}, {"2154", 6862619, 652093}, {"2975", 652093, 6862619}, {"3857", 1e8, 0}, {"2154", math.NaN(), 0}, {"2154", math.Inf(1), 0}, {"27572", 0, 0},
	} {
		crs, _ := geometry.FindCRS(c.crs)
		if got, ok := crs.ToWGS84(c.x, c.y); ok {
			t.Errorf("%s: %v %v is %v", c.crs, c.x, c.y, got)
		}
	}
}

func TestMetresOfTheMainlandLookLikeLambert93(t *testing.T) {
	t.Parallel()
	if !geometry.LooksLambert93(652093, 6862619) || !geometry.LooksLambert93(1221000, 6081000) {
		t.Error("Paris or Bastia does not")
	}
	if geometry.LooksLambert93(2.35, 48.85) || geometry.LooksLambert93(6862619, 652093) || geometry.LooksLambert93(600_000, 2_200_000) {
		t.Error("degrees, turned metres or Lambert II do")
	}
}
