package csvfile

import (
	"bufio"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ExactWriter writes the rows of a sheet that programs read back: every cell stays as it is, line ends and what a
// spreadsheet would compute as well.
type ExactWriter struct {
	out       *bufio.Writer
	separator rune
}

// NewExactWriter begins a sheet.
func (f Dialect) NewExactWriter(out io.Writer) *ExactWriter {
	w := &ExactWriter{bufio.NewWriter(out), f.separator}
	w.out.WriteString(f.byteOrderMark) // should it fail, so will Flush
	return w
}

// FormatDecimal is how numbers with a fraction are written, for who opens this form.
func (f Dialect) FormatDecimal(number string) string {
	if f.separator == ';' {
		return strings.Replace(number, ".", ",", 1)
	}
	return number
}

// WriteRow writes a row.
func (w *ExactWriter) WriteRow(cells ...string) error {
	for i, cell := range cells {
		if i > 0 {
			w.out.WriteRune(w.separator)
		}
		if !w.needsQuotes(cell) {
			w.out.WriteString(cell)
			continue
		}
		w.out.WriteByte('"')
		w.out.WriteString(strings.ReplaceAll(cell, `"`, `""`))
		w.out.WriteByte('"')
	}
	_, err := w.out.WriteString("\r\n")
	return err
}

// needsQuotes says whether a cell would be read otherwise without needsQuotes.
func (w *ExactWriter) needsQuotes(cell string) bool {
	first, _ := utf8.DecodeRuneInString(cell)
	last, _ := utf8.DecodeLastRuneInString(cell)
	return strings.ContainsRune(cell, w.separator) || strings.ContainsAny(cell, "\"\r\n") || unicode.IsSpace(first) || unicode.IsSpace(last)
}

// Flush ends the sheet.
func (w *ExactWriter) Flush() error { return w.out.Flush() }
