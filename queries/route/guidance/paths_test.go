package guidance

import (
	"slices"
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/profile"
)

func TestACrossingInPiecesIsOneManoeuvre(t *testing.T) {
	t.Parallel()
	const pieces = `
            e



             h



       g  d
         c
a---------b---f`
	const corner = `
           e


   g
   c
a--b---f`
	const ways = "\nabf name=Rue~Foch\ncg name=Rue~Verte\ndh name=Rue~Verte\nde name=Rue~Hoche\nbc name=- highway="
	const cornerWays = "\nabf name=Rue~Foch\ncg name=Rue~Verte\nce name=Rue~Hoche\nbc name=- highway="
	testSituations(t, []situation{
		{
			rule: "two pieces on foot", mode: profile.Foot, drawing: pieces, ways: "cd name=- highway=footway" + ways + "footway",
			paths: map[string]string{"abcde": "tourner gauche Rue Hoche"},
		},
		{
			rule: "two pieces by bike", mode: profile.Bike, drawing: pieces, ways: "cd name=- highway=cycleway" + ways + "cycleway",
			paths: map[string]string{"abcde": "tourner gauche Rue Hoche"},
		},
		{
			rule: "one piece", mode: profile.Foot, drawing: corner, ways: cornerWays + "footway",
			paths: map[string]string{"abce": "tourner legerement_gauche Rue Hoche"},
		},
		{
			rule: "not a street", mode: profile.Foot, drawing: corner, ways: cornerWays + "residential",
			paths: map[string]string{"abce": "tourner gauche; tourner droite Rue Hoche"},
		},
		{
			rule: "not a flight of steps", mode: profile.Foot, drawing: corner, ways: cornerWays + "steps",
			paths: map[string]string{"abce": "tourner gauche; tourner droite Rue Hoche"},
		},
		{
			rule: "not where it has a name", mode: profile.Foot, drawing: corner, ways: cornerWays + "footway name=Passage~Hoche",
			paths: map[string]string{"abce": "tourner gauche Passage Hoche; tourner droite Rue Hoche"},
		},
	})
}

func TestAFlightOfStepsIsTold(t *testing.T) {
	t.Parallel()
	testSituations(t, []situation{
		{
			rule: "where the way is obvious", mode: profile.Foot,
			drawing: "a------b--c------d",
			ways:    "ab name=Rue~Foch\nbc name=- highway=steps\ncd name=Rue~Foch",
			paths:   map[string]string{"abcd": "continuer tout_droit"},
		},
		{
			rule: "where a turn is near", mode: profile.Foot,
			drawing: `
    d
    c
a---b---e`,
			ways:  "abe name=Rue~Foch\nbc name=- highway=footway\ncd name=- highway=steps",
			paths: map[string]string{"abcd": "tourner gauche; continuer tout_droit"},
		},
		{
			rule: "once", mode: profile.Bike,
			drawing: "a------b------c------d",
			ways:    "ab name=Rue~Foch\nbcd name=- highway=steps",
			paths:   map[string]string{"abcd": "continuer tout_droit"},
		},
	})
}

func TestARoadWithoutANameIsOfAKindOnFootAndByBike(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode profile.Mode
		tags string
		want route.PathKind
	}{
		{profile.Foot, "highway=path name=-", route.Track},
		{profile.Bike, "highway=track name=-", route.Track},
		{profile.Bike, "highway=cycleway name=-", route.CyclePath},
		{profile.Foot, "highway=footway name=-", route.Walkway},
		{profile.Foot, "highway=pedestrian name=-", route.Walkway},
		{profile.Foot, "highway=steps name=-", route.Stairs},
		{profile.Foot, "highway=residential name=-", ""},
		{profile.Foot, "highway=path name=Sente~Foch", ""},
		{profile.Foot, "highway=track name=- ref=D~12", ""},
		{profile.Car, "highway=track motor_vehicle=yes name=-", ""},
	} {
		town := newTown(t, c.mode, "a-------b", "ab "+c.tags)
		steps := Steps(c.mode.Route(), town.stretches(t, "ab"))
		got := []route.PathKind{steps[0].PathKind, steps[1].PathKind}
		if want := []route.PathKind{c.want, ""}; !slices.Equal(got, want) {
			t.Errorf("%v, %s: got %q, want %q", c.mode, c.tags, got, want)
		}
	}
}
