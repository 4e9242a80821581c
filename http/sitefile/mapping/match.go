package mapping

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// nameMatch is a field after which a column is named. The lower the rank, the better the name fits.
type nameMatch struct {
	field Field
	rank  int
}

// patternRank is added to the rank of a name that fits only a pattern.
const patternRank = 1000

// variantPenalty is added to the rank of a name that fits only without its containers or the words for the subject of the row.
const variantPenalty = 100

// matchName returns the fields that a column may hold by its name, the best first.
func matchName(column string) []nameMatch {
	best := map[Field]int{}
	for form, name := range nameVariants(column) {
		for _, line := range namePatterns {
			rank, ok := line.match(name)
			if known, isKnown := best[line.field]; ok && (!isKnown || rank+form*variantPenalty < known) {
				best[line.field] = rank + form*variantPenalty
			}
		}
	}
	found := make([]nameMatch, 0, len(best))
	for field, rank := range best {
		found = append(found, nameMatch{field, rank})
	}
	slices.SortFunc(found, func(a, b nameMatch) int {
		return cmp.Or(a.rank-b.rank, strings.Compare(string(a.field), string(b.field)))
	})
	return found
}

// nameVariants returns the forms in which a name is looked up: whole; without the containers before its last dot; without the words for
// the subject of the row; and in the singular.
func nameVariants(column string) []string {
	forms := []string{normalizeName(column)}
	if at := strings.LastIndexByte(column, '.'); at > 0 && areContainers(column[:at]) {
		forms = append(forms, normalizeName(column[at+1:]))
	}
	last := forms[len(forms)-1]
	words := strings.Fields(last)
	without := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return containsWord(subjectWords, w) })
	if len(without) > 0 && len(without) < len(words) {
		forms = append(forms, strings.Join(without, " "))
	}
	if singular := singularWords(words); singular != last {
		forms = append(forms, singular)
	}
	return forms
}

// singularWords drops a final s from each word of more than four letters: noms and pharmacies are nom and pharmacie. A shorter word
// may be one of its own: dims, mars.
func singularWords(words []string) string {
	singular := make([]string, len(words))
	for i, w := range words {
		if singular[i] = w; len(w) > 4 || w == "noms" {
			singular[i] = strings.TrimSuffix(w, "s")
		}
	}
	return strings.Join(singular, " ")
}

// areContainers reports whether all members of a path hold facts of the row itself; one word of a name
// is enough (storeAddress).
func areContainers(path string) bool {
	for member := range strings.SplitSeq(path, ".") {
		words := strings.Fields(normalizeName(member))
		if !slices.ContainsFunc(words, func(w string) bool { return containsWord(containers, w) }) {
			return false
		}
	}
	return true
}

// match is the rank of a normalized name in a line of the table.
func (line *fieldNames) match(name string) (rank int, ok bool) {
	i := 0
	for exact := range strings.SplitSeq(line.exact, ", ") {
		if exact == name && name != "" {
			return i, true
		}
		i++
	}
	words := strings.Fields(name)
	if slices.ContainsFunc(words, func(w string) bool { return containsWord(line.not, w) }) {
		return 0, false
	}
	if line.field == ExternalID && isPlaceNumber(words) {
		return placeNumberRank, true
	}
	if line.field == ExternalID && gluedID.MatchString(name) {
		return patternRank + placeNumberRank, true
	}
	i = patternRank
	for pattern := range strings.SplitSeq(line.patterns, ", ") {
		if pattern != "" && matchNamePattern(pattern, name) {
			return i + len(words), true
		}
		i += 10
	}
	return 0, false
}

// placeNumberRank is the rank of the number of a site: a name that marks it as an id, though it is not in the table.
const placeNumberRank = patternRank / 2

// gluedID is a name that begins with id, in one word: idgaia, idstation.
var gluedID = regexp.MustCompile(`^id[a-df-z][a-z]{2,}$`)

// isPlaceNumber reports whether a name is a word for a number and words for a site: N° magasin, code agence, ref boutique.
func isPlaceNumber(words []string) bool {
	ids, places := 0, 0
	for _, w := range words {
		switch {
		case containsWord(idWords, w):
			ids++
		case containsWord(subjectWords, w), containsWord(placeWords, w):
			places++
		}
	}
	return ids == 1 && places > 0 && ids+places == len(words)
}

// rowNumber is the name of a column that map programs, databases and pandas add to a table, with the number that a join adds to it: FID,
// OBJECTID_1. It numbers the rows of one export: the next one gives the numbers to other sites.
var rowNumber = regexp.MustCompile(`^(fid|gid|ogc fid|object ?id|index|unnamed 0|level 0|row ?id|n ligne|num ligne|numero ligne|pk|id 0)( \d+)?$`)

// isRowNumber reports whether a column numbers the rows of an export.
func isRowNumber(name string) bool { return rowNumber.MatchString(normalizeName(name)) }

// matchNamePattern reports whether a name fits a pattern, in which * stands for one word or more.
func matchNamePattern(pattern, name string) bool {
	head, tail, hasStar := strings.Cut(pattern, "*")
	if !hasStar {
		return pattern == name
	}
	if tail, second, hasTwo := strings.Cut(tail, "*"); hasTwo { // "* code *"
		return head == "" && second == "" && strings.Contains(name, tail)
	}
	return len(name) > len(head)+len(tail) && strings.HasPrefix(name, head) && strings.HasSuffix(name, tail)
}

// containsWord reports whether a word is among words separated by spaces.
func containsWord(words, word string) bool {
	for w := range strings.SplitSeq(words, " ") {
		if w == word && w != "" {
			return true
		}
	}
	return false
}

// normalizeName is a name in lower case without accents, its words separated by single spaces and articles left out. A word ends
// at a sign that is neither a letter nor a digit, and before a capital within a name (codePostal). An @ stays.
func normalizeName(name string) string {
	words := strings.FieldsFunc(splitCapitals(foldAccents(strings.TrimSpace(name))), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '@'
	})
	for i, w := range words {
		words[i] = strings.ToLower(w)
	}
	without := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return containsWord(articles, w) })
	if len(without) == 0 {
		without = words
	}
	return strings.Join(without, " ")
}

// foldAccents takes the accents from letters. NFD separates them from their letters.
func foldAccents(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(s))
}

// splitCapitals puts a space where a word begins with a capital within a name: codePostal, IDStation.
func splitCapitals(s string) string {
	runes := []rune(s)
	var out strings.Builder
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) {
			endsLower := unicode.IsLower(runes[i-1]) || unicode.IsDigit(runes[i-1])
			beginsWord := unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if endsLower || beginsWord {
				out.WriteByte(' ')
			}
		}
		out.WriteRune(r)
	}
	return out.String()
}

// MatchGlob reports whether the name of a column fits a pattern of --ignore, in which * stands for any characters. Case does not
// matter.
func MatchGlob(pattern, column string) bool {
	pattern, column = strings.ToLower(strings.TrimSpace(pattern)), strings.ToLower(strings.TrimSpace(column))
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == column
	}
	if !strings.HasPrefix(column, parts[0]) {
		return false
	}
	rest, last := column[len(parts[0]):], parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return strings.HasSuffix(rest, last)
}
