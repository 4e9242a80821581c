package profile

import (
	"math"
	"testing"
	"time"
)

func TestALimitIsReadInKilometresPerHour(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]float64{
		"50": 50, "50 km/h": 50, "30 mph": 48.3, "30mph": 48.3, "FR:urban": 50, "FR:rural": 80, "fr:motorway": 130, "FR:trunk": 110,
		"FR:zone30": 30, "FR:zone:30": 30, "FR:30": 30, "FR:living_street": 20, "walk": 5, "none": 140, "DE:motorway": 140,
		"CH:motorway": 120, "BE-VLG:rural": 70, "IT:urban": 50, "": 0, "signals": 0, "variable": 0, "FR:": 0, "rural": 0, "GB:nsl_single": 96.6,
	} {
		if got := math.Round(parseLimit(value)*10) / 10; got != want {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	}
}

func TestALengthIsReadInMetres(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]float64{
		"3.5": 3.5, "3,5": 3.5, "3.5 m": 3.5, "2": 2, "11'6\"": 3.51, "12'": 3.66, "10 ft": 3.05, "default": -1, "": -1, "below_default": -1,
	} {
		got, ok := parseMetres(value)
		if !ok {
			got = -1
		}
		if math.Abs(got-want) > 0.005 {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	}
}

func TestAWeightIsReadInTonnes(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]float64{"3.5": 3.5, "3.5 t": 3.5, "3500 kg": 3.5, "7000 lbs": 3.18, "none": -1} {
		got, ok := parseTonnes(value)
		if !ok {
			got = -1
		}
		if math.Abs(got-want) > 0.005 {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	}
}

func TestADurationIsReadInItsForms(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		"25": 25 * time.Minute, "0:10": 10 * time.Minute, "1:30": 90 * time.Minute, "01:30:30": 90*time.Minute + 30*time.Second,
		"PT15M": 15 * time.Minute, "PT1H30M": 90 * time.Minute, "PT45S": 45 * time.Second, "P1DT1H": 25 * time.Hour, "P2D": 48 * time.Hour,
		"": 0, "soon": 0, "-5": 0, "1:2:3:4": 0, "P": 0, "PT": 0, "P1Y": 0, "999:00": 0, "P99D": 0, "1h": 0,
	} {
		if got := parseDuration(value); got != want {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	}
}

func TestAFerryTakesItsDuration(t *testing.T) {
	t.Parallel()
	for tags, want := range map[string]time.Duration{
		"route=ferry duration=00:20": 20 * time.Minute, "route=ferry": 0, "highway=primary duration=00:20": 0,
		"route=shuttle_train duration=PT35M": 35 * time.Minute, "highway=primary bridge=movable duration=5": 5 * time.Minute,
	} {
		if w, ok := ReadWay(newTags(t, tags)); !ok || w.FerryDuration != want {
			t.Errorf("%s: got %v, %v, want %v", tags, w.FerryDuration, ok, want)
		}
	}
}

// FuzzReadWay holds that no value of a tag makes a speed that is out of bounds.
func FuzzReadWay(f *testing.F) {
	f.Add("maxspeed", "50 mph", "width", "3'")
	f.Add("duration", "P1DT", "oneway", "-1")
	f.Add("access", ";;", "maxheight", "1e9")
	f.Fuzz(func(t *testing.T, key1, value1, key2, value2 string) {
		w, ok := ReadWay(tagList{"highway": "primary", key1: value1, key2: value2})
		if ok && w.Speed == ([Modes][2]uint16{}) {
			t.Error("a road that nobody may use")
		}
		if w.FerryDuration < 0 {
			t.Errorf("got duration %v", w.FerryDuration)
		}
		ReadNode(tagList{"barrier": "height_restrictor", key1: value1, key2: value2})
	})
}
