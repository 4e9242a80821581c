package csvgeocode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// bom is the byte order mark with which Excel begins UTF-8 files. It is kept in the result.
const bom = "\ufeff"

// header is what the first line of a file and the job's columns determine.
type header struct {
	columns        []string // names as they stand in the file
	raw            string   // the line without its end and without a byte order mark
	hasBOM         bool
	lineEnd        string // "\n" or "\r\n"
	separator      rune
	rowsOffset     int64 // offset of the first row, in bytes of the decoded text
	addressColumns []int // indexes of the address columns
	postcodeColumn int   // index; -1: none
	cityCodeColumn int   // index; -1: none
}

// ColumnError names a column that the file lacks, or a result column that it has already.
type ColumnError struct {
	Column         string
	AlreadyPresent bool     // true: it is a result column of an earlier run
	Columns        []string // all columns of the file, where Column is missing
}

func (e *ColumnError) Error() string {
	if e.AlreadyPresent {
		return fmt.Sprintf("the file has a column %s already: it holds results of another run", e.Column)
	}
	return fmt.Sprintf("there is no column %q; the columns are: %s", e.Column, strings.Join(e.Columns, ", "))
}

// FormatError says why a file is no CSV. Reason is a sentence about the file, with advice where there is any.
type FormatError struct{ Reason string }

func (e *FormatError) Error() string { return "this is no CSV file: " + e.Reason }

// openText opens the input as UTF-8 text that begins at an offset of the decoded text. It decodes all text before the
// offset again, since an offset of the text says nothing about a place in the file. The caller closes the file.
func (j Job) openText(offset int64) (*textReader, error) {
	file, err := os.Open(j.In)
	if err != nil {
		return nil, err
	}
	text := &textReader{Reader: file, file: file}
	if j.Encoding == Windows1252 {
		text.Reader = charmap.Windows1252.NewDecoder().Reader(file)
	}
	if _, err := io.CopyN(io.Discard, text, offset); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return text, nil
}

// textReader reads the decoded text of a file.
type textReader struct {
	io.Reader
	file *os.File
}

// readHeader reads the first line and finds the columns of the job in it. It reads up to maxRowBytes, because a column's
// name may hold line breaks within quotes. A file that is no CSV is a *FormatError.
func (j Job) readHeader() (h header, err error) {
	text, err := j.openText(0)
	if err != nil {
		return h, err
	}
	defer text.file.Close()
	start := make([]byte, maxRowBytes)
	n, err := io.ReadFull(text, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return h, err
	}
	if reason := findFormatProblem(start[:n], n == len(start)); reason != "" {
		return h, &FormatError{reason}
	}
	start, h.hasBOM = bytes.CutPrefix(start[:n], []byte(bom))
	if h.separator = j.Separator; h.separator == 0 {
		h.separator = detectSeparator(start)
	}
	if err := h.parseColumns(start); err != nil {
		return h, err
	}
	return h, h.resolveColumns(j)
}

// findFormatProblem says why the beginning of a file is no CSV, "" when it may be one. isCut says that the file goes on
// behind it: then it may end within a character, which is left out of the check.
func findFormatProblem(start []byte, isCut bool) string {
	for isCut && len(start) > 0 && !utf8.RuneStart(start[len(start)-1]) {
		start = start[:len(start)-1]
	}
	line, _, _ := bytes.Cut(start, []byte("\n"))
	switch {
	case len(bytes.TrimSpace(start)) == 0:
		return "it is empty"
	case bytes.HasPrefix(start, []byte("\x1f\x8b")):
		return "it is compressed with gzip; unpack it first"
	case bytes.HasPrefix(start, []byte("PK\x03\x04")):
		return "it is a spreadsheet or a zip archive; save it as CSV"
	case bytes.IndexByte(start, 0) >= 0:
		return "it is binary"
	case !utf8.Valid(line):
		return "its header is not UTF-8; if it is from Excel, try --encoding " + Windows1252
	}
	return ""
}

// detectSeparator returns the separator that occurs most often in the header: comma, semicolon, tab or bar. A header
// without any has one column, and a comma separates the results from it.
func detectSeparator(start []byte) rune {
	line, _, _ := bytes.Cut(start, []byte("\n"))
	best, highest := ',', 0
	for _, c := range ",;\t|" {
		if n := bytes.Count(line, []byte(string(c))); n > highest {
			best, highest = c, n
		}
	}
	return best
}

// parseColumns reads the header's columns, its line end and where the rows begin. start has no byte order mark, which
// offsets of the file's text count all the same.
func (h *header) parseColumns(start []byte) error {
	rows := newRowReader(bytes.NewReader(start), h.separator, 0)
	row, err := rows.readRow()
	if err != nil {
		return err
	}
	h.columns, h.raw, h.rowsOffset = row.fields, row.raw, rows.offset
	h.lineEnd = "\n"
	if bytes.HasSuffix(start[:rows.offset], []byte("\r\n")) {
		h.lineEnd = "\r\n"
	}
	if h.hasBOM {
		h.rowsOffset += int64(len(bom))
	}
	return nil
}

// resolveColumns finds the job's columns in the header. It returns a *ColumnError for a column that the file lacks, and
// for a file that holds results already: its result columns would stand there twice.
func (h *header) resolveColumns(j Job) error {
	for _, c := range resultColumnNames() {
		if slices.Contains(h.columns, c) {
			return &ColumnError{Column: c, AlreadyPresent: true}
		}
	}
	var err error
	if h.postcodeColumn, err = h.columnIndex(j.Postcode); err != nil {
		return err
	}
	if h.cityCodeColumn, err = h.columnIndex(j.CityCode); err != nil {
		return err
	}
	for _, c := range j.Columns {
		i, err := h.columnIndex(c)
		if err != nil {
			return err
		}
		h.addressColumns = append(h.addressColumns, i)
	}
	for i := range h.columns {
		if len(j.Columns) == 0 {
			h.addressColumns = append(h.addressColumns, i)
		}
	}
	return nil
}

// columnIndex returns the index of a column, -1 for the empty name. It ignores spaces around the name, but not the case of
// its letters. Of two columns with one name it is the first.
func (h *header) columnIndex(column string) (int, error) {
	if column == "" {
		return -1, nil
	}
	i := slices.IndexFunc(h.columns, func(c string) bool { return strings.TrimSpace(c) == strings.TrimSpace(column) })
	if i < 0 {
		return -1, &ColumnError{Column: column, Columns: h.columns}
	}
	return i, nil
}
