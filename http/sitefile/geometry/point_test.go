package geometry_test

import (
	"math"
	"testing"

	"lieudit/http/sitefile/geometry"
	"lieudit/schemas/geo"
)

func TestPairsAreReadInEverySpelling(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]float64{
		"44.5, 3.5":                        {44.5, 3.5},
		"44.5,3.5":                         {44.5, 3.5},
		"44,5;3,5":                         {44.5, 3.5},
		"44,5, 3,5":                        {44.5, 3.5},
		"44,5,3,5":                         {44.5, 3.5},
		"44,5 3,5":                         {44.5, 3.5},
		"[3.5,44.5]":                       {3.5, 44.5},
		"(44.5 3.5)":                       {44.5, 3.5},
		"44.5|3.5":                         {44.5, 3.5},
		"44.5/3.5":                         {44.5, 3.5},
		"44.5\t3.5":                        {44.5, 3.5},
		"41.93. 8.75":                      {41.93, 8.75},
		"[3, 44]":                          {3, 44},
		"44.5, 3":                          {44.5, 3},
		"3.5,44.5,900":                     {3.5, 44.5},
		"−21.1, 55.5":                      {-21.1, 55.5},
		"44.5°, 3.5°":                      {44.5, 3.5},
		"4.45e1 3.5":                       {44.5, 3.5},
		"44°30'00\"N 3°30'00\"E":           {44.5, 3.5},
		"3° 30' E, 44° 30' N":              {44.5, 3.5},
		"21°06'36,0\"S / 55°30’O":          {-21.11, -55.5},
		"652093.2251000032 6862619.066599": {652093.2251000032, 6862619.066599},
	} {
		a, b, ok := geometry.ParsePair(text)
		if !ok || math.Abs(a-want[0]) > 1e-9 || math.Abs(b-want[1]) > 1e-9 {
			t.Errorf("%q: got %v %v %v, want %v", text, a, b, ok, want)
		}
	}
}

func TestWhatIsNoPairIsNotRead(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "44,5", "44.5", "44, 3", "04 66", "12/2024", "44.5, nord", "44.5,", "1,2,3", "44,5,3", "NaN, NaN", "1e999, 2.5", "44.5, 3.5, 1, 2", "[]", "[44.5]",
		"44°30'N 3°30'N", "44°30'N", "POINT (1.5 2.5)", "0x1p1, 2.5", "44.5 3.5 rue X",
	} {
		if a, b, ok := geometry.ParsePair(text); ok {
			t.Errorf("%q: got %v %v", text, a, b)
		}
	}
}

func TestAColumnOfPairsHasTheOrderThatLiesInFrance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pairs [][2]float64
		want  geometry.Order
	}{
		"latitude first":             {[][2]float64{{44.5, 3.5}, {48.8, 2.3}}, geometry.LatLon},
		"longitude first":            {[][2]float64{{3.5, 44.5}, {2.3, 48.8}}, geometry.LonLat},
		"overseas":                   {[][2]float64{{55.5, -21.1}, {-61.5, 16.2}}, geometry.LonLat},
		"two abroad and 0, 0":        {[][2]float64{{3.5, 44.5}, {-0.1, 51.5}, {0, 0}}, geometry.LonLat},
		"a few turned":               {append(make20(44.5, 3.5), [2]float64{3.5, 44.5}), geometry.LatLon},
		"half of them turned":        {[][2]float64{{44.5, 3.5}, {3.5, 44.5}}, geometry.UnknownOrder},
		"abroad":                     {[][2]float64{{40.4, -3.7}}, geometry.UnknownOrder},
		"abroad, one is no latitude": {[][2]float64{{139.7, 35.7}, {40.4, -3.7}}, geometry.LonLat},
		"metres":                     {[][2]float64{{652093, 6862619}}, geometry.UnknownOrder},
		"none":                       {nil, geometry.UnknownOrder},
	} {
		if got := geometry.OrderPairs(c.pairs); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	if got := geometry.LonLat.Point(3.5, 44.5); got != (geo.Point{Lat: 44.5, Lon: 3.5}) {
		t.Errorf("got %v", got)
	}
}

