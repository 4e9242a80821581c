package guidance

import "strings"

// place is how French speaks of being on a kind of way.
type place uint8

const (
	onRoad   place = iota // one goes "sur" it, and takes it as a way
	inStreet              // one goes "dans" it, but takes an exit "sur" it
	inLane                // one goes "dans" it, from an exit too
	onSquare              // one goes "sur" it, and does not take it as a way
	inArea                // one goes "dans" it, and does not take it as a way
)

// isWay reports whether one can "prendre" it.
func (p place) isWay() bool { return p < onSquare }

// wayKind is how French speaks of a kind of way: its article, and where one is on it.
type wayKind struct {
	article string
	place   place
}

// wayKinds are the kinds of ways by the words with which a name begins, in small letters. The longer of two matches wins.
var wayKinds = map[string]wayKind{
	"accès":                {"l'", onRoad},
	"aire":                 {"l'", onSquare},
	"allée":                {"l'", inStreet},
	"allées":               {"les ", onRoad},
	"arcades":              {"les ", onRoad},
	"autoroute":            {"l'", onRoad},
	"avenue":               {"l'", onRoad},
	"berges":               {"les ", onRoad},
	"boucle":               {"la ", onRoad},
	"boulevard":            {"le ", onRoad},
	"bretelle":             {"la ", onRoad},
	"carrefour":            {"le ", onSquare},
	"chaussée":             {"la ", onRoad},
	"chemin":               {"le ", onRoad},
	"chemin communal":      {"le ", onRoad},
	"chemin rural":         {"le ", onRoad},
	"chemin vicinal":       {"le ", onRoad},
	"cité":                 {"la ", inArea},
	"clos":                 {"le ", inArea},
	"contournement":        {"le ", onRoad},
	"corniche":             {"la ", onRoad},
	"cour":                 {"la ", inArea},
	"cours":                {"le ", onRoad},
	"côte":                 {"la ", onRoad},
	"cul-de-sac":           {"le ", inLane},
	"descente":             {"la ", onRoad},
	"déviation":            {"la ", onRoad},
	"digue":                {"la ", onRoad},
	"domaine":              {"le ", inArea},
	"draille":              {"la ", onRoad},
	"drève":                {"la ", onRoad},
	"échangeur":            {"l'", onRoad},
	"entrée":               {"l'", onRoad},
	"escalier":             {"l'", onRoad},
	"escaliers":            {"les ", onRoad},
	"esplanade":            {"l'", onSquare},
	"faubourg":             {"le ", onRoad},
	"ferme":                {"la ", inArea},
	"galerie":              {"la ", inArea},
	"halles":               {"les ", inArea},
	"hameau":               {"le ", inArea},
	"impasse":              {"l'", inLane},
	"jardin":               {"le ", inArea},
	"levée":                {"la ", onRoad},
	"liaison":              {"la ", onRoad},
	"lotissement":          {"le ", inArea},
	"mail":                 {"le ", onRoad},
	"marches":              {"les ", onRoad},
	"montée":               {"la ", onRoad},
	"parc":                 {"le ", inArea},
	"parc d'activités":     {"le ", inArea},
	"parking":              {"le ", onSquare},
	"parvis":               {"le ", onSquare},
	"passage":              {"le ", inLane},
	"passerelle":           {"la ", onRoad},
	"périphérique":         {"le ", onRoad},
	"piste":                {"la ", onRoad},
	"piste cyclable":       {"la ", onRoad},
	"place":                {"la ", onSquare},
	"placette":             {"la ", onSquare},
	"pont":                 {"le ", onRoad},
	"port":                 {"le ", onSquare},
	"promenade":            {"la ", onRoad},
	"quai":                 {"le ", onRoad},
	"quais":                {"les ", onRoad},
	"quartier":             {"le ", inArea},
	"rampe":                {"la ", onRoad},
	"rempart":              {"le ", onRoad},
	"remparts":             {"les ", onRoad},
	"résidence":            {"la ", inArea},
	"rocade":               {"la ", onRoad},
	"rond-point":           {"le ", onSquare},
	"route":                {"la ", onRoad},
	"route départementale": {"la ", onRoad},
	"route forestière":     {"la ", onRoad},
	"route nationale":      {"la ", onRoad},
	"rue":                  {"la ", inStreet},
	"ruelle":               {"la ", inLane},
	"sente":                {"la ", onRoad},
	"sentier":              {"le ", onRoad},
	"sortie":               {"la ", onRoad},
	"square":               {"le ", inArea},
	"traboule":             {"la ", inArea},
	"traverse":             {"la ", inLane},
	"tunnel":               {"le ", inLane},
	"venelle":              {"la ", inLane},
	"viaduc":               {"le ", onRoad},
	"villa":                {"la ", inArea},
	"village":              {"le ", inArea},
	"voie":                 {"la ", onRoad},
	"voie communale":       {"la ", onRoad},
	"voie romaine":         {"la ", onRoad},
	"voie verte":           {"la ", onRoad},
	"zone":                 {"la ", inArea},
	"zone artisanale":      {"la ", inArea},
	"zone d'activités":     {"la ", inArea},
	"zone industrielle":    {"la ", inArea},
}

