package guidance

import (
	"fmt"
	"strings"
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/profile"
	"lieudit/schemas/geo"
)

// TestTheWayBackOnTheOtherCarriagewayIsOneUTurn draws the carriageways of a road with all that may lie between them, on both sides of
// the road.
func TestTheWayBackOnTheOtherCarriagewayIsOneUTurn(t *testing.T) {
	t.Parallel()
	roads := map[string]string{
		"a name": "name=Boulevard~Foch highway=primary", "a number": "name=- ref=D~7 highway=primary", "both": "name=Rue~Foch ref=D~7 highway=secondary",
		"nothing": "name=- highway=primary", "nothing, fast": "name=- highway=trunk",
	}
	gaps := map[string]string{
		"a street": "bc name=Rue~Hoche", "a street that goes on": "xbcy name=Rue~Hoche", "a way without a name": "bc name=-",
		"a link": "bc name=- highway=primary_link", "a link one way": "cb name=- highway=primary_link oneway=yes",
		"a service road": "bc name=- highway=service", "a street in two pieces": "bzc name=Rue~Hoche",
	}
	for road, roadTags := range roads {
		for gap, gapTags := range gaps {
			for metres := 1; metres <= 3; metres++ {
				drawing := "     x\nf----b------g\n" + strings.Repeat("     z\n", metres) + "h----c------i\n     y"
				path, ways := "hcbf", "gbf "+roadTags+" oneway=yes\nhci "+roadTags+" oneway=yes\n"+gapTags
				if strings.Contains(gapTags, "z") {
					path = "hczbf"
				}
				name := fmt.Sprintf("carriageways of %s, %s between, %d m", road, gap, 10*(metres+1))
				checkUTurn(t, name, newTown(t, profile.Car, drawing, ways), path)
				turned := "     x\nf----c------g\n" + strings.Repeat("     z\n", metres) + "h----b------i\n     y"
				ways = "fcg " + roadTags + " oneway=yes\nibh " + roadTags + " oneway=yes\n" + gapTags
				checkUTurn(t, name+", where traffic keeps left", newTown(t, profile.Car, turned, ways), strings.Replace(strings.Replace(path, "h", "f", 1), "bf", "bh", 1))
			}
		}
	}
}

func TestTwoTurnsAroundABlockAreNoUTurn(t *testing.T) {
	t.Parallel()
	drawing := "f----b------g\n\n\n\nh----c------i"
	for name, ways := range map[string]string{
		"aisles of a car park":  "gbf name=- highway=service\nhci name=- highway=service\nbc name=- highway=service",
		"streets without names": "gbf name=- highway=residential\nhci name=- highway=residential\nbc name=-",
		"two named main roads":  "gbf name=Rue~Foch highway=primary oneway=yes\nhci name=Rue~Hoche highway=primary oneway=yes\nbc",
		"roads of two classes":  "gbf name=- highway=primary oneway=yes\nhci name=- highway=tertiary oneway=yes\nbc",
	} {
		for _, s := range Steps(route.Car, newTown(t, profile.Car, drawing, ways).stretches(t, "hcbf")) {
			if s.Maneuver.Type == route.UTurn {
				t.Errorf("%s: a U-turn", name)
			}
		}
	}
}

func checkUTurn(t *testing.T, name string, town *town, path string) {
	t.Helper()
	var told []string
	for _, s := range Steps(route.Car, town.stretches(t, path)) {
		told = append(told, string(s.Maneuver.Type))
	}
	if got := strings.Join(told, ", "); got != "depart, demi_tour, arrivee" {
		t.Errorf("%s: %s", name, got)
	}
}

func TestALegThatGoesBackSaysSo(t *testing.T) {
	t.Parallel()
	leg := func(letters string) route.Leg {
		town := newTown(t, profile.Car, "a-------b-------c\n\n\n        d", "abc name=Rue~Foch\nbd name=Rue~Hoche")
		return route.Leg{Steps: Steps(route.Car, town.stretches(t, letters))}
	}
	for _, tt := range []struct {
		first, second   string
		french, english string
	}{
		{"ab", "ba", "Faites demi-tour dans la rue Foch", "Make a U-turn onto Rue Foch"},
		{"abd", "db", "Faites demi-tour dans la rue Hoche", "Make a U-turn onto Rue Hoche"},
		{"ab", "bc", "Partez vers l'est dans la rue Foch", "Head east on Rue Foch"},
		{"ab", "bd", "Partez vers le sud dans la rue Hoche", "Head south on Rue Hoche"},
	} {
		legs := []route.Leg{leg(tt.first), leg(tt.second)}
		MarkTurnsBack(legs)
		s := legs[1].Steps[0]
		if french, english := Text(French, s), Text(English, s); s.Maneuver.Type != route.Depart || french != tt.french || english != tt.english {
			t.Errorf("%s, %s: got %s, %q, %q", tt.first, tt.second, s.Maneuver.Type, french, english)
		}
		if first := Text(French, legs[0].Steps[0]); first != "Partez vers l'est dans la rue Foch" {
			t.Errorf("the first leg begins with %q", first)
		}
	}
	still := []route.Leg{{}, leg("ab"), {Steps: []route.Step{{Geometry: []geo.Point{{}, {}}}}}, leg("ba")}
	MarkTurnsBack(still)
	if got := still[3].Steps[0].Maneuver.Modifier; got != "" {
		t.Errorf("behind a leg without a length: %q", got)
	}
}
