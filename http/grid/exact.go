package grid

import (
	"bufio"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Exact writes the rows of a sheet that programs read back: every cell stays as it is, line ends and what a
// spreadsheet would compute as well.
type Exact struct {
	out   *bufio.Writer
	comma rune
}

// Exact begins a sheet.
func (f Form) Exact(out io.Writer) *Exact {
	w := &Exact{bufio.NewWriter(out), f.comma}
	w.out.WriteString(f.mark) // should it fail, so will Flush
	return w
}

// Decimal is how numbers with a fraction are written, for who opens this form.
func (f Form) Decimal(number string) string {
	if f.comma == ';' {
		return strings.Replace(number, ".", ",", 1)
	}
	return number
}

// Row writes a row.
func (w *Exact) Row(cells ...string) error {
	for i, cell := range cells {
		if i > 0 {
			w.out.WriteRune(w.comma)
		}
		if !w.quotes(cell) {
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

// quotes says whether a cell would be read otherwise without quotes.
func (w *Exact) quotes(cell string) bool {
	first, _ := utf8.DecodeRuneInString(cell)
	last, _ := utf8.DecodeLastRuneInString(cell)
	return strings.ContainsRune(cell, w.comma) || strings.ContainsAny(cell, "\"\r\n") || unicode.IsSpace(first) || unicode.IsSpace(last)
}

// Flush ends the sheet.
func (w *Exact) Flush() error { return w.out.Flush() }
