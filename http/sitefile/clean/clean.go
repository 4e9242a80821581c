// Package clean fixes single values as people and programs write them in files of sites: texts, telephone numbers, postcodes, web
// sites, opening hours. It knows neither files nor columns. It never guesses: a value that it understands only in part stays
// whole, and the function returns not ok.
//
//	cell ──Text──► text without stray signs, and the kinds of fix
//	text ──Phones, Postcode, Siret, Decimal …──► value of the API
//	text ──splitHours──► []token ──hoursParser──► []hoursRule ──► week ──encodeHours──► member horaires
//	JSON ──readHoursJSON──► week
//
// Every function returns its own result unchanged when called with it. Website and Email read the links of HTML, which
// Text removes, so call them with the cell itself.
//
// Telephone numbers are read by a table of the French plan and of the countries' codes (phone.go). nyaruka/phonenumbers knows the
// plans of all countries, but adds 5 MB to the program and 3 MB to its memory before main begins, and reads neither lists of
// numbers, nor short ones, nor 0590 and 0262 without their region. Opening hours are our own because no library reads French ones.
package clean

import (
	"slices"
	"strings"
	"unicode"
)

// Fix names a kind of fix in words for people, to count by.
type Fix string

const (
	Spaces        Fix = "spaces"
	ControlSigns  Fix = "control characters"
	WrongDecoding Fix = "wrongly decoded letters"
	HTML          Fix = "HTML"
	EmptySign     Fix = "markers of an empty cell (-, NC, null)"
	WebsiteScheme Fix = "web sites without https://"
	EmailForm     Fix = "e-mail addresses"
	Phone         Fix = "telephone numbers"
	PostcodeZero  Fix = "postcodes without their leading zero"
	TrailingZero  Fix = "whole numbers with .0"
	OpeningHours  Fix = "opening hours"
)

// Text applies the fixes for every text: a wrong decoding, HTML, control characters and spaces. Without keepLines a line end becomes
// a space; with it lines stay, with at most one empty line between two. Each kind of fix is returned once, in any order.
// A text that is only a sign of emptiness stays; see IsEmptySign.
func Text(s string, keepLines bool) (string, []Fix) {
	if isClean(s) {
		return s, nil
	}
	var done []Fix
	for range maxRounds { // one step may leave work for another: entities stand for tags, and for spaces
		before := s
		s, done = fixOnce(s, keepLines, done)
		if s == before {
			break
		}
	}
	return s, done
}

// fixOnce does each step once and adds the kinds that changed the text to those done before.
func fixOnce(s string, keepLines bool, done []Fix) (string, []Fix) {
	for _, step := range []struct {
		kind Fix
		fix  func(string) string
	}{
		{WrongDecoding, decodeAgain},
		{HTML, func(s string) string { return stripHTML(s, keepLines) }},
		{ControlSigns, dropControlSigns},
		{Spaces, func(s string) string { return fixSpaces(s, keepLines) }},
	} {
		fixed := step.fix(s)
		if fixed != s && !slices.Contains(done, step.kind) {
			done = append(done, step.kind)
		}
		s = fixed
	}
	return s, done
}

// maxRounds bounds how often Text repeats its steps. Texts of people need two rounds.
const maxRounds = 6

// isClean reports whether a text cannot need a fix. It is the fast path of nearly every cell.
func isClean(s string) bool {
	before := byte(' ')
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c >= 0x7f || c == '<' || c == '&' || c == ' ' && before == ' ' {
			return false
		}
		before = c
	}
	return s == "" || before != ' '
}

// dropControlSigns drops invisible characters: control characters, spaces of no width, marks of the direction of writing. Line ends
// and tabs stay, and so does what joins emoji. Excel writes a line end in some files as _x000D_.
func dropControlSigns(s string) string {
	s = strings.ReplaceAll(s, "_x000D_", "\r")
	before := ' '
	return strings.Map(func(r rune) rune {
		joined := before
		before = r
		switch {
		case unicode.IsSpace(r): // \t \n \v \f \r, and spaces
			return r
		case r == '\u200d' && joined > '\u2000': // behind an emoji
			return r
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == '\ufffe', r == '\uffff':
			before = joined
			return -1
		}
		return r
	}, s)
}

// fixSpaces makes every kind of space a plain one, and drops outer and double ones. Line ends are \n.
func fixSpaces(s string, keepLines bool) string {
	if !keepLines {
		return strings.Join(strings.Fields(s), " ")
	}
	s = lineEnds.Replace(s)
	lines := strings.Split(s, "\n")
	kept := lines[:0]
	for _, line := range lines {
		line = strings.Join(strings.Fields(line), " ")
		if line != "" || len(kept) > 0 && kept[len(kept)-1] != "" {
			kept = append(kept, line)
		}
	}
	return strings.TrimRight(strings.Join(kept, "\n"), "\n")
}

// lineEnds replaces every kind of line end by \n.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u2028", "\n", "\u2029", "\n")

// emptySigns are texts that mean nothing in any field but a country, where NC is a code. NA and ND are not among them: they may be
// names. Neither is 0, a number.
var emptySigns = wordSet(`null nil none nan undefined (null) <null> [null] (vide) \n
	n/a n.a. n.a #n/a #n/d n/c n.c. n.c nc n/d n.d. n/r #null! #nul! #ref! #value! #valeur! #name? #nom? #div/0! #num! #nombre!
	néant inconnu inconnue`)

// emptyPhrases are such texts of several words.
var emptyPhrases = map[string]bool{
	"non renseigné": true, "non renseignée": true, "non renseignés": true, "non renseignées": true, "non renseigne": true,
	"non précisé":    true,
	"non communiqué": true, "non communiquée": true, "non connu": true, "non connue": true, "non disponible": true,
	"non applicable": true, "non défini": true, "sans objet": true, "not available": true, "à compléter": true, "à renseigner": true,
}

// emptyWords are texts that mean nothing in a field that is not a name.
var emptyWords = wordSet("na nd nr so x xx xxx aucun aucune sans vide non no false faux 0")

// IsEmptySign reports whether a text is a sign of emptiness in every field: only strokes and points, NC, null, #N/A, non renseigné. It
// must not be used for a country, since NC is a code.
func IsEmptySign(s string) bool {
	s = strings.ToLower(strings.TrimSpace(s))
	return emptySigns[s] || emptyPhrases[s] || s != "" && strings.Trim(s, "-–—_./?*#…~,;: ") == ""
}

// IsEmptyWord reports whether a text is a sign of emptiness in a field that is not a name, such as a telephone number or a web site: NA,
// aucun, x, 0, false.
func IsEmptyWord(s string) bool {
	return IsEmptySign(s) || emptyWords[strings.ToLower(strings.TrimSpace(s))]
}

// wordSet is a set of the words of a text.
func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}
