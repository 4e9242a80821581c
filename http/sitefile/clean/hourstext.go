package clean

import (
	"regexp"
	"strconv"
	"strings"
)

// tokenKind is the kind of a piece of a text of hours.
type tokenKind int

const (
	unknownToken tokenKind = iota
	dayToken               // days of the week
	holidayToken           // public holidays
	timeToken              // a time of the day
	numberToken            // an hour without a sign, as in 9 à 12h
	allDayToken            // 24h/24
	rangeToken             // - or à
	listToken              // , or et
	ruleToken              // ; or the end of a line
	colonToken             // after days: no more days are added to them
	closedToken
	exceptToken // sauf
)

// token is a piece of a text of hours.
type token struct {
	kind      tokenKind
	days      daySet
	minutes   int
	isFrench  bool // a word or sign that OSM's form does not have
	isHalfDay bool // a time with am or pm
	isSlash   bool // /, which may stand for a range between two times
}

// daySet is a set of days, Monday in the lowest bit.
type daySet uint8

const everyDay daySet = 1<<7 - 1

// dayWords are the names of the days without accents, Monday first. OSM has two letters, French two or three.
var dayWords = [7]string{
	"mo mon monday mondays lu lun lundi lundis", "tu tue tues tuesday tuesdays ma mar mardi mardis",
	"we wed wednesday wednesdays me mer merc mercredi mercredis", "th thu thur thurs thursday thursdays je jeu jeudi jeudis",
	"fr fri friday fridays ve ven vend vendredi vendredis", "sa sat saturday saturdays sam samedi samedis",
	"su sun sunday sundays di dim dimanche dimanches",
}

// osmDays are the names of days in OSM's form.
var osmDays = wordSet("mo tu we th fr sa su")

// words are the other words of hours, without accents.
var words = map[tokenKind]string{
	rangeToken:  "a au aux to until till jusqu'a jusqu'au jusqu'aux -",
	listToken:   "et and puis , / & |",
	ruleToken:   "; .",
	colonToken:  ":",
	closedToken: "ferme fermes fermee fermees fermeture closed off non",
	exceptToken: "sauf except hors",
}

// fillers are words that change nothing.
var fillers = wordSet(`de du le la les des d' l' from entre ouvert ouverte ouverts ouvertes ouverture horaire horaires open tous
	y compris inclus matin matins matinee soir soirs soiree`)

// phrases are several words that have one meaning, replaced before a text is split. The replacements have capitals, which the text
// no longer has. A pattern is only tried on texts that have its sign.
var phrases = []struct {
	sign    string
	pattern *regexp.Regexp
	word    string
}{
	// the XML of the national directory of public services
	{"<plagej", regexp.MustCompile(`<plagej debut=\\?"(\w+)\\?" fin=\\?"(\w+)\\?">`), "\n$1-$2 "},
	{"<plageh", regexp.MustCompile(`<plageh debut=\\?"([\d:]+)\\?" fin=\\?"([\d:]+)\\?" ?/>`), " $1-$2 "},
	{"<", regexp.MustCompile(`</?(?:plagej|ouverture)>`), " "},
	{"24", regexp.MustCompile(`\b24 ?/ ?7\b`), " EVERY ALLDAY "},
	{"24", regexp.MustCompile(`\b24 ?(?:h|heures?)? ?(?:/|sur) ?24 ?(?:h|heures?)?\b`), " ALLDAY "},
	{"h24", regexp.MustCompile(`\bh24\b|\b24h24\b`), " ALLDAY "},
	{"7", regexp.MustCompile(`\b7 ?(?:j|jours?)? ?(?:/|sur|j/) ?7 ?(?:j|jours?)?\b|\b7j7\b`), " EVERY "},
	{"j", regexp.MustCompile(`\btous les jours\b|\btlj\b|\bchaque jour\b`), " EVERY "},
	{"ay", regexp.MustCompile(`\bevery ?day\b`), " EVERY "},
	{"daily", regexp.MustCompile(`\bdaily\b`), " EVERY "},
	{"week", regexp.MustCompile(`\b(?:le |les )?week[ -]?ends?\b`), " WEEKEND "},
	{"ferie", regexp.MustCompile(`\b(?:(?:les |le )?jours? )?feries?\b`), " HOLIDAYS "},
	{"ph", regexp.MustCompile(`\bph\b`), " HOLIDAYS "},
	{"holiday", regexp.MustCompile(`\bpublic holidays?\b`), " HOLIDAYS "},
	{"que", regexp.MustCompile(`\bainsi que\b|\bde meme que\b`), " et "},
	{"horaire", regexp.MustCompile(`\bhoraires? d[' ]ouverture\b`), " "},
	{"opening", regexp.MustCompile(`\bopening hours\b`), " "},
	{"midi", regexp.MustCompile(`\b(?:l'|les )?apres[ -]midis?\b`), " "},
	{"stop", regexp.MustCompile(`\bnon[ -]?stop\b`), " "},
	{"contin", regexp.MustCompile(`\b(?:en )?(?:journee |horaire |service )?continue?\b`), " "},
	{"interruption", regexp.MustCompile(`\bsans interruption\b`), " "},
	{"annee", regexp.MustCompile(`\btoute l'annee\b`), " "},
	{"midi", regexp.MustCompile(`\b(?:12 ?h? ?)?midi\b`), " 12:00 "},
	{"noon", regexp.MustCompile(`\bnoon\b`), " 12:00 "},
	{"mi", regexp.MustCompile(`\bminuit\b|\bmidnight\b`), " 24:00 "},
}

