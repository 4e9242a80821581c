// Package csvfile reads and writes CSV: files of this program, and files of customers, which come back with more columns.
//
// A SafeWriter writes for people: no cell of text begins like a formula. An ExactWriter writes for programs, and package record reads
// every cell back unchanged. Both write a Dialect: RFC 4180, or what a French Excel opens. encoding/csv does not serve for ExactWriter:
// it rewrites line ends in cells, and quotes no cell for the spaces around it.
//
// A File keeps the form of a customer's file: its encoding, byte order mark, separator, quotes and line ends. Rows that are read and
// written without added columns have the same bytes:
//
//	io.ReaderAt ─> Open ─> File ─> Rows ─> RowReader.Read ─> Row ─> ColumnWriter.AppendRow ─> Encode ─> bytes
//	               form,   names            cells and text           text and added cells
//
// Package record detects encodings and separators, for imports too. Its own reader returns only values, and refuses what a File must return
// unchanged: an open quote, or too many cells.
package csvfile

import (
	"bufio"
	"encoding/csv"
	"io"
	"net/http"
	"strings"

	"golang.org/x/text/language"
)

// Dialect is a form of CSV: the separator, and whether a byte order mark comes first. Use RFC4180 or FrenchExcel.
type Dialect struct {
	byteOrderMark string
	separator     rune
}

// The dialects. A French Excel recognizes UTF-8 by the byte order mark alone, and separates cells at semicolons.
var (
	RFC4180     = Dialect{"", ','}
	FrenchExcel = Dialect{"\uFEFF", ';'}
)

// MediaType is the Content-Type of CSV files.
const MediaType = "text/csv; charset=utf-8"

// ChooseDialect is the dialect that a request names, "standard" or "excel", otherwise PreferredDialect for its header.
func ChooseDialect(name string, h http.Header) Dialect {
	switch name {
	case "standard":
		return RFC4180
	case "excel":
		return FrenchExcel
	}
	return PreferredDialect(h)
}

// PreferredDialect is FrenchExcel for a request that prefers French (Accept-Language), otherwise RFC4180.
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

// SafeWriter writes the rows of one file for people, who open it in a spreadsheet. It is not safe for concurrent use, and does not
// close what it writes to.
type SafeWriter struct {
	out     *bufio.Writer
	encoder *csv.Writer
	row     []string
}

// NewSafeWriter begins a file. Rows are buffered until Flush.
func (d Dialect) NewSafeWriter(out io.Writer) *SafeWriter {
	w := &SafeWriter{out: bufio.NewWriter(out)}
	w.out.WriteString(d.byteOrderMark) // an error of it comes back from Flush
	w.encoder = csv.NewWriter(w.out)
	w.encoder.Comma, w.encoder.UseCRLF = d.separator, true
	return w
}

// WriteRow writes a row: texts, each with EscapeFormula, and numbers after them unchanged, because a minus before a number is not a
// formula. Flush may be the first to return a write error.
func (w *SafeWriter) WriteRow(texts []string, numbers ...string) error {
	w.row = w.row[:0]
	for _, t := range texts {
		w.row = append(w.row, EscapeFormula(t))
	}
	return w.encoder.Write(append(w.row, numbers...))
}

// Flush ends the file. It returns the first error of writing it.
func (w *SafeWriter) Flush() error {
	w.encoder.Flush()
	if err := w.encoder.Error(); err != nil {
		return err
	}
	return w.out.Flush()
}

// ExactWriter writes the rows of one file for programs: every cell is unchanged, line ends and formulas as well. It is not safe
// for concurrent use, and does not close what it writes to.
type ExactWriter struct {
	out       *bufio.Writer
	separator string
	row       []byte
}

// NewExactWriter begins a file. Rows are buffered until Flush.
func (d Dialect) NewExactWriter(out io.Writer) *ExactWriter {
	w := &ExactWriter{out: bufio.NewWriter(out), separator: string(d.separator)}
	w.out.WriteString(d.byteOrderMark) // an error of it comes back from Flush
	return w
}

// FormatDecimal writes a number with the decimal sign of the dialect: the comma in a French Excel. number may have a decimal point.
func (d Dialect) FormatDecimal(number string) string {
	if d.separator == ';' {
		return strings.Replace(number, ".", ",", 1)
	}
	return number
}

// WriteRow writes a row. Flush may be the first to return an error.
func (w *ExactWriter) WriteRow(cells ...string) error {
	w.row = w.row[:0]
	for i, cell := range cells {
		if i > 0 {
			w.row = append(w.row, w.separator...)
		}
		w.row = appendCell(w.row, cell, w.separator)
	}
	_, err := w.out.Write(append(w.row, "\r\n"...))
	return err
}

// Flush ends the file. It returns the first error of writing it.
func (w *ExactWriter) Flush() error { return w.out.Flush() }
