package profile

import "testing"

func TestTrafficKeepsToTheSideOfItsCountry(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		place    string
		lon, lat float64
		want     Side
	}{
		{"Paris", 2.35, 48.85, Right}, {"Calais", 1.86, 50.95, Right}, {"Dover", 1.31, 51.13, Left}, {"London", -0.1, 51.5, Left},
		{"Brighton", -0.14, 50.82, Left}, {"Penzance", -5.54, 50.12, Left}, {"Belfast", -5.93, 54.6, Left}, {"Cork", -8.47, 51.9, Left},
		{"Dieppe", 1.08, 49.92, Right}, {"Cherbourg", -1.62, 49.64, Right}, {"Goury", -1.94, 49.71, Right}, {"Ouessant", -5.1, 48.46, Right},
		{"Boulogne", 1.6, 50.72, Right}, {"Dunkerque", 2.37, 51.04, Right}, {"Oostende", 2.92, 51.22, Right}, {"Gravelines", 2.12, 50.98, Right},
		{"Saint-Valery-en-Caux", 0.72, 49.87, Right}, {"Chausey", -1.82, 48.87, Right}, {"Barneville", -1.8, 49.37, Right},
		{"Saint Helier", -2.1, 49.19, Left}, {"Saint Peter Port", -2.54, 49.46, Left}, {"Alderney", -2.2, 49.71, Left},
		{"Fort-de-France", -61.07, 14.6, Right}, {"Pointe-à-Pitre", -61.53, 16.24, Right}, {"Marie-Galante", -61.27, 15.93, Right},
		{"Saint-Martin", -63.08, 18.07, Right}, {"Saint-Barthélemy", -62.85, 17.9, Right}, {"Anguilla", -63.05, 18.22, Left},
		{"Roseau", -61.39, 15.3, Left}, {"Cayenne", -52.33, 4.93, Right}, {"Saint-Laurent-du-Maroni", -54.03, 5.5, Right},
		{"Saint-Denis de La Réunion", 55.45, -20.88, Right}, {"Port Louis", 57.5, -20.16, Left}, {"Mamoudzou", 45.23, -12.78, Right},
		{"Nouméa", 166.45, -22.27, Right}, {"Papeete", -149.57, -17.54, Right}, {"Wallis", -176.17, -13.28, Right}, {"Saint-Pierre", -56.17, 46.78, Right},
		{"Tokyo", 139.7, 35.7, Left}, {"Busan", 129.04, 35.1, Right}, {"Sydney", 151.2, -33.87, Left}, {"Cape Town", 18.4, -33.9, Left},
		{"Genève", 6.14, 46.2, Right}, {"New York", -74, 40.7, Right}, {"Gibraltar", -5.35, 36.14, Right}, {"Valletta", 14.51, 35.9, Left},
	} {
		if got := SideAt(c.lon, c.lat); got != c.want {
			t.Errorf("%s: got %d, want %d", c.place, got, c.want)
		}
	}
}

func TestARoadsOwnSideCountsBeforeThatOfItsCountry(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tag      string
		lon, lat float64
		want     bool
	}{{"", 2.35, 48.85, false}, {"left", 2.35, 48.85, true}, {"right", -0.1, 51.5, false}, {"", -0.1, 51.5, true}, {"both", -0.1, 51.5, true}} {
		w, ok := ReadWay(tagList{"highway": "residential", "driving_side": c.tag})
		if got := w.Side.KeepsLeft(c.lon, c.lat); !ok || got != c.want {
			t.Errorf("driving_side=%q at %v, %v: got %v, want %v", c.tag, c.lon, c.lat, got, c.want)
		}
	}
}

func TestTurnsAcrossTheOncomingTrafficCostMoreOnBothSides(t *testing.T) {
	t.Parallel()
	for _, m := range []Mode{Car, Bike} {
		for angle := 10.0; angle <= 170; angle += 20 {
			right := TurnCost(m, Turn{Angle: angle, Roads: 4})
			left := TurnCost(m, Turn{Angle: -angle, Roads: 4})
			if mirrored := TurnCost(m, Turn{Angle: angle, Roads: 4, KeepsLeft: true}); mirrored != left || angle > 40 && left <= right {
				t.Errorf("mode %d, %.0f°: to the right %d, to the left %d, to the right where traffic keeps left %d", m, angle, right, left, mirrored)
			}
			if mirrored := TurnCost(m, Turn{Angle: -angle, Roads: 4, KeepsLeft: true}); mirrored != right {
				t.Errorf("mode %d, %.0f°: to the left where traffic keeps left %d, want %d", m, angle, mirrored, right)
			}
		}
	}
}

func TestALaneForBicyclesIsForTheTrafficOnItsSide(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tags            tagList
		wantR, wantLeft [2]uint16
	}{
		{tagList{"cycleway:left": "lane"}, [2]uint16{0, cycling * SpeedUnit}, [2]uint16{cycling * SpeedUnit, 0}},
		{tagList{"cycleway:right": "track"}, [2]uint16{cycling * SpeedUnit, 0}, [2]uint16{0, cycling * SpeedUnit}},
		{tagList{"cycleway:left": "lane", "driving_side": "left"}, [2]uint16{cycling * SpeedUnit, 0}, [2]uint16{cycling * SpeedUnit, 0}},
		{tagList{"cycleway:both": "lane"}, [2]uint16{cycling * SpeedUnit, cycling * SpeedUnit}, [2]uint16{cycling * SpeedUnit, cycling * SpeedUnit}},
	} {
		c.tags["highway"] = "busway"
		c.tags["foot"] = "no"
		w, ok := ReadWay(c.tags)
		if !ok || w.Speed[Bike] != c.wantR || w.BikeOnLeft != c.wantLeft {
			t.Errorf("%v: got %v, where traffic keeps left %v, want %v, %v", c.tags, w.Speed[Bike], w.BikeOnLeft, c.wantR, c.wantLeft)
		}
	}
}
