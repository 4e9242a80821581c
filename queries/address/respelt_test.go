package address

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"lieudit/eventstore/leveltest"
	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/text"
)

// respelling writes the words of a street's name in another way. It returns nil for a name to which it does not apply.
type respelling func(words []string) []string

func TestNamesThatPeopleWriteOtherwiseAreRead(t *testing.T) {
	t.Parallel()
	leveltest.Need(t, leveltest.Usual, "") // it takes seconds
	known := vocabulary(t)
	for name, c := range map[string]struct {
		respell     respelling
		least, most int // questions asked, and those that may be answered otherwise
	}{
		"two words in one that other streets have":      {joinedWords(known), 40, 1},
		"one word in two that other streets have":       {splitWords(known), 150, 3},
		"one word in two that no street has":            {splitApart(known), 200, 6},
		"the initials of a first name in one word":      {gluedInitials, 5, 0},
		"a word cut short":                              {cutWord, 200, 1},
		"a kind cut short":                              {cutKind, 400, 4},
		"a misspelling that is a word of other streets": {otherWord(known, 1, 1), 300, 4},
		"one with two letters wrong, of several words":  {otherWord(known, 2, 2), 200, 15},
	} {
		asked, wrong := askRespelt(t, c.respell)
		if asked < c.least || len(wrong) > c.most {
			t.Errorf("%s: %d of %d questions are answered otherwise, want %d of %d:\n%s", name, len(wrong), asked, c.most, c.least,
				strings.Join(wrong[:min(len(wrong), 20)], "\n"))
		}
	}
}

// mostAsked is how many questions of one kind are enough.
const mostAsked = 400

// askRespelt asks for one row of each street whose name a respelling changes. It returns how many were asked for, and those that
// another address answers, or none. A name that the commune has as it is written then is not asked for.
func askRespelt(t *testing.T, respell respelling) (asked int, wrong []string) {
	t.Helper()
	o := addresstest.Lozere(t)
	e := engineFor(t, o.Vintage)
	names := map[string]bool{}
	for i := range o.Rows {
		names[o.Rows[i].CodeInsee+" "+plainName(&o.Rows[i])] = true
	}
	for i := 0; i < len(o.Rows) && asked < mostAsked; i++ {
		r := &o.Rows[i]
		key := r.CodeInsee + " " + plainName(r)
		words := respell(strings.Fields(plainName(r)))
		if r.Numero == 0 || !names[key] || words == nil || names[r.CodeInsee+" "+strings.Join(words, " ")] {
			continue
		}
		names[key] = false // once
		asked++
		line := fmt.Sprint(number(r), " ", strings.Join(words, " "), " ", r.CodePostal, " ", r.Commune)
		found, err := e.Verify(t.Context(), Query{Text: line, Limit: 1})
		switch {
		case err != nil || len(found) == 0:
			wrong = append(wrong, fmt.Sprintf("%q: nothing, want %s", line, r.Voie))
		case text.Fold(found[0].Street) != text.Fold(r.Voie) || found[0].CityCode != r.CodeInsee || !found[0].NumberFound:
			wrong = append(wrong, fmt.Sprintf("%q: %s (%.2f), want %s", line, found[0].Label, found[0].Score, r.Voie))
		}
	}
	return asked, wrong
}

// plainName is the name of a row's street, folded.
func plainName(r *ban.Row) string { return text.Fold(r.Voie) }

// vocabulary is the words of all streets, in their order.
func vocabulary(t *testing.T) (words []string) {
	t.Helper()
	rows := addresstest.Lozere(t).Rows
	for i := range rows {
		words = append(words, strings.Fields(plainName(&rows[i]))...)
	}
	slices.Sort(words)
	return slices.Compact(words)
}

func isWordOf(words []string, w string) bool {
	_, ok := slices.BinarySearch(words, w)
	return ok
}

func joinedWords(known []string) respelling {
	return func(words []string) []string {
		for i := 1; i+1 < len(words); i++ {
			if w := words[i] + words[i+1]; len(w) >= 5 && isWordOf(known, w) {
				return slices.Concat(words[:i], []string{w}, words[i+2:])
			}
		}
		return nil
	}
}

func splitWords(known []string) respelling {
	return func(words []string) []string {
		for i := 1; i < len(words); i++ {
			for at := 3; at+2 < len(words[i]); at++ {
				if left, right := words[i][:at], words[i][at:]; isWordOf(known, left) && isWordOf(known, right) {
					return slices.Concat(words[:i], []string{left, right}, words[i+1:])
				}
			}
		}
		return nil
	}
}

// splitApart writes the last word of a name in two, neither of which the base has: Bir Hakeim for BirHakeim.
func splitApart(known []string) respelling {
	return func(words []string) []string {
		last := words[len(words)-1]
		at := len(last) / 2
		if len(words) < 2 || len(last) < 8 || isWordOf(known, last[:at]) || isWordOf(known, last[at:]) {
			return nil
		}
		return append(slices.Clone(words[:len(words)-1]), last[:at], last[at:])
	}
}

func gluedInitials(words []string) []string {
	names := strings.Fields("jean marie pierre paul louis jacques francois charles henri claude andre michel baptiste joseph luc marc yves antoine")
	for i := 1; i+2 < len(words); i++ {
		if slices.Contains(names, words[i]) && slices.Contains(names, words[i+1]) {
			return slices.Concat(words[:i], []string{words[i][:1] + words[i+1][:1]}, words[i+2:])
		}
	}
	return nil
}

func cutWord(words []string) []string {
	for i := 1; i+1 < len(words) && len(words) > 3; i++ {
		if len(words[i]) > 6 {
			return slices.Concat(words[:i], []string{words[i][:3] + "."}, words[i+1:])
		}
	}
	return nil
}

func cutKind(words []string) []string {
	if len(words) > 1 && len(words[0]) > 5 && text.ClassOf(words[0]) == text.StreetType {
		return slices.Concat([]string{words[0][:len(words[0])-2]}, words[1:])
	}
	return nil
}

// otherWord replaces a long word with one of another street that differs in the given number of letters and sounds otherwise. The name has
// at least the given number of words that tell streets apart.
func otherWord(known []string, edits, least int) respelling {
	isContent := func(w string) bool { return len(w) > 3 && text.ClassOf(w) == text.Content }
	other := map[string]string{}
	for _, w := range known {
		i := slices.IndexFunc(known, func(o string) bool {
			return len(w) >= 7 && len(o) >= 7 && o[0] == w[0] && text.Distance(o, w, edits) == edits && text.PhoneticKey(o) != text.PhoneticKey(w)
		})
		if i >= 0 {
			other[w] = known[i]
		}
	}
	return func(words []string) []string {
		n := 0
		for _, w := range words {
			if isContent(w) {
				n++
			}
		}
		for i := 1; i < len(words) && n >= least; i++ {
			if o := other[words[i]]; o != "" && o != words[i] {
				return slices.Concat(words[:i], []string{o}, words[i+1:])
			}
		}
		return nil
	}
}
