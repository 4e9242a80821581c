package geometry_test

import (
	"math"
	"testing"

	"lieudit/http/sitefile/geometry"
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
	if got := geometry.LonLat.Point(3.5, 44.5); got != (geometry.Point{Lat: 44.5, Lon: 3.5}) {
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
var places = map[string]geometry.Point{
	"Mende": {44.518, 3.5}, "Ouessant": {48.46, -5.1}, "Bonifacio": {41.39, 9.16}, "Lauterbourg": {48.97, 8.18}, "Dunkerque": {51.03, 2.38},
	"Pointe-à-Pitre": {16.24, -61.53}, "Marigot": {18.07, -63.08}, "Gustavia": {17.9, -62.85}, "Fort-de-France": {14.6, -61.07}, "Cayenne": {4.94, -52.33},
	"Maripasoula": {3.64, -54.03}, "Saint-Denis": {-20.88, 55.45}, "Mamoudzou": {-12.78, 45.23}, "Saint-Pierre": {46.78, -56.17}, "Nouméa": {-22.27, 166.45},
	"Papeete": {-17.54, -149.57}, "Mata-Utu": {-13.28, -176.18}, "Port-aux-Français": {-49.35, 70.22},
}

func TestFranceHasItsTerritoriesAndNoTurnedOnes(t *testing.T) {
	t.Parallel()
	for name, p := range places {
		if !geometry.IsInFrance(p) {
			t.Errorf("%s is not in France", name)
		}
		if geometry.IsInFrance(geometry.Point{Lat: p.Lon, Lon: p.Lat}) {
			t.Errorf("%s is in France when turned", name)
		}
	}
	for _, p := range []geometry.Point{{}, {51.5, -0.1}, {45.5, -73.6}, {40.4, -3.7}, {3.5, 44.5}} {
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
		if got, ok := geometry.ParseJSONPoint(text); !ok || got != (geometry.Point{Lat: 44.5, Lon: 3.5}) {
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
