package guide

import (
	"strings"
	"unicode/utf8"
)

// Format returns the chapter as plain text whose lines have at most n columns: headings are underlined, paragraphs,
// items of lists and cells of tables are folded. Code and single words may be longer; they are never broken, so that they
// can be copied. A library would bring a terminal's colours and styles; the guide needs five forms.
func (c Chapter) Format(width int) string {
	f := formatter{width: width}
	for _, line := range strings.Split(c.Text, "\n") {
		f.addLine(line)
	}
	f.endBlock()
	return strings.TrimLeft(f.out.String(), "\n")
}

// formatter collects the lines of one block, and writes the block when it ends.
type formatter struct {
	width  int
	out    strings.Builder
	words  []string   // of the paragraph or item
	isItem bool       // words are an item of a list
	rows   [][]string // of the table
	inCode bool
}

// addLine takes one line of Markdown.
func (f *formatter) addLine(line string) {
	switch {
	case strings.HasPrefix(line, "```"):
		f.endBlock()
		if f.inCode = !f.inCode; f.inCode {
			f.out.WriteString("\n")
		}
	case f.inCode:
		f.writeLine("  ", line)
	case line == "":
		f.endBlock()
	case strings.HasPrefix(line, "#"):
		f.endBlock()
		f.writeHeading(line)
	case strings.HasPrefix(line, "|"):
		f.addRow(line)
	case strings.HasPrefix(line, "- "):
		f.startItem(line[len("- "):])
	default:
		f.words = append(f.words, strings.Fields(line)...)
	}
}

// endBlock writes the paragraph, item or table that has been collected.
func (f *formatter) endBlock() {
	switch {
	case len(f.rows) > 0:
		f.writeTable()
	case f.isItem:
		f.writeFolded("- ", "  ", f.words)
	case len(f.words) > 0:
		f.out.WriteString("\n")
		f.writeFolded("", "", f.words)
	}
	f.words, f.rows, f.isItem = nil, nil, false
}

// startItem begins an item. An empty line precedes the first item of a list.
func (f *formatter) startItem(text string) {
	isNext := f.isItem
	f.endBlock()
	if !isNext {
		f.out.WriteString("\n")
	}
	f.isItem, f.words = true, strings.Fields(text)
}

// writeHeading writes a heading and underlines it: with = the title of the chapter, with - the others.
func (f *formatter) writeHeading(line string) {
	text := strings.TrimLeft(line, "# ")
	rule := "-"
	if strings.HasPrefix(line, "# ") {
		rule = "="
	}
	f.out.WriteString("\n")
	f.writeLine("", text)
	f.writeLine("", strings.Repeat(rule, utf8.RuneCountInString(text)))
}

// writeFolded writes words in lines of at most the width. The first line begins with first, the others with rest.
func (f *formatter) writeFolded(first, rest string, words []string) {
	for i, line := range foldWords(words, f.width-utf8.RuneCountInString(first)) {
		if i > 0 {
			first = rest
		}
		f.writeLine(first, line)
	}
}

// foldWords joins words to lines of at most the width; a longer word is a line of its own.
func foldWords(words []string, width int) (lines []string) {
	line := ""
	for _, word := range words {
		if line != "" && utf8.RuneCountInString(line+" "+word) > width {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}

// writeLine writes a line without spaces at its end.
func (f *formatter) writeLine(prefix, text string) {
	f.out.WriteString(strings.TrimRight(prefix+text, " ") + "\n")
}

// addRow takes a row of a table. The line under the headers has no words and is left out.
func (f *formatter) addRow(line string) {
	if strings.Trim(line, "|-: ") == "" {
		return
	}
	if len(f.words) > 0 {
		f.endBlock()
	}
	const escaped, placeholder = `\|`, "\x00" // a bar inside a cell
	line = strings.ReplaceAll(line, escaped, placeholder)
	cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
	for i := range cells {
		cells[i] = strings.ReplaceAll(strings.TrimSpace(cells[i]), placeholder, "|")
	}
	f.rows = append(f.rows, cells)
}

// columnGap is the number of spaces between two columns.
const columnGap = 2

// writeTable writes the rows in aligned columns. The widest columns are folded until the table fits.
func (f *formatter) writeTable() {
	widths := f.fitColumns()
	f.out.WriteString("\n")
	for _, row := range f.rows {
		cells, height := make([][]string, len(row)), 0
		for i, cell := range row {
			cells[i] = foldWords(strings.Fields(cell), widths[i])
			height = max(height, len(cells[i]))
		}
		for n := range height {
			f.writeLine("", alignCells(cells, n, widths))
		}
	}
}

// fitColumns returns the widths of the columns: those of their cells if they all fit, otherwise with the widest made narrower, but
// never so narrow that a word would be broken.
func (f *formatter) fitColumns() []int {
	columns := 0
	for _, row := range f.rows {
		columns = max(columns, len(row))
	}
	widths, least := make([]int, columns), make([]int, columns)
	total := columnGap * (columns - 1)
	for i := range columns {
		for _, row := range f.rows {
			if i < len(row) {
				widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
				least[i] = max(least[i], longestWord(row[i]))
			}
		}
		total += widths[i]
	}
	for ; total > f.width; total-- {
		widest := -1
		for i := range columns {
			if widths[i] > least[i] && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

// longestWord returns the number of columns of the longest word.
func longestWord(text string) (longest int) {
	for _, word := range strings.Fields(text) {
		longest = max(longest, utf8.RuneCountInString(word))
	}
	return longest
}

// alignCells joins the n-th lines of a row's cells, each padded to its column.
func alignCells(cells [][]string, n int, widths []int) string {
	var line strings.Builder
	for i, lines := range cells {
		text := ""
		if n < len(lines) {
			text = lines[n]
		}
		line.WriteString(text + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+columnGap))
	}
	return line.String()
}
