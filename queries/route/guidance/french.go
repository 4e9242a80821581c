package guidance

import (
	"fmt"
	"strconv"
	"strings"

	"lieudit/queries/route"
)

// roadOf is the road of a step in French, and whether it has a name at all.
func roadOf(s route.Step) (frenchName, bool) {
	switch {
	case s.Ref != "" && (s.Name == "" || isMotorwayRef(s.Ref)):
		return newFrenchRef(s.Ref), true
	case s.Name != "":
		return newFrenchName(s.Name), true
	}
	return frenchName{}, false
}

// frenchPaths are the phrases for being on roads without a name.
var frenchPaths = map[route.PathKind]string{
	route.Track: " sur un chemin", route.CyclePath: " sur une piste cyclable", route.Walkway: " sur un passage",
	route.Stairs: " par les escaliers",
}

// on is " sur le boulevard Foch", " dans la rue Foch", or for a road without a name " sur un chemin", or "" if nothing is known.
func on(s route.Step) string {
	name, ok := roadOf(s)
	switch {
	case !ok:
		return frenchPaths[s.PathKind]
	case name.place == onRoad || name.place == onSquare:
		return " sur " + name.text
	}
	return " dans " + name.text
}

// exitOnto is what an exit of a roundabout leads to: a road, otherwise the text of its signs.
func exitOnto(s route.Step) string {
	name, ok := roadOf(s)
	switch {
	case !ok && s.Destinations != "":
		return frenchTowards(s.Destinations)
	case !ok:
		return frenchPaths[s.PathKind]
	case name.place == inArea || name.place == inLane:
		return " dans " + name.text
	}
	return " sur " + name.text
}

// signKinds are the words with which signs name destinations other than towns, with their articles.
var signKinds = map[string]string{
	"aéroport": "l'aéroport", "gare": "la gare", "hôpital": "l'hôpital", "centre": "le centre", "centre-ville": "le centre-ville",
	"centre ville": "le centre-ville", "centre commercial": "le centre commercial", "centre hospitalier": "le centre hospitalier",
	"université": "l'université", "stade": "le stade", "plage": "la plage", "plages": "les plages", "technopole": "la technopole",
	"campus": "le campus", "péage": "le péage",
}

// frenchPlaces are the places of a sign, with their articles. Towns have no article.
func frenchPlaces(places string) string {
	list := strings.Split(places, ", ")
	for i, place := range list {
		list[i] = frenchPlace(place)
	}
	return strings.Join(list, ", ")
}

// frenchPlace is one place of a sign: a station, an airport, a street, or a town.
func frenchPlace(place string) string {
	if all, ok := signKinds[strings.ToLower(place)]; ok {
		return all
	}
	head, tail, _ := strings.Cut(place, " ")
	if kind, ok := signKinds[strings.ToLower(head)]; ok {
		return kind + spaced(tail)
	}
	if name := newFrenchName(place); name.hasKind {
		return name.text
	}
	return place
}

// frenchTowards is " vers Lyon, Grenoble", or " vers l'A 6, direction Lyon" if the signs show a number too.
func frenchTowards(destinations string) string {
	ref, places := splitDestinations(destinations)
	switch {
	case ref == "" && places == "":
		return ""
	case ref == "" && strings.HasSuffix(strings.ToLower(places), "directions"): // toutes directions
		return ", " + strings.ToLower(places)
	case ref == "":
		return " vers " + frenchPlaces(places)
	case places == "":
		return " vers " + newFrenchRef(ref).text
	}
	return " vers " + newFrenchRef(ref).text + ", direction " + places
}

// frenchArrival names the end of a leg: a stop on the way, or the destination.
func frenchArrival(m route.Maneuver) string {
	if m.Stop > 0 {
		return fmt.Sprintf("Vous êtes arrivé à l'étape %d", m.Stop) + bySide(m.Modifier, ", sur la gauche", ", sur la droite")
	}
	return "Vous êtes arrivé" + bySide(m.Modifier, " : votre destination est sur la gauche", " : votre destination est sur la droite")
}

// frenchText is the sentence of a step in French, in the imperative, as a passenger who holds the map says it.
func frenchText(s route.Step) string {
	switch s.Maneuver.Type {
	case route.Depart:
		if s.Maneuver.Modifier == route.Backwards {
			return "Faites demi-tour" + on(s)
		}
		return "Partez vers " + frenchCompass[compassIndex(heading(s))] + on(s)
	case route.Arrive:
		return frenchArrival(s.Maneuver)
	case route.UTurn:
		return "Faites demi-tour" + on(s)
	case route.TakeFerry:
		return "Prenez le bac" + frenchFerry(s.Name)
	case route.Roundabout:
		return frenchRoundabout(s)
	case route.OnRamp:
		return frenchRamp(s)
	case route.OffRamp:
		return frenchExit(s)
	case route.Merge:
		return frenchMerge(s)
	case route.Fork:
		return frenchFork(s)
	case route.Continue:
		return frenchContinue(s)
	}
	return frenchTurn(s)
}

var frenchCompass = [8]string{"le nord", "le nord-est", "l'est", "le sud-est", "le sud", "le sud-ouest", "l'ouest", "le nord-ouest"}

