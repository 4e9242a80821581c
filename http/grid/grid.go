// Package grid writes tables as CSV, as RFC 4180 has it or as a French Excel opens it: for people, where no cell of text
// begins as a formula would (Writer), or for programs that read back every cell as it is (Exact, Read).
package grid

import (
	"bufio"
	"encoding/csv"
	"io"
	"net/http"
	"strings"

	"golang.org/x/text/language"
)

// Form is how a sheet is written.
type Form struct {
	mark  string
	comma rune
}

// Standard is RFC 4180. Excel is for one in French: it takes UTF-8 for what it is by the mark alone, and cells apart
// by semicolons.
var (
	Standard = Form{"", ','}
	Excel    = Form{"\uFEFF", ';'}
)

// Preferred is the form for who asks: Excel when French is preferred.
func Preferred(h http.Header) Form {
	tags, _, err := language.ParseAcceptLanguage(h.Get("Accept-Language"))
	if err != nil || len(tags) == 0 {
		return Standard
	}
	if base, _ := tags[0].Base(); base.String() == "fr" {
		return Excel
	}
	return Standard
}

// Writer writes the rows of one sheet.
type Writer struct {
	out   *bufio.Writer
	cells *csv.Writer
	row   []string
}

// New begins a sheet.
func (f Form) New(out io.Writer) *Writer {
	w := &Writer{out: bufio.NewWriter(out)}
	w.out.WriteString(f.mark) // should it fail, so will Flush
	w.cells = csv.NewWriter(w.out)
	w.cells.Comma, w.cells.UseCRLF = f.comma, true
	return w
}

// Row writes a row: texts, each made harmless, and numbers after them.
func (w *Writer) Row(texts []string, numbers ...string) error {
	w.row = w.row[:0]
	for _, t := range texts {
		w.row = append(w.row, harmless(t))
	}
	return w.cells.Write(append(w.row, numbers...))
}

// harmless puts a quotation mark before what a spreadsheet would compute.
func harmless(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

// Flush ends the sheet.
func (w *Writer) Flush() error {
	w.cells.Flush()
	if err := w.cells.Error(); err != nil {
		return err
	}
	return w.out.Flush()
}