var (
	// clockPattern matches a time with the sign of its hours: 9h, 9h30, 9 h 30, 09:30, 9.30. The seconds of 09:30:00 are zeros.
	clockPattern = regexp.MustCompile(`^(\d{1,2}) ?(?:(?:h|heures?|hrs?)(?:( ?)(\d{2}))?|[:.](\d{2})(?::00)?) ?(?:(?:mn|min|h)\b)?`)
	// hourPattern matches only its hours.
	hourPattern = regexp.MustCompile(`^\d{1,2} ?(?:heures?|hrs?|h)`)
	ampmPattern = regexp.MustCompile(`^(\d{1,2})(?:[:.](\d{2}))? ?([ap])\.? ?m\b\.?`)
	wordPattern = regexp.MustCompile(`^(?:jusqu'aux?|jusqu'a|[dl]'|\p{L}+|\d+)`)
)

// maxHoursText is the most bytes of a text of hours that is worth reading.
const maxHoursText = 2000

// readHoursText reads a text that consists of hours by weekday.
func readHoursText(s string) (week, bool) {
	if s == "" || len(s) > maxHoursText {
		return week{}, false
	}
	tokens, ok := splitHours(s)
	if !ok {
		return week{}, false
	}
	p := hoursParser{tokens: tokens, isOSM: isOSM(tokens)}
	return p.parse()
}

// splitHours splits a text into tokens. It ends at a word without a meaning here, since the text then cannot be read.
func splitHours(s string) ([]token, bool) {
	s = plainHours.Replace(foldAccents(s))
	for _, p := range phrases {
		if !strings.Contains(s, p.sign) {
			continue
		}
		s = p.pattern.ReplaceAllString(s, p.word)
	}
	text := s
	var tokens []token
	for s = strings.TrimLeft(s, " \t"); s != ""; s = strings.TrimLeft(s, " \t") {
		t, length := readToken(s)
		if t.kind == unknownToken && length == 0 {
			return nil, false
		}
		if s = s[length:]; t.kind != unknownToken {
			tokens = append(tokens, t)
		}
	}
	return tokens, !strings.Contains(text, "mar") || !marchPattern.MatchString(text)
}

// marchPattern matches a text in which mar may be March and not mardi: names of days of OSM's form stand next to it.
var marchPattern = regexp.MustCompile(`\bmar\b.*\b(?:mo|tu|we|th|fr|su)\b|\b(?:mo|tu|we|th|fr|su)\b.*\bmar\b`)

// plainHours makes the signs of hours plain. foldAccents has removed accents, and ligatures are rare here.
var plainHours = strings.NewReplacer(
	"–", "-", "—", "-", "‑", "-", "−", "-", "→", "-", "\u00a0", " ", "\u202f", " ", "\u2009", " ", "\u200b", "", "’", "'",
	"\r\n", "\n", "\r", "\n", "•", " ", "·", " ", "||", "?",
)

