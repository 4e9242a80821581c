package clean

import "strings"

// openWords and closedWords are ways to say that a site is in business or not, without accents. Words for a temporary closure are in
// neither.
var (
	openWords   = phraseSet("ouvert, ouverte, actif, active, activite, en activite, en service, en exploitation, open, operational, operationnel, operationnelle, opened, enabled")
	closedWords = phraseSet("ferme, fermee, inactif, inactive, ferme definitivement, fermee definitivement, definitivement ferme, definitivement fermee, fermeture definitive, closed, closed permanently, permanently closed, cesse, cessee, cessation, radie, radiee, hors service, desactive, desactivee, disabled, supprime, supprimee, archive, archivee")
	yesWords    = phraseSet("oui, o, yes, y, true, vrai, 1, x")
	noWords     = phraseSet("non, n, no, false, faux, 0")
)

func phraseSet(list string) map[string]bool {
	set := map[string]bool{}
	for phrase := range strings.SplitSeq(list, ", ") {
		set[phrase] = true
	}
	return set
}

// Flag is the meaning of a mere yes in a column.
type Flag int

// The meanings of yes. A column called ouvert may be about access for the public, so its yes and no mean nothing here.
const (
	NoFlag       Flag = iota // yes and no mean nothing
	YesIsOpen                // actif: oui
	YesIsShut                // fermé: oui
	StateOfINSEE             // A (active) and F or C (fermé, cessé), as in Sirene
)

// IsOpen reads whether a site is in business; known is false for a text that does not say.
func IsOpen(text string, flag Flag) (isOpen, known bool) {
	word := strings.Join(strings.FieldsFunc(foldAccents(text), func(r rune) bool { return strings.ContainsRune(" _-.\t\u00a0", r) }), " ")
	switch {
	case openWords[word]:
		return true, true
	case closedWords[word]:
		return false, true
	case flag == StateOfINSEE && (word == "a" || word == "f" || word == "c"):
		return word == "a", true
	case (flag == YesIsOpen || flag == YesIsShut) && (yesWords[word] || noWords[word]):
		return yesWords[word] == (flag == YesIsOpen), true
	}
	return false, false
}
