package guidance

import (
	"strconv"
	"strings"

	"lieudit/queries/route"
)

// place says how a kind of way is spoken of.
type place uint8

const (
	onRoad   place = iota // one goes "sur" it, and takes it as a way
	inStreet              // one goes "dans" it, but takes an exit "sur" it
	inLane                // one goes "dans" it, from an exit too
	onSquare              // one goes "sur" it, and does not take it as a way
	inArea                // one goes "dans" it, and does not take it as a way
)

// isWay tells whether one can "prendre" it.
func (p place) isWay() bool { return p < onSquare }

// wayKind is how French speaks of a kind of way: its article, and where one is on it.
type wayKind struct {
	article string
	place   place
}

// wayKinds are the kinds of ways by the words with which a name begins, in small letters. Longer ones come first in a name.
var wayKinds = map[string]wayKind{
	// la, l' (feminine)
	"rue": {"la ", inStreet}, "petite rue": {"la ", inStreet}, "ruelle": {"la ", inLane}, "venelle": {"la ", inLane},
	"route": {"la ", onRoad}, "vieille route": {"la ", onRoad}, "petite route": {"la ", onRoad}, "nouvelle route": {"la ", onRoad},
	"ancienne route": {"l'", onRoad}, "route départementale": {"la ", onRoad}, "route nationale": {"la ", onRoad},
	"route forestière": {"la ", onRoad}, "avenue": {"l'", onRoad}, "allée": {"l'", inStreet}, "impasse": {"l'", inLane},
	"place": {"la ", onSquare}, "placette": {"la ", onSquare}, "esplanade": {"l'", onSquare}, "promenade": {"la ", onRoad},
	"voie": {"la ", onRoad}, "voie communale": {"la ", onRoad}, "voie verte": {"la ", onRoad}, "voie romaine": {"la ", onRoad},
	"rocade": {"la ", onRoad}, "autoroute": {"l'", onRoad}, "bretelle": {"la ", onRoad}, "chaussée": {"la ", onRoad},
	"montée": {"la ", onRoad}, "côte": {"la ", onRoad}, "descente": {"la ", onRoad}, "rampe": {"la ", onRoad}, "corniche": {"la ", onRoad},
	"traverse": {"la ", inLane}, "sente": {"la ", onRoad}, "levée": {"la ", onRoad}, "digue": {"la ", onRoad}, "piste": {"la ", onRoad},
	"passerelle": {"la ", onRoad}, "draille": {"la ", onRoad}, "drève": {"la ", onRoad}, "boucle": {"la ", onRoad},
	"galerie": {"la ", inArea}, "traboule": {"la ", inArea}, "cour": {"la ", inArea}, "villa": {"la ", inArea}, "cité": {"la ", inArea},
	"résidence": {"la ", inArea}, "zone": {"la ", inArea}, "zone artisanale": {"la ", inArea}, "zone industrielle": {"la ", inArea},
	"zone d'activités": {"la ", inArea}, "ferme": {"la ", inArea},
	// le, l' (masculine)
	"boulevard": {"le ", onRoad}, "chemin": {"le ", onRoad}, "petit chemin": {"le ", onRoad}, "vieux chemin": {"le ", onRoad},
	"ancien chemin": {"l'", onRoad}, "chemin rural": {"le ", onRoad}, "chemin vicinal": {"le ", onRoad}, "chemin communal": {"le ", onRoad},
	"quai": {"le ", onRoad}, "cours": {"le ", onRoad}, "mail": {"le ", onRoad}, "pont": {"le ", onRoad}, "viaduc": {"le ", onRoad},
	"tunnel": {"le ", inLane}, "passage": {"le ", inLane}, "sentier": {"le ", onRoad}, "faubourg": {"le ", onRoad},
	"cul-de-sac": {"le ", inLane}, "escalier": {"l'", onRoad}, "périphérique": {"le ", onRoad}, "échangeur": {"l'", onRoad},
	"rond-point": {"le ", onSquare}, "carrefour": {"le ", onSquare}, "parvis": {"le ", onSquare}, "port": {"le ", onSquare},
	"rempart": {"le ", onRoad}, "square": {"le ", inArea}, "parc": {"le ", inArea}, "parc d'activités": {"le ", inArea},
	"jardin": {"le ", inArea}, "hameau": {"le ", inArea}, "lotissement": {"le ", inArea}, "clos": {"le ", inArea},
	"domaine": {"le ", inArea}, "quartier": {"le ", inArea}, "village": {"le ", inArea}, "parking": {"le ", onSquare},
	// les
	"allées": {"les ", onRoad}, "quais": {"les ", onRoad}, "escaliers": {"les ", onRoad}, "marches": {"les ", onRoad},
	"remparts": {"les ", onRoad}, "arcades": {"les ", onRoad}, "berges": {"les ", onRoad}, "halles": {"les ", inArea},
}

