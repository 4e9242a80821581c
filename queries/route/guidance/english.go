package guidance

import (
	"fmt"

	"lieudit/queries/route"
)

// englishArrival names the end of a leg: a stop on the way, or the destination.
func englishArrival(m route.Maneuver) string {
	if m.Stop > 0 {
		return fmt.Sprintf("You have reached stop %d", m.Stop) + bySide(m.Modifier, ", on the left", ", on the right")
	}
	return "You have arrived" + bySide(m.Modifier, ": your destination is on the left", ": your destination is on the right")
}

// englishText is the sentence of a step in English, as navigation systems say it. Names of roads stand as they are, without an
// article; numbers take one.
func englishText(s route.Step) string {
	m := s.Maneuver
	switch m.Type {
	case route.Depart:
		if m.Modifier == route.Backwards {
			return "Make a U-turn" + englishRoad(" onto ", s)
		}
		return "Head " + englishCompass[compassIndex(heading(s))] + englishRoad(" on ", s)
	case route.Arrive:
		return englishArrival(m)
	case route.UTurn:
		return "Make a U-turn" + englishRoad(" onto ", s)
	case route.TakeFerry:
		return "Take the ferry" + spaced(s.Name)
	case route.Roundabout:
		return englishRoundabout(s)
	case route.OnRamp:
		return englishRamp(s)
	case route.OffRamp:
		return englishExit(s)
	case route.Merge:
		return "Merge" + englishMerge(s)
	case route.Fork:
		return "At the fork, " + englishFork(s)
	case route.Continue:
		return englishContinue(s)
	}
	return englishTurn(s)
}

var englishCompass = [8]string{"north", "northeast", "east", "southeast", "south", "southwest", "west", "northwest"}

// englishDirections are what follows "turn".
var englishDirections = map[route.Modifier]string{
	route.Left: "left", route.Right: "right", route.SlightLeft: "slightly left", route.SlightRight: "slightly right",
	route.SharpLeft: "sharp left", route.SharpRight: "sharp right", route.Straight: "straight",
}

// englishPaths are roads without a name.
var englishPaths = map[route.PathKind]string{
	route.Track: "a path", route.CyclePath: "a cycle path", route.Walkway: "a walkway", route.Stairs: "the steps",
}

// englishRoad is the road of a step after a preposition: its name, otherwise its kind; "" if neither is known.
func englishRoad(preposition string, s route.Step) string {
	switch {
	case s.Ref != "" && (s.Name == "" || isMotorwayRef(s.Ref)):
		return preposition + "the " + spaceRef(s.Ref)
	case s.Name != "":
		return preposition + s.Name
	case s.PathKind != "" && s.Destinations == "":
		return preposition + englishPaths[s.PathKind]
	}
	return ""
}

// englishTowards is " towards Lyon, Grenoble", or " towards the A 6, Lyon" if the signs show a number too.
func englishTowards(destinations string) string {
	ref, places := splitDestinations(destinations)
	switch {
	case ref == "" && places == "":
		return ""
	case ref == "":
		return " towards " + places
	case places == "":
		return " towards the " + spaceRef(ref)
	}
	return " towards the " + spaceRef(ref) + ", " + places
}

// englishSide is " on the left" or " on the right".
func englishSide(m route.Modifier) string { return bySide(m, " on the left", " on the right") }

// englishTurn turns onto a road, or towards what the signs show.
func englishTurn(s route.Step) string {
	switch s.Maneuver.Modifier {
	case route.Straight:
		return englishContinue(s)
	case route.Backwards:
		return "Make a U-turn" + englishRoad(" onto ", s)
	}
	if s.PathKind == route.Stairs {
		return "Take the steps" + englishSide(s.Maneuver.Modifier)
	}
	text := "Turn " + englishDirections[s.Maneuver.Modifier]
	if road := englishRoad(" onto ", s); road != "" {
		return text + road
	}
	return text + englishTowards(s.Destinations)
}

// englishContinue continues: straight, or around a bend of the same road.
func englishContinue(s route.Step) string {
	if s.Maneuver.Modifier == route.Backwards {
		return "Make a U-turn" + englishRoad(" onto ", s)
	}
	if s.PathKind == route.Stairs {
		return "Take the steps" + englishSide(s.Maneuver.Modifier)
	}
	return "Continue " + englishDirections[s.Maneuver.Modifier] + englishRoad(" on ", s)
}

// englishFork keeps to a side. The text of the signs comes before the name of the road.
func englishFork(s route.Step) string {
	text, preposition := bySide(s.Maneuver.Modifier, "keep left", "keep right"), " onto "
	if text == "" {
		text, preposition = "continue straight", " on "
	}
	if s.Maneuver.IsSameRoad {
		preposition = " on "
	}
	if s.Destinations != "" {
		return text + englishTowards(s.Destinations)
	}
	return text + englishRoad(preposition, s)
}

// englishRamp names the side of a ramp and where it leads.
func englishRamp(s route.Step) string {
	text := "Take the ramp" + englishSide(s.Maneuver.Modifier)
	if s.Destinations != "" {
		return text + englishTowards(s.Destinations)
	}
	return text + englishRoad(" onto ", s)
}

// englishExit leaves out the side if it is the right one, as it nearly always is, and anything more is known about the exit.
func englishExit(s route.Step) string {
	side := englishSide(s.Maneuver.Modifier)
	if side == " on the right" && (s.Destinations != "" || s.Maneuver.Sign != "") {
		side = ""
	}
	if s.Maneuver.Sign != "" {
		return "Take exit " + s.Maneuver.Sign + side + englishTowards(s.Destinations)
	}
	return "Take the exit" + side + englishTowards(s.Destinations)
}

// englishMerge is what follows "Merge". The number of the road is not repeated if the signs show it too.
func englishMerge(s route.Step) string {
	if road := englishRoad(" onto ", s); road != "" {
		return road + englishTowards(withoutRef(s.Destinations, s.Ref))
	}
	return " into the traffic" + englishTowards(s.Destinations)
}

// englishOrdinals are the numbers of exits that are said in words.
var englishOrdinals = [...]string{"", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"}

// englishOrdinal writes numbers of exits. Nobody has seen a twenty-first one.
func englishOrdinal(n int) string {
	if n < len(englishOrdinals) {
		return englishOrdinals[n]
	}
	return fmt.Sprintf("%dth", n)
}

// englishRoundabout counts the exit; without one the way ends in the roundabout.
func englishRoundabout(s route.Step) string {
	if s.Maneuver.Exit <= 0 {
		return "Enter the roundabout"
	}
	text := "At the roundabout, take the " + englishOrdinal(s.Maneuver.Exit) + " exit"
	if road := englishRoad(" onto ", s); road != "" {
		return text + road
	}
	return text + englishTowards(s.Destinations)
}
