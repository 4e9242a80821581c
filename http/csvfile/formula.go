package csvfile

import "strings"

// EscapeFormula returns a cell that a spreadsheet reads as text: it puts an apostrophe before a text that begins like a
// formula, or with apostrophes and then like a formula, so that UnescapeFormula restores every
// text.
func EscapeFormula(text string) string {
	if beginsLikeFormula(text) {
		return "'" + text
	}
	return text
}

// UnescapeFormula removes the apostrophe that EscapeFormula put before a text, and no other.
func UnescapeFormula(cell string) string {
	if text, ok := strings.CutPrefix(cell, "'"); ok && beginsLikeFormula(text) {
		return text
	}
	return cell
}

// beginsLikeFormula reports whether a text begins, after any apostrophes, with a character that makes a spreadsheet
// read it as a formula and run it.
func beginsLikeFormula(text string) bool {
	text = strings.TrimLeft(text, "'")
	return text != "" && strings.IndexByte("=+-@\t\r", text[0]) >= 0
}
