// Package streetname reports whether two names are those of the same street, one written by the address base and one by a map. It
// compares complete names of neighbouring streets, not queries that people type: it ignores differences of spelling between the two
// sources (case, accents, punctuation, articles, abbreviations, numbers in letters), but not typing errors or missing words.
//
//	name ── text.Terms ──► terms ── Fold ──► key; two names are the same where their keys are equal
package streetname

import (
	"strconv"
	"strings"

	"lieudit/queries/address/text"
)

// Same reports whether two names are those of the same street. An empty name is not the same as any other.
func Same(a, b string) bool {
	key := Fold(a)
	return key != "" && key == Fold(b)
}

// Fold returns the key of a street's name: names of the same street have the same key. It is "" if the name has no letters or
// digits. To compare one name with many, fold it once.
func Fold(name string) string {
	terms := joinNumerals(text.Terms(name))
	key := make([]string, 0, len(terms))
	for i, term := range terms {
		isLast := i == len(terms)-1
		switch {
		case !isLast && isLink(term): // the last word is a name even if it looks like an article: rue D
		case term == "grand" && !isLast && terms[i+1] == "rue":
			key = append(key, "grande") // Grand'Rue
		default:
			key = append(key, term)
		}
	}
	return strings.Join(key, " ")
}

// isLink reports whether a word only links others. Words that distinguish places, such as sur and sous, are not links.
func isLink(term string) bool {
	switch term {
	case "de", "du", "des", "d", "la", "le", "les", "l", "et", "a", "au", "aux":
		return true
	}
	return false
}

// joinNumerals returns the texts of the terms and joins numbers written in several words: dix-neuf is 19.
func joinNumerals(terms []text.Term) []string {
	words := make([]string, 0, len(terms))
	tens := 0 // of the word before, where a digit in letters may follow
	for _, t := range terms {
		word := spelledOut(t.Text)
		digit, err := strconv.Atoi(word)
		if tens > 0 && err == nil && !t.Digits && digit > 0 && digit < 10 {
			words[len(words)-1] = strconv.Itoa(tens + digit)
			tens = 0
			continue
		}
		tens = 0
		if !t.Digits && (word == "10" || word == "20") {
			tens = digit
		}
		words = append(words, word)
	}
	return words
}

// spelledOut returns in digits the numbers that package text leaves in letters, because vintages are built from its terms.
func spelledOut(term string) string {
	switch term {
	case "treize":
		return "13"
	case "seize":
		return "16"
	case "vingt":
		return "20"
	}
	return term
}
