package address

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/text"
)

// asked is a question made from a row: its parts as someone would type them, and whether the row can still be the
// answer.
type asked struct {
	number, rep, street, postcode, city string
	glue                                string // between number and repetition index
	row                                 *ban.Row
	missing                             bool // the number is not in the base
	shuffled                            bool // the commune comes first
	after                               bool // the number follows the street
	tail                                string
}

func askedOf(r *ban.Row) asked {
	a := asked{rep: r.Rep, street: r.Voie, postcode: r.CodePostal, city: r.Commune, row: r, number: fmt.Sprint(r.Numero)}
	return a
}

func (a asked) line() string {
	number := a.number
	if a.rep != "" {
		number += a.glue + a.rep
	}
	place := joined(a.postcode, a.city, a.tail)
	switch {
	case a.shuffled:
		return joined(place, number, a.street)
	case a.after:
		return joined(a.street, number+",", place)
	}
	return joined(number, a.street, place)
}

// noise is one kind of damage. It answers false for a row it does not apply to.
type noise struct {
	name  string
	least float64 // top-1 to reach, in percent
	apply func(rng *rand.Rand, w world, a *asked) bool
}

// world is what noise may draw from.
type world struct {
	postcodes []string
	numbers   map[[2]string]map[string]bool // of a commune and a folded street
}

func worldOf(rows []ban.Row) world {
	w := world{numbers: map[[2]string]map[string]bool{}}
	seen := map[string]bool{}
	for i := range rows {
		r := &rows[i]
		if !seen[r.CodePostal] {
			seen[r.CodePostal] = true
			w.postcodes = append(w.postcodes, r.CodePostal)
		}
		key := [2]string{r.CodeInsee, text.Fold(r.Voie)}
		if w.numbers[key] == nil {
			w.numbers[key] = map[string]bool{}
		}
		w.numbers[key][fmt.Sprint(r.Numero)] = true
	}
	return w
}

func noises() []noise {
	return []noise{
		{"clean", 99.9, func(*rand.Rand, world, *asked) bool { return true }},
		{"accents", 99, func(_ *rand.Rand, _ world, a *asked) bool {
			a.street, a.city = strings.ToUpper(text.Fold(a.street)), strings.ToUpper(text.Fold(a.city))
			return true
		}},
		{"abbreviated", 99, abbreviate},
		{"typo", 99, typo},
		{"no postcode", 99, func(_ *rand.Rand, _ world, a *asked) bool { a.postcode = ""; return true }},
		{"wrong postcode", 99, wrongPostcode},
		{"repetition", 99, repetition},
		{"no commune", 97, func(_ *rand.Rand, _ world, a *asked) bool { a.city = ""; return true }},
		{"old commune", 97, func(_ *rand.Rand, _ world, a *asked) bool {
			a.city = a.row.CommuneAncienne
			return a.city != ""
		}},
		{"old and new commune", 97, func(_ *rand.Rand, _ world, a *asked) bool {
			a.city = a.row.CommuneAncienne + ", " + a.row.Commune
			return a.row.CommuneAncienne != ""
		}},
		{"cedex", 97, func(rng *rand.Rand, _ world, a *asked) bool {
			a.postcode = a.postcode[:2] + fmt.Sprintf("%03d", 900+rng.IntN(99))
			a.tail = "CEDEX"
			return true
		}},
		{"commune first", 97, func(_ *rand.Rand, _ world, a *asked) bool { a.shuffled = true; return true }},
		{"number after", 97, func(_ *rand.Rand, _ world, a *asked) bool { a.after = true; return true }},
		{"lieu-dit added", 97, func(_ *rand.Rand, _ world, a *asked) bool {
			a.street += ", " + a.row.LieuDit
			return a.row.LieuDit != ""
		}},
		{"no street type", 97, withoutType},
		{"wrong number", 97, wrongNumber},
		{"glued", 97, glued},
	}
}

// short are the abbreviations people write.
func abbreviations() [][2]string {
	return [][2]string{{"Avenue", "av"}, {"Boulevard", "bd"}, {"Chemin", "che"}, {"Route", "rte"}, {"Place", "pl"}, {"Impasse", "imp"},
		{"Allée", "all."}, {"Rue", "r"}, {"Lotissement", "lot"}, {"Quartier", "quar"}, {"Saint", "St"}, {"Sainte", "Ste"},
		{"Général", "Gal"}, {"Docteur", "Dr"}, {"Maréchal", "Mal"}, {"Passage", "pas"}, {"Square", "sq"}}
}

func abbreviate(_ *rand.Rand, _ world, a *asked) bool {
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
func typo(rng *rand.Rand, _ world, a *asked) bool {
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

func wrongPostcode(rng *rand.Rand, w world, a *asked) bool {
	other := w.postcodes[rng.IntN(len(w.postcodes))]
	changed := other != a.postcode
	a.postcode = other
	return changed
}

// repetition writes bis and ter in another way.
func repetition(rng *rand.Rand, _ world, a *asked) bool {
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

func withoutType(_ *rand.Rand, _ world, a *asked) bool {
	first, rest, ok := strings.Cut(a.street, " ")
	if !ok || text.ClassOf(text.Fold(first)) != text.Way {
		return false
	}
	a.street = rest
	return true
}

// wrongNumber asks for a number the street does not have.
func wrongNumber(rng *rand.Rand, w world, a *asked) bool {
	for range 20 {
		n := fmt.Sprint(1 + rng.IntN(300))
		if !w.numbers[[2]string{a.row.CodeInsee, text.Fold(a.row.Voie)}][n] {
			a.number, a.rep, a.missing = n, "", true
			return true
		}
	}
	return false
}

// glued writes an article and its word as one.
func glued(_ *rand.Rand, _ world, a *asked) bool {
	street := strings.NewReplacer("l'", "l", "L'", "L", "d'", "d", "D'", "D", "l’", "l", "d’", "d").Replace(a.street)
	changed := street != a.street
	a.street = street
	return changed
}
