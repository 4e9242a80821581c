package geometry_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"lieudit/http/sitefile/geometry"
)

// shapes are geometries with their kind and center, in every form.
var shapes = []struct {
	text string
	kind geometry.Kind
	x, y float64
}{
	{"POINT (3.5 44.5)", geometry.KindPoint, 3.5, 44.5},
	{"point(3.5 44.5)", geometry.KindPoint, 3.5, 44.5},
	{"POINT Z (3.5 44.5 900)", geometry.KindPoint, 3.5, 44.5},
	{"POINTZM(3.5 44.5 900 1)", geometry.KindPoint, 3.5, 44.5},
	{"SRID=4326;POINT(3.5 44.5)", geometry.KindPoint, 3.5, 44.5},
	{"MULTIPOINT ((3.5 44.5))", geometry.KindPoint, 3.5, 44.5},
	{"MULTIPOINT (0 0, 1 1, 10 10)", geometry.KindPoint, 1, 1},
	{"LINESTRING (0 0, 10 0)", geometry.KindLine, 5, 0},
	{"LINESTRING (0 0, 0 2, 4 2)", geometry.KindLine, 1, 2},
	{"MULTILINESTRING ((0 0, 1 0), (0 5, 10 5))", geometry.KindLine, 5, 5},
	{"POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))", geometry.KindPolygon, 2, 2},
	{"POLYGON ((0 0, 0 4, 4 4, 4 0))", geometry.KindPolygon, 2, 2},                                                 // not closed, the other way round
	{"POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0), (3 3, 6 3, 6 6, 3 6, 3 3))", geometry.KindPolygon, 1.5, 4.5},             // the centre lies in the hole
	{"POLYGON ((0 0, 10 0, 10 10, 0 10, 0 8, 8 8, 8 2, 0 2, 0 0))", geometry.KindPolygon, 9, 5},                    // and in a bay
	{"MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((10 10, 14 10, 14 14, 10 14, 10 10)))", geometry.KindPolygon, 12, 12}, // the largest
	{"POLYGON ((1 1, 1 1, 1 1))", geometry.KindPolygon, 1, 1},
	{"POLYGON ((0 0, 2 0, 0 0))", geometry.KindPolygon, 2, 0}, // without an area: the middle of its outline
	{"GEOMETRYCOLLECTION (POINT (9 9), LINESTRING (0 0, 10 0))", geometry.KindLine, 5, 0},
	{`{"type":"Point","coordinates":[3.5,44.5]}`, geometry.KindPoint, 3.5, 44.5},
	{`{'type': 'MultiPoint', 'coordinates': [[3.5, 44.5]]}`, geometry.KindPoint, 3.5, 44.5},
	{`{"type":"LineString","coordinates":[[0,0],[10,0]]}`, geometry.KindLine, 5, 0},
	{`{"type":"MultiLineString","coordinates":[[[0,0],[10,0]],[]]}`, geometry.KindLine, 5, 0},
	{`{"type":"Polygon","coordinates":[[[0,0,1],[4,0,1],[4,4,1],[0,4,1],[0,0,1]]]}`, geometry.KindPolygon, 2, 2},
	{`{"type":"MultiPolygon","coordinates":[[[[0,0],[4,0],[4,4],[0,4],[0,0]]]]}`, geometry.KindPolygon, 2, 2},
	{`{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[1,1]}]}`, geometry.KindPoint, 1, 1},
	{`{"type":"Feature","properties":{},"geometry":{"type":"Point","coordinates":[3.5,44.5]}}`, geometry.KindPoint, 3.5, 44.5},
	{"01010000000000000000000C400000000000404640", geometry.KindPoint, 3.5, 44.5},
	{"0101000020E61000000000000000000C400000000000404640", geometry.KindPoint, 3.5, 44.5},
	{"0000000001400C0000000000004046400000000000", geometry.KindPoint, 3.5, 44.5},
	{"01E90300000000000000000C4000000000004046400000000000000000", geometry.KindPoint, 3.5, 44.5},
	{"01010000800000000000000C4000000000004046400000000000000000", geometry.KindPoint, 3.5, 44.5},
	{"010300000001000000040000000000000000000000000000000000000000000000000008400000000000000000000000000000084000000000000008400000000000000000000000000000" +
		"0000", geometry.KindPolygon, 2, 1},
	{"010400000001000000" + "01010000000000000000000C400000000000404640", geometry.KindPoint, 3.5, 44.5},
}

