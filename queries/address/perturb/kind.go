package perturb

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"lieudit/queries/address/text"
)

// Kind is one kind of perturbation.
type Kind struct {
	Name    string
	MinTop1 float64 // least share of questions whose best answer is right, in percent
	// Apply changes a question. It returns false when the kind does not apply to it.
	Apply func(rng *rand.Rand, w Reference, a *Question) bool
}

// Kinds returns the single perturbations and some combinations of two.
func Kinds() []Kind {
	all := singleKinds()
	by := map[string]Kind{}
	for _, n := range all {
		by[n.Name] = n
	}
	for _, pair := range [][2]string{{"typo", "abbreviated"}, {"typo", "accents"}, {"typo", "no postcode"}, {"typo", "wrong postcode"},
		{"abbreviated", "no postcode"}, {"abbreviated", "wrong postcode"}, {"repetition", "typo"}, {"typo", "typo"},
		{"wrong number", "typo"}, {"old commune", "no postcode"}, {"old commune", "typo"}, {"cedex", "typo"}, {"no street type", "no postcode"}} {
		x, y := by[pair[0]], by[pair[1]]
		all = append(all, Kind{x.Name + " + " + y.Name, 97, func(rng *rand.Rand, ref Reference, a *Question) bool {
			return x.Apply(rng, ref, a) && y.Apply(rng, ref, a)
		}})
	}
	return all
}

// singleKinds returns the kinds that change one thing.
func singleKinds() []Kind {
	return []Kind{
		{"clean", 99.9, func(*rand.Rand, Reference, *Question) bool { return true }},
		{"accents", 99, func(_ *rand.Rand, _ Reference, a *Question) bool {
			a.street, a.city = strings.ToUpper(text.Fold(a.street)), strings.ToUpper(text.Fold(a.city))
			return true
		}},
		{"abbreviated", 99, abbreviate},
		{"typo", 99, addTypo},
		{"no postcode", 99, func(_ *rand.Rand, _ Reference, a *Question) bool { a.postcode = ""; return true }},
		{"wrong postcode", 99, replacePostcode},
		{"repetition", 99, rewriteRep},
		{"no commune", 97, func(_ *rand.Rand, _ Reference, a *Question) bool { a.city = ""; return true }},
		{"old commune", 97, func(_ *rand.Rand, _ Reference, a *Question) bool {
			a.city = a.Row.CommuneAncienne
			return a.city != ""
		}},
		{"old and new commune", 97, func(_ *rand.Rand, _ Reference, a *Question) bool {
			a.city = a.Row.CommuneAncienne + ", " + a.Row.Commune
			return a.Row.CommuneAncienne != ""
		}},
		{"cedex", 97, func(rng *rand.Rand, _ Reference, a *Question) bool {
			a.postcode = a.postcode[:2] + fmt.Sprintf("%03d", 900+rng.IntN(99))
			a.citySuffix = "CEDEX"
			return true
		}},
		{"commune first", 97, func(_ *rand.Rand, _ Reference, a *Question) bool { a.isCommuneFirst = true; return true }},
		{"number after", 97, func(_ *rand.Rand, _ Reference, a *Question) bool { a.isNumberAfter = true; return true }},
		{"lieu-dit added", 97, func(_ *rand.Rand, _ Reference, a *Question) bool {
			a.street += ", " + a.Row.LieuDit
			return a.Row.LieuDit != ""
		}},
		{"no street type", 97, dropStreetType},
		{"wrong number", 97, replaceNumber},
		{"glued", 97, joinArticles},
	}
}

// abbreviations pairs words with the abbreviations that people write.
func abbreviations() [][2]string {
	return [][2]string{{"Avenue", "av"}, {"Boulevard", "bd"}, {"Chemin", "che"}, {"Route", "rte"}, {"Place", "pl"}, {"Impasse", "imp"},
		{"Allée", "all."}, {"Rue", "r"}, {"Lotissement", "lot"}, {"Quartier", "quar"}, {"Saint", "St"}, {"Sainte", "Ste"},
		{"Général", "Gal"}, {"Docteur", "Dr"}, {"Maréchal", "Mal"}, {"Passage", "pas"}, {"Square", "sq"}}
}

