package csvfile

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// ColumnWriter writes the rows of a file with more columns. The text of all other cells is unchanged, with two exceptions:
// surplus cells are joined in the last column, so that the added cells stand in their columns, and an open quote at the end of the file
// is closed. It is safe for concurrent use.
type ColumnWriter struct {
	file      *File
	separator string
	added     []string
	replaced  []int // for each column of the file, the added column that overwrites it, or -1
	appended  []int // the other added columns, which follow those of the file
}

// AddColumns returns a writer that adds columns. A column that the file already has is overwritten.
func (f *File) AddColumns(names []string) *ColumnWriter {
	w := &ColumnWriter{file: f, separator: string(f.Separator), added: names, replaced: make([]int, len(f.Names))}
	for i := range w.replaced {
		w.replaced[i] = -1
	}
	for i, name := range names {
		if column := f.Column(name); column >= 0 {
			w.replaced[column] = i
		} else {
			w.appended = append(w.appended, i)
		}
	}
	return w
}

// AppendHeader appends the beginning of the file, up to its row of names, to text.
func (w *ColumnWriter) AppendHeader(text []byte) []byte {
	return w.AppendRow(append(text, w.file.preamble...), &w.file.header, w.added)
}

// AppendRow appends a row with the added cells, one for each added column, to text.
func (w *ColumnWriter) AppendRow(text []byte, r *Row, added []string) []byte {
	for i, column := range w.replaced {
		if i > 0 {
			text = append(text, w.separator...)
		}
		switch isLast := i == len(w.replaced)-1; {
		case column >= 0:
			text = w.appendAdded(text, added[column])
		case isLast && len(r.Cells) > i+1, r.isOpen && i == len(r.Cells)-1:
			text = appendCell(text, strings.Join(r.Cells[i:], w.separator), w.separator)
		case i < len(r.Cells):
			text = append(text, w.cellText(r, i)...)
		}
	}
	for _, column := range w.appended {
		text = append(text, w.separator...)
		text = w.appendAdded(text, added[column])
	}
	return append(text, w.file.lineEnd...)
}

// AppendUnchanged appends a row alone.
func (w *ColumnWriter) AppendUnchanged(text []byte, r *Row) []byte {
	return append(append(text, r.Text...), w.file.lineEnd...)
}

// Encode turns appended text, which it may change, into bytes of the file.
func (w *ColumnWriter) Encode(text []byte) ([]byte, error) { return w.file.encodeText(text) }

// cellText returns the text of a cell, with its quotes.
func (w *ColumnWriter) cellText(r *Row, i int) string {
	if i+1 < len(r.starts) {
		return r.Text[r.starts[i] : r.starts[i+1]-len(w.separator)]
	}
	return r.Text[r.starts[i]:]
}

// appendAdded appends an added cell. It is encoded first, because the nearest form of a character may be a quote.
func (w *ColumnWriter) appendAdded(text []byte, cell string) []byte {
	return appendCell(text, w.file.encodeCell(cell), w.separator)
}

// appendCell appends a cell, in quotes if it needs them.
func appendCell(text []byte, cell, separator string) []byte {
	if !needsQuotes(cell, separator) {
		return append(text, cell...)
	}
	text = append(text, '"')
	text = append(text, strings.ReplaceAll(cell, `"`, `""`)...)
	return append(text, '"')
}

// needsQuotes reports whether a reader could read a cell differently without quotes. Some drop the spaces around cells.
func needsQuotes(cell, separator string) bool {
	first, _ := utf8.DecodeRuneInString(cell)
	last, _ := utf8.DecodeLastRuneInString(cell)
	return strings.Contains(cell, separator) || strings.ContainsAny(cell, "\"\r\n") || unicode.IsSpace(first) || unicode.IsSpace(last)
}
