package sitefile

import (
	"regexp"
	"strings"

	"lieudit/http/sitefile/clean"
	"lieudit/http/sitefile/record"
)

// totalsWord is what the first cell of a row of totals says.
var totalsWord = regexp.MustCompile(`(?i)^(sous[- ]?)?(total|totaux|somme|moyenne|grand total)( g[ée]n[ée]ral)?\s*[:=]?$`)

// isTotals reports whether a row of a table sums up the others: its first cell says so, the others that are filled are numbers, and about
// half are empty. A filling station called Total has an address.
func isTotals(r record.Record, columns int) bool {
	filled := 0
	for _, v := range r.Values {
		text := strings.TrimSpace(v.Text)
		if text == "" {
			continue
		}
		if filled++; filled == 1 && !totalsWord.MatchString(text) {
			return false
		}
		if _, isNumber := clean.Decimal(text); filled > 1 && !isNumber {
			return false
		}
	}
	return filled > 0 && columns > 2 && filled < columns && filled*2 <= columns+2
}
