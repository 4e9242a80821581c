package parse

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/unicode/norm"
)

// clean repairs a typed line before it is split into terms. It undoes a wrong decoding, turns full-width letters
// into plain ones, separates words that were typed without a space, and drops telephone numbers.
// Only questions are cleaned. The names of the base are not, so the terms of an index do not depend on it.
func clean(line string) string {
	if isPlain(line) {
		return line
	}
	if !utf8.ValidString(line) {
		if decoded, err := charmap.Windows1252.NewDecoder().String(line); err == nil {
			line = decoded
		}
	}
	if strings.ContainsAny(line, "âÃÅÂ\u0092\x00") {
		line = mojibake.Replace(line)
	}
	if !norm.NFKC.IsNormalString(line) {
		line = norm.NFKC.String(line)
	}
	if countDigits(line) >= telephoneDigits {
		line = telephone.ReplaceAllString(line, ", ")
	}
	if strings.Contains(line, "°") {
		line = numberSign.ReplaceAllString(lastSign.ReplaceAllString(line, " "), " no ")
	}
	return splitCamel(line)
}

// telephoneDigits is the least number of digits of a line that holds a telephone number.
const telephoneDigits = 10

func countDigits(line string) (n int) {
	for i := range len(line) {
		if '0' <= line[i] && line[i] <= '9' {
			n++
		}
	}
	return n
}

var (
	// telephone matches a French telephone number. Its digits would be read as house numbers and postcodes.
	telephone = regexp.MustCompile(`(?i)(\btel[.: ]*)?(\+33|\b0)[ .]?[1-9]([ .-]?[0-9]{2}){4}\b`)
	// numberSign matches the sign that stands before a house number.
	numberSign = regexp.MustCompile(`(?i)\bn° ?`)
	// lastSign matches one whose number has not been typed yet.
	lastSign = regexp.MustCompile(`(?i)\s*\bn°\s*$`)

	// mojibake restores letters whose UTF-8 bytes were decoded as Windows-1252.
	mojibake = strings.NewReplacer("â€™", "'", "â€˜", "'", "\u0092", "'", "Ã©", "é", "Ã¨", "è", "Ãª", "ê", "Ã«", "ë", "Ã®", "î", "Ã¯", "ï",
		"Ã´", "ô", "Ã§", "ç", "Ã¢", "â", "Ã¹", "ù", "Ã»", "û", "Ã‰", "É", "Å“", "œ", "Â°", "°", "Â ", " ", "\x00", " ")
)

// isPlain reports whether a line needs no cleaning. It is the fast path of nearly every line: only ASCII, no capital
// behind a small letter, and fewer digits than a telephone number has.
func isPlain(line string) bool {
	for i := range len(line) {
		c := line[i]
		if c >= utf8.RuneSelf || c < ' ' || i > 0 && 'A' <= c && c <= 'Z' && 'a' <= line[i-1] && line[i-1] <= 'z' {
			return false
		}
	}
	return countDigits(line) < telephoneDigits
}

// splitCamel puts a space between a small letter and a capital: RueTurgot.
func splitCamel(line string) string {
	var out strings.Builder
	before, from := ' ', 0
	for i, r := range line {
		if unicode.IsLower(before) && unicode.IsUpper(r) {
			out.WriteString(line[from:i])
			out.WriteByte(' ')
			from = i
		}
		before = r
	}
	if from == 0 {
		return line
	}
	out.WriteString(line[from:])
	return out.String()
}
