package noise

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"lieudit/queries/address/text"
)

// Kind is one kind of noise.
type Kind struct {
	Name  string
	Least float64 // top-1 to reach, in percent
	// Apply damages a question, and answers false for one it does not apply to.
	Apply func(rng *rand.Rand, w World, a *Question) bool
}

// Kinds are all kinds of noise alone, and some two by two.
func Kinds() []Kind {
	all := noises()
	by := map[string]Kind{}
	for _, n := range all {
		by[n.Name] = n
	}
	for _, pair := range [][2]string{{"typo", "abbreviated"}, {"typo", "accents"}, {"typo", "no postcode"}, {"typo", "wrong postcode"},
		{"abbreviated", "no postcode"}, {"abbreviated", "wrong postcode"}, {"repetition", "typo"}, {"typo", "typo"},
		{"wrong number", "typo"}, {"old commune", "no postcode"}, {"old commune", "typo"}, {"cedex", "typo"}, {"no street type", "no postcode"}} {
		x, y := by[pair[0]], by[pair[1]]
		all = append(all, Kind{x.Name + " + " + y.Name, 97, func(rng *rand.Rand, w World, a *Question) bool {
			return x.Apply(rng, w, a) && y.Apply(rng, w, a)
		}})
	}
	return all
}

func noises() []Kind {
	return []Kind{
		{"clean", 99.9, func(*rand.Rand, World, *Question) bool { return true }},
		{"accents", 99, func(_ *rand.Rand, _ World, a *Question) bool {
			a.street, a.city = strings.ToUpper(text.Fold(a.street)), strings.ToUpper(text.Fold(a.city))
			return true
		}},
		{"abbreviated", 99, abbreviate},
		{"typo", 99, typo},
		{"no postcode", 99, func(_ *rand.Rand, _ World, a *Question) bool { a.postcode = ""; return true }},
		{"wrong postcode", 99, wrongPostcode},
		{"repetition", 99, repetition},
		{"no commune", 97, func(_ *rand.Rand, _ World, a *Question) bool { a.city = ""; return true }},
		{"old commune", 97, func(_ *rand.Rand, _ World, a *Question) bool {
			a.city = a.Row.CommuneAncienne
			return a.city != ""
		}},
		{"old and new commune", 97, func(_ *rand.Rand, _ World, a *Question) bool {
			a.city = a.Row.CommuneAncienne + ", " + a.Row.Commune
			return a.Row.CommuneAncienne != ""
		}},
		{"cedex", 97, func(rng *rand.Rand, _ World, a *Question) bool {
			a.postcode = a.postcode[:2] + fmt.Sprintf("%03d", 900+rng.IntN(99))
			a.tail = "CEDEX"
			return true
		}},
		{"commune first", 97, func(_ *rand.Rand, _ World, a *Question) bool { a.shuffled = true; return true }},
		{"number after", 97, func(_ *rand.Rand, _ World, a *Question) bool { a.after = true; return true }},
		{"lieu-dit added", 97, func(_ *rand.Rand, _ World, a *Question) bool {
			a.street += ", " + a.Row.LieuDit
			return a.Row.LieuDit != ""
		}},
		{"no street type", 97, withoutType},
		{"wrong number", 97, wrongNumber},
		{"glued", 97, glued},
	}
}