// frenchWay is " à gauche" or " à droite", "" for straight on.
func frenchWay(m route.Modifier) string { return bySide(m, " à gauche", " à droite") }

// frenchDirections are the adverbs of the directions.
var frenchDirections = map[route.Modifier]string{
	route.Straight: " tout droit", route.Left: " à gauche", route.Right: " à droite",
	route.SlightLeft: " légèrement à gauche", route.SlightRight: " légèrement à droite",
	route.SharpLeft: " franchement à gauche", route.SharpRight: " franchement à droite",
}

// frenchTurn takes a way at a plain turn ("Prenez à gauche la rue Foch"), and turns onto it if the turn is slight or sharp, or if
// French does not "take" such a way ("Tournez à gauche sur la place Foch").
func frenchTurn(s route.Step) string {
	m := s.Maneuver.Modifier
	name, ok := roadOf(s)
	switch {
	case m == route.Straight:
		return frenchContinue(s)
	case m == route.Backwards:
		return "Faites demi-tour" + on(s)
	case s.PathKind == route.Stairs:
		return "Prenez les escaliers" + frenchWay(m)
	case !ok && s.Destinations != "":
		return "Tournez" + frenchDirections[m] + frenchTowards(s.Destinations)
	case name.isWay() && (m == route.Left || m == route.Right):
		return "Prenez" + frenchDirections[m] + " " + name.text
	}
	return "Tournez" + frenchDirections[m] + on(s)
}

// frenchContinue continues: straight, or around a bend of the same road.
func frenchContinue(s route.Step) string {
	if s.Maneuver.Modifier == route.Backwards {
		return "Faites demi-tour" + on(s)
	}
	if s.PathKind == route.Stairs {
		return "Prenez les escaliers" + frenchWay(s.Maneuver.Modifier)
	}
	return "Continuez" + frenchDirections[s.Maneuver.Modifier] + on(s)
}

// frenchFork names the road, or what the signs show.
func frenchFork(s route.Step) string {
	m := s.Maneuver.Modifier
	name, ok := roadOf(s)
	way := frenchWay(m)
	switch {
	case s.Destinations != "" && way == "":
		return "À la bifurcation, continuez tout droit" + frenchTowards(s.Destinations)
	case s.Destinations != "":
		return "À la bifurcation, prenez" + way + frenchTowards(s.Destinations)
	case way == "":
		return "À la bifurcation, continuez tout droit" + on(s)
	case s.Maneuver.IsSameRoad:
		return "À la bifurcation, restez" + way + on(s)
	case ok && name.isWay():
		return "À la bifurcation, prenez" + way + " " + name.text
	}
	return "À la bifurcation, prenez" + way + on(s)
}

// frenchRamp says where a ramp leads: by its signs, its own name, or the road that it belongs to.
func frenchRamp(s route.Step) string {
	way := frenchWay(s.Maneuver.Modifier)
	name, ok := roadOf(s)
	switch {
	case s.Destinations != "":
		return "Prenez" + way + " la bretelle" + frenchTowards(s.Destinations)
	case strings.HasPrefix(name.text, "la bretelle"):
		return "Prenez" + way + " " + name.text
	case ok:
		return "Prenez" + way + " la bretelle vers " + name.text
	}
	return "Prenez la bretelle" + way
}

// frenchExit names the side of an exit only if it is on the left, or if nothing more is known about it.
func frenchExit(s route.Step) string {
	if s.Maneuver.Sign == "" && s.Destinations == "" {
		return "Prenez la sortie" + frenchWay(s.Maneuver.Modifier)
	}
	return "Prenez" + bySide(s.Maneuver.Modifier, " à gauche", "") + " la sortie" + spaced(s.Maneuver.Sign) + frenchTowards(s.Destinations)
}

// frenchMerge joins the traffic of a road. The number of the road is not repeated if the signs show it too.
func frenchMerge(s route.Step) string {
	if _, ok := roadOf(s); !ok {
		return "Insérez-vous dans la circulation" + frenchTowards(s.Destinations)
	}
	return "Insérez-vous" + on(s) + frenchTowards(withoutRef(s.Destinations, s.Ref))
}

// frenchFerry is what follows "le bac": its name, without the word itself.
func frenchFerry(name string) string {
	const word = "Bac "
	if len(name) > len(word) && strings.EqualFold(name[:len(word)], word) {
		name = name[len(word):]
	}
	return spaced(name)
}

// frenchOrdinals are the numbers of exits that are said in words.
var frenchOrdinals = [...]string{
	"", "première", "deuxième", "troisième", "quatrième", "cinquième", "sixième", "septième", "huitième", "neuvième",
}

func frenchOrdinal(n int) string {
	if n < len(frenchOrdinals) {
		return frenchOrdinals[n]
	}
	return strconv.Itoa(n) + "e"
}

// frenchRoundabout counts the exit; without one the way ends in the roundabout.
func frenchRoundabout(s route.Step) string {
	if s.Maneuver.Exit <= 0 {
		return "Engagez-vous dans le rond-point"
	}
	return "Au rond-point, prenez la " + frenchOrdinal(s.Maneuver.Exit) + " sortie" + exitOnto(s)
}