// properKinds are kinds that keep their capitals.
var properKinds = map[string]wayKind{
	"grand'rue":      {"la ", inStreet},
	"grand-rue":      {"la ", inStreet},
	"grand rue":      {"la ", inStreet},
	"grand' rue":     {"la ", inStreet},
	"grand'place":    {"la ", onSquare},
	"grand-place":    {"la ", onSquare},
	"grand place":    {"la ", onSquare},
	"grand'route":    {"la ", onRoad},
	"grand-route":    {"la ", onRoad},
	"champs-élysées": {"les ", onRoad},
}

// adjectives stand before a kind of way and decide its article. Proper ones make a proper name of it, which keeps its capitals:
// la Grande Rue, but le vieux chemin.
var adjectives = map[string]struct {
	article  string
	isProper bool
}{
	"ancien":   {"l'", false},
	"ancienne": {"l'", false},
	"bas":      {"le ", true},
	"basse":    {"la ", true},
	"grand":    {"le ", true},
	"grande":   {"la ", true},
	"haut":     {"le ", true},
	"haute":    {"la ", true},
	"moyenne":  {"la ", true},
	"nouveau":  {"le ", false},
	"nouvelle": {"la ", false},
	"petit":    {"le ", false},
	"petite":   {"la ", false},
	"vieille":  {"la ", false},
	"vieux":    {"le ", false},
}

// articles are the words that a name may begin with, so that it needs no other article: La Canebière.
var articles = []string{"le ", "la ", "les ", "l'", "l’"}

// mostKindWords is how many words a kind of way has at most, with an adjective.
const mostKindWords = 2

// frenchName is a name as it stands in a sentence.
type frenchName struct {
	text  string
	place place
	// hasKind says that the name begins with a kind of way. One can take such a way; other names need a preposition.
	hasKind bool
}

func (n frenchName) isWay() bool { return n.hasKind && n.place.isWay() }

// newFrenchName puts the article before a name and writes its kind in small letters. A name of an unknown kind is left unchanged.
func newFrenchName(name string) frenchName {
	words := strings.Fields(name)
	for n := min(mostKindWords, len(words)); n > 0; n-- {
		head, tail := strings.Join(words[:n], " "), strings.Join(words[n:], " ")
		if kind, isProper, ok := findKind(head); ok {
			if !isProper {
				head = strings.ToLower(head)
			}
			return frenchName{kind.article + head + spaced(tail), kind.place, true}
		}
	}
	for _, article := range articles {
		if n := len(article); len(name) > n && strings.EqualFold(name[:n], article) {
			return frenchName{text: article + name[n:]}
		}
	}
	return frenchName{text: name}
}

// findKind returns the kind of way that words are, and whether they keep their capitals.
func findKind(words string) (kind wayKind, isProper, ok bool) {
	words = strings.ReplaceAll(strings.ToLower(words), "’", "'")
	if kind, ok = properKinds[words]; ok {
		return kind, true, true
	}
	if kind, ok = wayKinds[words]; ok {
		return kind, false, true
	}
	first, second, _ := strings.Cut(words, " ")
	adjective, isAdjective := adjectives[first]
	if kind, ok = wayKinds[second]; !ok || !isAdjective {
		return wayKind{}, false, false
	}
	return wayKind{adjective.article, kind.place}, adjective.isProper, true
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

// mostMotorwayDigits is how many digits the number of a motorway has at most. British main roads have an A too, and four.
const mostMotorwayDigits = 3

// isMotorwayRef reports whether a number is that of a motorway: it is better known than the motorway's name.
func isMotorwayRef(ref string) bool {
	number, ok := strings.CutPrefix(spaceRef(ref), "A ")
	digits := len(number) - len(strings.TrimLeft(number, "0123456789"))
	return ok && digits > 0 && digits <= mostMotorwayDigits
}