// properKinds are names whose first words take an article but keep their capitals.
var properKinds = map[string]wayKind{
	"grande rue": {"la ", inStreet}, "grand rue": {"la ", inStreet}, "grand'rue": {"la ", inStreet}, "grand-rue": {"la ", inStreet},
	"grand' rue": {"la ", inStreet}, "haute rue": {"la ", inStreet}, "basse rue": {"la ", inStreet}, "grande place": {"la ", onSquare},
	"grand place": {"la ", onSquare}, "grand'place": {"la ", onSquare}, "grand-place": {"la ", onSquare},
}

// articles are the words for which a name that begins with one needs none: La Canebière.
var articles = []string{"le ", "la ", "les ", "l'", "l’"}

// mostKindWords is how many words a kind of way has at most.
const mostKindWords = 2

// frenchName is a name as it stands in a sentence.
type frenchName struct {
	text  string
	place place
	// hasKind says that the name begins with a kind of way. One can take such a way; other names need a preposition.
	hasKind bool
}

func (n frenchName) isWay() bool { return n.hasKind && n.place.isWay() }

// newFrenchName puts the article before a name and writes its kind in small letters. A name of no known kind stands as it is.
func newFrenchName(name string) frenchName {
	words := strings.Fields(name)
	for n := min(mostKindWords, len(words)); n > 0; n-- {
		head, tail := strings.Join(words[:n], " "), strings.Join(words[n:], " ")
		lower := strings.ReplaceAll(strings.ToLower(head), "’", "'")
		if kind, ok := properKinds[lower]; ok {
			return frenchName{kind.article + strings.TrimSpace(head+" "+tail), kind.place, true}
		}
		if kind, ok := wayKinds[lower]; ok {
			return frenchName{kind.article + strings.TrimSpace(strings.ToLower(head)+" "+tail), kind.place, true}
		}
	}
	for _, article := range articles {
		if n := len(article); len(name) > n && strings.EqualFold(name[:n], article) {
			return frenchName{text: article + name[n:]}
		}
	}
	return frenchName{text: name}
}

// newFrenchRef is the number of a road with its article: la D 806, l'A 6.
func newFrenchRef(ref string) frenchName {
	ref = spaceRef(ref)
	if strings.IndexAny(ref, "AEIOU") == 0 {
		return frenchName{"l'" + ref, onRoad, true}
	}
	return frenchName{"la " + ref, onRoad, true}
}

// spaceRef returns the first number of a list, with a space between letters and digits.
func spaceRef(ref string) string {
	ref, _, _ = strings.Cut(ref, ";")
	ref = strings.TrimSpace(ref)
	at := strings.IndexAny(ref, "0123456789")
	if at <= 0 || ref[at-1] == ' ' || ref[at-1] == '-' {
		return ref
	}
	return ref[:at] + " " + ref[at:]
}

// isMotorwayRef tells whether a number is that of a motorway: it is better known than the motorway's name.
func isMotorwayRef(ref string) bool {
	ref = spaceRef(ref)
	return len(ref) > 2 && ref[0] == 'A' && ref[1] == ' '
}

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

// on is " sur le boulevard Foch", " dans la rue Foch", or "" for a road without a name.
func on(s route.Step) string {
	name, ok := roadOf(s)
	switch {
	case !ok:
		return ""
	case name.place == onRoad || name.place == onSquare:
		return " sur " + name.text
	}
	return " dans " + name.text
}

