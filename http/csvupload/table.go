package csvupload

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"

	"lieudit/schemas/refusal"
)

const (
	// MaxRows is the most rows that a file may have, its header aside.
	MaxRows = 200_000
	// maxRowBytes is how long a row may be, in bytes of its text. Without a bound, a quote that nothing closes would read the rest
	// of the file into memory.
	maxRowBytes = 1 << 20
)

// FormatError says why a file is no CSV. Reason is a sentence without a point, about the file.
type FormatError struct{ Reason string }

func (e *FormatError) Error() string { return "no CSV file: " + e.Reason }

// Table is an uploaded file whose rows can be read.
type Table struct {
	Columns []string // names, without the spaces around them
	Rows    int      // without the header

	upload    *Upload
	header    []string // the names as they stand in the file
	encoding  textEncoding
	separator rune
	useCRLF   bool // lines end with \r\n
}

// ReadTable reads the whole file. Its errors are *FormatError, refusal.RequestMalformed for an empty file, refusal.BodyTooLarge for
// more than MaxRows rows, and errors of the disk.
func (u *Upload) ReadTable() (*Table, error) {
	encoding, err := detectEncoding(u.open())
	if err != nil {
		return nil, err
	}
	t := &Table{upload: u, encoding: encoding}
	if err := t.detectDialect(); err != nil {
		return nil, err
	}
	rows := t.openRows()
	header, err := rows.read()
	if errors.Is(err, io.EOF) {
		return nil, refusal.RequestMalformed
	}
	for ; err == nil; t.Rows++ {
		if t.Rows > MaxRows { // the header is one of them here
			return nil, refusal.BodyTooLarge
		}
		if t.Rows == 0 {
			t.header, t.Columns = header, trimAll(header)
		}
		_, err = rows.read()
	}
	t.Rows--
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return t, rows.checkEnd()
}

// Column finds a column by its name, the first of several; -1: there is none.
func (t *Table) Column(name string) int { return slices.Index(t.Columns, strings.TrimSpace(name)) }

// Charset is the name of the file's encoding, as a Content-Type has it.
func (t *Table) Charset() string { return t.encoding.charset }

func trimAll(cells []string) []string {
	trimmed := make([]string, len(cells))
	for i, cell := range cells {
		trimmed[i] = strings.TrimSpace(cell)
	}
	return trimmed
}

// separators are those that a file may have.
const separators = ",;\t|"

// detectDialect finds the separator and the line end in the first line: of comma, semicolon, tab and bar the separator is the one
// that occurs most often outside quotes.
func (t *Table) detectDialect() error {
	line, err := bufio.NewReaderSize(t.encoding.decode(t.upload.open()), 64<<10).ReadSlice('\n')
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return err
	}
	t.useCRLF = bytes.HasSuffix(line, []byte("\r\n"))
	counts, isQuoted := map[byte]int{}, false
	for _, c := range line {
		if c == '"' {
			isQuoted = !isQuoted
		}
		if !isQuoted {
			counts[c]++
		}
	}
	t.separator = ','
	for _, c := range []byte(separators) {
		if counts[c] > counts[byte(t.separator)] {
			t.separator = rune(c)
		}
	}
	return nil
}

// rowReader reads the rows of a table, its header first. It is lenient, because customers' files are: quotes may stand within a
// cell, and rows may have more or fewer cells than the header. Empty lines are no rows.
type rowReader struct {
	csv   *csv.Reader
	guard *rowGuard
	last  []string // the row that was read last
}

func (t *Table) openRows() *rowReader {
	guard := &rowGuard{Reader: t.encoding.decode(t.upload.open()), allowed: maxRowBytes}
	reader := csv.NewReader(guard)
	reader.Comma, reader.LazyQuotes, reader.FieldsPerRecord = t.separator, true, -1
	return &rowReader{csv: reader, guard: guard}
}

// read returns the next row. At the end it returns io.EOF. A row longer than maxRowBytes is a *FormatError.
func (r *rowReader) read() ([]string, error) {
	row, err := r.csv.Read()
	if err != nil {
		return nil, err
	}
	r.guard.allowed, r.last = r.csv.InputOffset()+maxRowBytes, row
	return row, nil
}

// checkEnd is a *FormatError where the quote of the last cell is not closed, for which encoding/csv has no error where quotes may
// stand within cells. A cell with a line end is quoted, so the file has to end with a quote.
func (r *rowReader) checkEnd() error {
	if len(r.last) > 0 && strings.Contains(r.last[len(r.last)-1], "\n") && r.guard.lastByte != '"' {
		return errUnclosedQuote
	}
	return nil
}

var errUnclosedQuote = &FormatError{"a quote is never closed, or a row is longer than 1 MiB"}

// rowGuard fails when a reader reads more than one row can hold.
type rowGuard struct {
	io.Reader
	read, allowed int64
	lastByte      byte // the last that is no space
}

func (g *rowGuard) Read(p []byte) (int, error) {
	if g.read > g.allowed {
		return 0, errUnclosedQuote
	}
	n, err := g.Reader.Read(p)
	g.read += int64(n)
	if text := bytes.TrimSpace(p[:n]); len(text) > 0 {
		g.lastByte = text[len(text)-1]
	}
	return n, err
}
