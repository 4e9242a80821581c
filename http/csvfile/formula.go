package csvfile

import "strings"

// EscapeFormula is a text as a cell that a spreadsheet takes for a text: an apostrophe comes before one that begins like a
// formula. It also comes before one that begins with apostrophes and then like a formula, so that UnescapeFormula gives every
// text back.
func EscapeFormula(text string) string {
	if beginsLikeFormula(text) {
		return "'" + text
	}
	return text
}

// UnescapeFormula takes off the apostrophe that EscapeFormula put before a text, and no other.
func UnescapeFormula(cell string) string {
	if text, ok := strings.CutPrefix(cell, "'"); ok && beginsLikeFormula(text) {
		return text
	}
	return cell
}

// beginsLikeFormula reports whether a text begins, behind any apostrophes, with a character that makes a spreadsheet
// take it for a formula and run it.
func beginsLikeFormula(text string) bool {
	text = strings.TrimLeft(text, "'")
	return text != "" && strings.IndexByte("=+-@\t\r", text[0]) >= 0
}