// vocabulary is the token of every word and sign of hours.
var vocabulary = buildVocabulary()

// buildVocabulary joins the lists of words.
func buildVocabulary() map[string]token {
	tokens := map[string]token{
		"EVERY":    {kind: dayToken, days: everyDay, isFrench: true},
		"WEEKEND":  {kind: dayToken, days: 1<<5 | 1<<6, isFrench: true},
		"HOLIDAYS": {kind: holidayToken},
		"ALLDAY":   {kind: allDayToken},
		"\n":       {kind: ruleToken},
	}
	for day, names := range dayWords {
		for name := range strings.FieldsSeq(names) {
			tokens[name] = token{kind: dayToken, days: 1 << day, isFrench: !osmDays[name]}
		}
	}
	for kind, list := range words {
		for word := range strings.FieldsSeq(list) {
			tokens[word] = token{kind: kind, isFrench: len(word) > 1 && word != "off", isSlash: word == "/"}
		}
	}
	for word := range fillers {
		tokens[word] = token{}
	}
	return tokens
}

// readToken reads the first token of a text and the number of its bytes. A filler is an unknown token that has a length; a word
// that has no meaning here has length 0.
func readToken(s string) (token, int) {
	if isDigit(s[0]) {
		if t, length := readClock(s); length > 0 {
			return t, length
		}
	}
	word := wordPattern.FindString(s)
	if word == "" {
		word = s[:1]
	}
	if t, known := vocabulary[word]; known {
		length := len(word)
		if t.kind == dayToken {
			length += len(pointBehind(word, s[length:]))
		}
		return t, length
	}
	if n, err := strconv.Atoi(word); err == nil && n <= 24 {
		return token{kind: numberToken, minutes: n * 60}, len(word)
	}
	return token{}, 0
}

// isDigit reports whether a byte is a decimal digit.
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// pointBehind is the point of an abbreviation such as lun., if the text after it begins with one. After a whole name it ends a sentence.
func pointBehind(word, behind string) string {
	if len(word) < len("lundi") && strings.HasPrefix(behind, ".") {
		return "."
	}
	return ""
}

// readClock reads the time that a text begins with.
func readClock(s string) (token, int) {
	if m := ampmPattern.FindStringSubmatch(s); m != nil {
		hour, _ := strconv.Atoi(m[1])
		if hour < 1 || hour > 12 {
			return token{}, 0
		}
		hour %= 12
		if m[3] == "p" {
			hour += 12
		}
		t, length := clockToken(hour, m[2], len(m[0]))
		t.isHalfDay, t.isFrench = true, true
		return t, length
	}
	m := clockPattern.FindStringSubmatch(s)
	if m == nil {
		return token{}, 0
	}
	length, minutes := len(m[0]), m[3]+m[4]
	if m[2] != "" && strings.ContainsAny(s[length-1:min(len(s), length+1)], "h:0123456789") && !strings.HasSuffix(m[0], minutes) ||
		m[2] != "" && length < len(s) && strings.ContainsRune("h:0123456789", rune(s[length])) {
		length, minutes = len(hourPattern.FindString(s)), "" // 10h 14h-18h: these digits are hours
	}
	hour, _ := strconv.Atoi(m[1])
	t, length := clockToken(hour, minutes, length)
	t.isFrench = m[4] == ""
	return t, length
}

// maxHour is the highest hour that OSM writes for a time of the day after.
const maxHour = 30

// clockToken is the token of a time of some length, unless hour or minute are invalid.
func clockToken(hour int, minuteText string, length int) (token, int) {
	minute, _ := strconv.Atoi(minuteText)
	if hour > maxHour || minute > 59 {
		return token{}, 0
	}
	return token{kind: timeToken, minutes: hour*60 + minute}, length
}

// isOSM reports whether a text has neither a French word nor a name of a day of more than two letters. In OSM's form a rule overrides the
// rules before it, and times without days hold for every day.
func isOSM(tokens []token) bool {
	for _, t := range tokens {
		if t.isFrench {
			return false
		}
	}
	return true
}