func TestShapesAreReadAndHaveACenter(t *testing.T) {
	t.Parallel()
	for _, c := range shapes {
		s, err := geometry.ParseShape(c.text)
		if x, y := s.Center(); err != nil || s.Kind != c.kind || math.Abs(x-c.x) > 1e-9 || math.Abs(y-c.y) > 1e-9 {
			t.Errorf("%s: got %s %v %v, %v; want %s %v %v", c.text, s.Kind, x, y, err, c.kind, c.x, c.y)
		}
	}
}

func TestReferenceSystemsInTextsAreKept(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"SRID=2154;POINT(700000 6600000)", "01010000206A080000" + "0000000000000000" + "000000000000F03F"} {
		if s, err := geometry.ParseWKT(text); err != nil || s.SRID != 2154 {
			t.Errorf("%s: got %d, %v", text, s.SRID, err)
		}
	}
}

func TestOnePointIsAPoint(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"POINT (1 2)": true, "MULTIPOINT (1 2)": true, "MULTIPOINT (1 2, 3 4)": false, "LINESTRING (1 2, 3 4)": false} {
		if s, err := geometry.ParseWKT(text); err != nil || s.IsOnePoint() != want {
			t.Errorf("%s: got %v, %v", text, s.IsOnePoint(), err)
		}
	}
}

func TestOtherTextsAreNoShapes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		"":                                              geometry.ErrUnreadable,
		"Mende":                                         geometry.ErrUnreadable,
		"POINT (3.5)":                                   geometry.ErrUnreadable,
		"POINT (3.5 44.5":                               geometry.ErrUnreadable,
		"POINT (3.5 44.5) x":                            geometry.ErrUnreadable,
		"POINT (1 2 3 4 5)":                             geometry.ErrUnreadable,
		"POINT (NaN NaN)":                               geometry.ErrUnreadable,
		"POINT (1e300 1)":                               geometry.ErrUnreadable,
		"CIRCLE (1 2)":                                  geometry.ErrUnreadable,
		"SRID=x;POINT (1 2)":                            geometry.ErrUnreadable,
		"POINT EMPTY":                                   geometry.ErrEmpty,
		"GEOMETRYCOLLECTION EMPTY":                      geometry.ErrEmpty,
		`{"type":"Polygon","coordinates":[]}`:           geometry.ErrEmpty,
		`{"type":"Polygon","coordinates":null}`:         geometry.ErrEmpty,
		`{"type":"Point","coordinates":[1]}`:            geometry.ErrUnreadable,
		`{"type":"Point","coordinates":["a"]}`:          geometry.ErrUnreadable,
		`{"type":"Circle","coordinates":[1]}`:           geometry.ErrUnreadable,
		`{"lat":1,"lon":2}`:                             geometry.ErrUnreadable,
		"0101000000000000000000F87F000000000000F87F":    geometry.ErrEmpty,
		"01010000000000000000000C40":                    geometry.ErrUnreadable,
		"0102000000FFFFFFFF0000000000000000":            geometry.ErrUnreadable,
		strings.Repeat("GEOMETRYCOLLECTION(", 50) + "x": geometry.ErrUnreadable,
		"01" + strings.Repeat("07000000"+"01000000"+"01", 20): geometry.ErrUnreadable,
	} {
		if s, err := geometry.ParseShape(text); !errors.Is(err, want) {
			t.Errorf("%.60s: got %v, %v; want %v", text, s, err, want)
		}
	}
}

// FuzzParseShape: no text breaks the readers, and the center of a shape lies within its bounds.
func FuzzParseShape(f *testing.F) {
	for _, s := range shapes {
		f.Add(s.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		geometry.ParseJSONPoint(text)
		if a, b, ok := geometry.ParsePair(text); ok && (math.IsNaN(a+b) || math.IsInf(a, 0) || math.IsInf(b, 0)) {
			t.Fatalf("%q: %v %v", text, a, b)
		}
		for _, form := range []string{text, hex.EncodeToString([]byte(text))} {
			checkCenter(t, form)
		}
		if s, err := geometry.ParseGeoJSON(json.RawMessage(text)); err == nil && s.Kind == "" {
			t.Fatalf("%q: a shape of no kind", text)
		}
	})
}

func checkCenter(t *testing.T, text string) {
	t.Helper()
	s, err := geometry.ParseShape(text)
	if err != nil {
		return
	}
	x, y := s.Center()
	west, south, east, north := s.Bounds()
	margin := 1e-6 * (1 + math.Abs(west) + math.Abs(south) + math.Abs(east) + math.Abs(north))
	if !(west-margin <= x && x <= east+margin && south-margin <= y && y <= north+margin) {
		t.Fatalf("%q: %v %v is not within %v %v %v %v", text, x, y, west, south, east, north)
	}
}
