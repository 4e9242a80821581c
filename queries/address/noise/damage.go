package noise

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"lieudit/queries/address/text"
)

// abbreviations are the abbreviations people write.
func abbreviations() [][2]string {
	return [][2]string{{"Avenue", "av"}, {"Boulevard", "bd"}, {"Chemin", "che"}, {"Route", "rte"}, {"Place", "pl"}, {"Impasse", "imp"},
		{"Allée", "all."}, {"Rue", "r"}, {"Lotissement", "lot"}, {"Quartier", "quar"}, {"Saint", "St"}, {"Sainte", "Ste"},
		{"Général", "Gal"}, {"Docteur", "Dr"}, {"Maréchal", "Mal"}, {"Passage", "pas"}, {"Square", "sq"}}
}

func abbreviate(_ *rand.Rand, _ World, a *Question) bool {
	changed := false
	shorten := func(s string) string {
		words := strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '-' })
		for i := range words {
			for _, p := range abbreviations() {
				if strings.EqualFold(words[i], p[0]) {
					words[i], changed = p[1], true
				}
			}
		}
		return strings.Join(words, " ")
	}
	a.street, a.city = shorten(a.street), shorten(a.city)
	return changed
}

// typo damages one letter of a word of five letters or more, of the street or of the commune.
func typo(rng *rand.Rand, _ World, a *Question) bool {
	parts := []*string{&a.street, &a.city}
	for range 8 {
		p := parts[rng.IntN(2)]
		words := strings.Split(text.Fold(*p), " ")
		i := rng.IntN(len(words))
		if len(words[i]) >= 5 {
			words[i] = misspell(rng, words[i])
			*p = strings.Join(words, " ")
			return true
		}
	}
	return false
}

func misspell(rng *rand.Rand, w string) string {
	for {
		i := rng.IntN(len(w))
		letter := string(rune('a' + rng.IntN(26)))
		out := w
		switch rng.IntN(4) {
		case 0:
			out = w[:i] + w[i+1:]
		case 1:
			out = w[:i] + letter + w[i:]
		case 2:
			out = w[:i] + letter + w[i+1:]
		default:
			if i+1 < len(w) {
				out = w[:i] + w[i+1:i+2] + w[i:i+1] + w[i+2:]
			}
		}
		if out != w {
			return out
		}
	}
}

func wrongPostcode(rng *rand.Rand, w World, a *Question) bool {
	var near []string // a commune elsewhere is another one, whose name is the same
	for _, code := range w.postcodes {
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

// repetition writes bis and ter in another way.
func repetition(rng *rand.Rand, _ World, a *Question) bool {
	forms := map[string][]string{"bis": {"b", "B", "bis", "BIS"}, "ter": {"t", "T", "ter", "TER"}, "quater": {"q", "quater"}}
	form, ok := forms[a.rep]
	if !ok {
		form = []string{a.rep, strings.ToUpper(a.rep)}
	}
	if a.rep == "" {
		return false
	}
	a.rep = form[rng.IntN(len(form))]
	a.glue = []string{"", " "}[rng.IntN(2)]
	return true
}

func withoutType(_ *rand.Rand, _ World, a *Question) bool {
	first, rest, ok := strings.Cut(a.street, " ")
	if !ok || text.ClassOf(text.Fold(first)) != text.Way {
		return false
	}
	a.street = rest
	return true
}

// wrongNumber asks for a number the street does not have.
func wrongNumber(rng *rand.Rand, w World, a *Question) bool {
	for range 20 {
		n := fmt.Sprint(w.Unused + 1 + rng.IntN(300))
		if !w.numbers[[2]string{a.Row.CodeInsee, text.Fold(a.Row.Voie)}][n] {
			a.number, a.rep, a.missing = n, "", true
			return true
		}
	}
	return false
}

// glued writes an article and its word as one.
func glued(_ *rand.Rand, _ World, a *Question) bool {
	street := strings.NewReplacer("l'", "l", "L'", "L", "d'", "d", "D'", "D", "l’", "l", "d’", "d").Replace(a.street)
	changed := street != a.street
	a.street = street
	return changed
}