func abbreviate(_ *rand.Rand, _ Reference, a *Question) bool {
	street, isStreet := Abbreviate(a.street)
	city, isCity := Abbreviate(a.city)
	a.street, a.city = street, city
	return isStreet || isCity
}

// Abbreviate shortens the words of a name that people shorten, such as kinds of streets and titles. It reports whether there
// are any.
func Abbreviate(name string) (short string, isShorter bool) {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || r == '-' })
	for i := range words {
		for _, p := range abbreviations() {
			if strings.EqualFold(words[i], p[0]) {
				words[i], isShorter = p[1], true
			}
		}
	}
	return strings.Join(words, " "), isShorter
}

// addTypo changes one letter of a word of five letters or more, in the street or the commune.
func addTypo(rng *rand.Rand, _ Reference, a *Question) bool {
	parts := []*string{&a.street, &a.city}
	for range 8 {
		p := parts[rng.IntN(2)]
		words := strings.Split(text.Fold(*p), " ")
		i := rng.IntN(len(words))
		if len(words[i]) >= 5 {
			words[i] = changeLetter(rng, words[i])
			*p = strings.Join(words, " ")
			return true
		}
	}
	return false
}

// changeLetter drops, inserts, replaces or swaps a letter of a word.
func changeLetter(rng *rand.Rand, ref string) string {
	for {
		i := rng.IntN(len(ref))
		letter := string(rune('a' + rng.IntN(26)))
		out := ref
		switch rng.IntN(4) {
		case 0:
			out = ref[:i] + ref[i+1:]
		case 1:
			out = ref[:i] + letter + ref[i:]
		case 2:
			out = ref[:i] + letter + ref[i+1:]
		default:
			if i+1 < len(ref) {
				out = ref[:i] + ref[i+1:i+2] + ref[i:i+1] + ref[i+2:]
			}
		}
		if out != ref {
			return out
		}
	}
}

// replacePostcode takes another postcode of the same department. A postcode elsewhere could name another commune of the
// same name.
func replacePostcode(rng *rand.Rand, ref Reference, a *Question) bool {
	var near []string // of the same department
	for _, code := range ref.postcodes {
		if code[:2] == a.postcode[:2] && code != a.postcode {
			near = append(near, code)
		}
	}
	if len(near) == 0 {
		return false
	}
	a.postcode = near[rng.IntN(len(near))]
	return true
}

// rewriteRep writes bis and ter in another usual way.
func rewriteRep(rng *rand.Rand, _ Reference, a *Question) bool {
	forms := map[string][]string{"bis": {"b", "B", "bis", "BIS"}, "ter": {"t", "T", "ter", "TER"}, "quater": {"q", "quater"}}
	form, ok := forms[a.rep]
	if !ok {
		form = []string{a.rep, strings.ToUpper(a.rep)}
	}
	if a.rep == "" {
		return false
	}
	a.rep = form[rng.IntN(len(form))]
	a.repSeparator = []string{"", " "}[rng.IntN(2)]
	return true
}

// dropStreetType drops the street type.
func dropStreetType(_ *rand.Rand, _ Reference, a *Question) bool {
	first, rest, ok := strings.Cut(a.street, " ")
	if !ok || text.ClassOf(text.Fold(first)) != text.StreetType {
		return false
	}
	a.street = rest
	return true
}

// replaceNumber asks for a number that the street does not have.
func replaceNumber(rng *rand.Rand, ref Reference, a *Question) bool {
	for range 20 {
		n := fmt.Sprint(ref.Unused + 1 + rng.IntN(300))
		if !ref.numbers[[2]string{a.Row.CodeInsee, text.Fold(a.Row.Voie)}][n] {
			a.number, a.rep, a.isNumberMissing = n, "", true
			return true
		}
	}
	return false
}

// joinArticles drops the apostrophe between an article and its word.
func joinArticles(_ *rand.Rand, _ Reference, a *Question) bool {
	street := strings.NewReplacer("l'", "l", "L'", "L", "d'", "d", "D'", "D", "l’", "l", "d’", "d").Replace(a.street)
	changed := street != a.street
	a.street = street
	return changed
}
