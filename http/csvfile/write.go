// Package csvfile writes tables as CSV, as RFC 4180 has it or as a French Excel opens it: for people, where no cell of text
// begins as a formula would (Writer), or for programs that read back every cell as it is (Exact, Read).
package csvfile

import (
	"bufio"
	"encoding/csv"
	"io"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"
)

// Dialect is how a sheet is written.
type Dialect struct {
	byteOrderMark string
	separator     rune
}

// Standard is RFC 4180. Excel is for one in French: it takes UTF-8 for what it is by the mark alone, and cells apart
// by semicolons.
var (
	RFC4180     = Dialect{"", ','}
	FrenchExcel = Dialect{"\uFEFF", ';'}
)

// MediaType is the Content-Type of CSV files.
const MediaType = "text/csv; charset=utf-8"

// ChooseDialect is the dialect that a request names, "standard" or "excel", else PreferredDialect.
func ChooseDialect(name string, h http.Header) Dialect {
	switch name {
	case "standard":
		return RFC4180
	case "excel":
		return FrenchExcel
	}
	return PreferredDialect(h)
}

// PreferredDialect is FrenchExcel for a request that prefers French (Accept-Language), else RFC4180.
func PreferredDialect(h http.Header) Dialect {
	tags, _, err := language.ParseAcceptLanguage(h.Get("Accept-Language"))
	if err != nil || len(tags) == 0 {
		return RFC4180
	}
	if base, _ := tags[0].Base(); base.String() == "fr" {
		return FrenchExcel
	}
	return RFC4180
}

// SafeWriter writes the rows of one sheet.
type SafeWriter struct {
	out     *bufio.Writer
	encoder *csv.Writer
	row     []string
}

// NewSafeWriter begins a sheet.
func (f Dialect) NewSafeWriter(out io.Writer) *SafeWriter {
	w := &SafeWriter{out: bufio.NewWriter(out)}
	w.out.WriteString(f.byteOrderMark) // should it fail, so will Flush
	w.encoder = csv.NewWriter(w.out)
	w.encoder.Comma, w.encoder.UseCRLF = f.separator, true
	return w
}

// WriteRow writes a row: texts, each made harmless, and numbers after them.
func (w *SafeWriter) WriteRow(texts []string, numbers ...string) error {
	w.row = w.row[:0]
	for _, t := range texts {
		w.row = append(w.row, escapeFormula(t))
	}
	return w.encoder.Write(append(w.row, numbers...))
}

// escapeFormula puts a quotation mark before what a spreadsheet would compute.
func escapeFormula(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

// Flush ends the sheet.
func (w *SafeWriter) Flush() error {
	w.encoder.Flush()
	if err := w.encoder.Error(); err != nil {
		return err
	}
	return w.out.Flush()
}

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