// exitOnto is what an exit of a roundabout leads to: a road, or else what its signs show.
func exitOnto(s route.Step) string {
	name, ok := roadOf(s)
	switch {
	case !ok:
		return frenchTowards(s.Destinations)
	case name.place == inArea || name.place == inLane:
		return " dans " + name.text
	}
	return " sur " + name.text
}

// signKinds are the words with which signs name what is no town, with their articles.
var signKinds = map[string]string{
	"aéroport": "l'aéroport", "gare": "la gare", "hôpital": "l'hôpital", "centre": "le centre", "centre-ville": "le centre-ville",
	"centre ville": "le centre-ville", "centre commercial": "le centre commercial", "centre hospitalier": "le centre hospitalier",
	"université": "l'université", "stade": "le stade", "plage": "la plage", "plages": "les plages", "technopole": "la technopole",
	"campus": "le campus", "péage": "le péage",
}

// frenchPlaces are the places of a sign, with the articles that they want. Towns want none.
func frenchPlaces(places string) string {
	list := strings.Split(places, ", ")
	for i, place := range list {
		list[i] = frenchPlace(place)
	}
	return strings.Join(list, ", ")
}

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

// frenchTowards is " vers Lyon, Grenoble", or " vers l'A 6, direction Lyon" where the signs show a number too.
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

// frenchText is the sentence of a step in French.
func frenchText(s route.Step) string {
	switch s.Maneuver.Type {
	case route.Depart:
		return "Partez vers " + frenchCompass[compassIndex(s.Maneuver.BearingAfter)] + on(s)
	case route.Arrive:
		return "Vous êtes arrivé" + bySide(s.Maneuver.Modifier, ", votre destination est à gauche", ", votre destination est à droite")
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

// frenchTurn takes a way at a plain turn, and turns onto it where the turn is slight or sharp.
func frenchTurn(s route.Step) string {
	m := s.Maneuver.Modifier
	name, ok := roadOf(s)
	switch {
	case m == route.Straight:
		return frenchContinue(s)
	case m == route.Backwards:
		return "Faites demi-tour" + on(s)
	case !ok:
		return "Tournez" + frenchDirections[m] + frenchTowards(s.Destinations)
	case name.isWay() && (m == route.Left || m == route.Right):
		return "Prenez" + frenchDirections[m] + " " + name.text
	}
	return "Tournez" + frenchDirections[m] + on(s)
}

func frenchContinue(s route.Step) string {
	if s.Maneuver.Modifier == route.Backwards {
		return "Faites demi-tour" + on(s)
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
	case ok && name.isWay():
		return "À la bifurcation, prenez" + way + " " + name.text
	}
	return "À la bifurcation, prenez" + way + on(s)
}

// frenchRamp tells the side of a ramp behind it where nothing else is known of it.
func frenchRamp(s route.Step) string {
	way := frenchWay(s.Maneuver.Modifier)
	if s.Destinations == "" {
		return "Prenez la bretelle" + way
	}
	return "Prenez" + way + " la bretelle" + frenchTowards(s.Destinations)
}

// frenchExit tells the side of an exit only where it is on the left, or where nothing else is known of it.
func frenchExit(s route.Step) string {
	if s.Maneuver.Sign == "" && s.Destinations == "" {
		return "Prenez la sortie" + frenchWay(s.Maneuver.Modifier)
	}
	return "Prenez" + bySide(s.Maneuver.Modifier, " à gauche", "") + " la sortie" + spaced(s.Maneuver.Sign) + frenchTowards(s.Destinations)
}

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

var frenchOrdinals = [...]string{"", "première", "deuxième", "troisième", "quatrième", "cinquième", "sixième", "septième", "huitième", "neuvième"}

func frenchOrdinal(n int) string {
	if n < len(frenchOrdinals) {
		return frenchOrdinals[n]
	}
	return strconv.Itoa(n) + "e"
}

func frenchRoundabout(s route.Step) string {
	if s.Maneuver.Exit <= 0 {
		return "Engagez-vous dans le rond-point"
	}
	return "Au rond-point, prenez la " + frenchOrdinal(s.Maneuver.Exit) + " sortie" + exitOnto(s)
}