// make20 is a pair twenty times.
func make20(a, b float64) (pairs [][2]float64) {
	for range 20 {
		pairs = append(pairs, [2]float64{a, b})
	}
	return pairs
}

// places are one in each part of France.
var places = map[string]geo.Point{
	"Mende": {Lat: 44.518, Lon: 3.5}, "Ouessant": {Lat: 48.46, Lon: -5.1}, "Bonifacio": {Lat: 41.39, Lon: 9.16}, "Lauterbourg": {Lat: 48.97, Lon: 8.18}, "Dunkerque": {Lat: 51.03, Lon: 2.38},
	"Pointe-à-Pitre": {Lat: 16.24, Lon: -61.53}, "Marigot": {Lat: 18.07, Lon: -63.08}, "Gustavia": {Lat: 17.9, Lon: -62.85}, "Fort-de-France": {Lat: 14.6, Lon: -61.07}, "Cayenne": {Lat: 4.94, Lon: -52.33},
	"Maripasoula": {Lat: 3.64, Lon: -54.03}, "Saint-Denis": {Lat: -20.88, Lon: 55.45}, "Mamoudzou": {Lat: -12.78, Lon: 45.23}, "Saint-Pierre": {Lat: 46.78, Lon: -56.17}, "Nouméa": {Lat: -22.27, Lon: 166.45},
	"Papeete": {Lat: -17.54, Lon: -149.57}, "Mata-Utu": {Lat: -13.28, Lon: -176.18}, "Port-aux-Français": {Lat: -49.35, Lon: 70.22},
}

func TestFranceHasItsTerritoriesAndNoTurnedOnes(t *testing.T) {
	t.Parallel()
	for name, p := range places {
		if !geometry.IsInFrance(p) {
			t.Errorf("%s is not in France", name)
		}
		if geometry.IsInFrance(geo.Point{Lat: p.Lon, Lon: p.Lat}) {
			t.Errorf("%s is in France when turned", name)
		}
	}
	for _, p := range []geo.Point{{}, {Lat: 51.5, Lon: -0.1}, {Lat: 45.5, Lon: -73.6}, {Lat: 40.4, Lon: -3.7}, {Lat: 3.5, Lon: 44.5}} {
		if geometry.IsInFrance(p) {
			t.Errorf("%v is in France", p)
		}
	}
}

func TestPointsAreReadAsJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"lat":44.5,"lon":3.5}`, `{"lon":"3.5","lat":"44,5","alt":900}`, `{"latitude":44.5,"longitude":3.5}`, `{"lat":44.5,"lng":3.5}`, `{"x":3.5,"y":44.5}`,
		`{"type":"Point","coordinates":[3.5,44.5,900]}`, `{'lon': 3.5, 'lat': 44.5}`, `{'type': 'Point', 'coordinates': [3.5, 44.5]}`,
		`{"type":"MultiPoint","coordinates":[[3.5,44.5]]}`,
	} {
		if got, ok := geometry.ParseJSONPoint(text); !ok || got != (geo.Point{Lat: 44.5, Lon: 3.5}) {
			t.Errorf("%s: got %v %v", text, got, ok)
		}
	}
	for _, text := range []string{
		"", "{}", "[3.5,44.5]", `{"lat":44.5}`, `{"lat":null,"lon":null}`, `{"lat":"","lon":""}`, `{"x":652093,"y":6862619}`, `{"lat":"nord","lon":1}`,
		`{"type":"LineString","coordinates":[[1,2],[3,4]]}`, `{"type":"MultiPoint","coordinates":[[1,2],[3,4]]}`, `{"type":"Point","coordinates":[]}`, `"x"`, "null",
	} {
		if got, ok := geometry.ParseJSONPoint(text); ok {
			t.Errorf("%s: got %v", text, got)
		}
	}
}
