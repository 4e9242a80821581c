package sheet

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

const bom = "\ufeff"

// head is what the first line of a file settles.
type head struct {
	columns   []string
	raw       string // the line without its end and without a byte order mark
	bom       bool
	end       string // of lines
	separator rune
	length    int64 // where the rows begin
	text      []int // columns of the address
	postcode  int   // -1: none
	cityCode  int   // -1: none
}

// ColumnError is a column that the file does not have, or one it has and should not.
type ColumnError struct {
	Column  string
	Taken   bool
	Columns []string
}

func (e *ColumnError) Error() string {
	if e.Taken {
		return fmt.Sprintf("the file has a column %s already: it holds results of another run", e.Column)
	}
	return fmt.Sprintf("there is no column %q; the columns are: %s", e.Column, strings.Join(e.Columns, ", "))
}

// FormatError is a file that is no CSV.
type FormatError struct{ Looks string }

func (e *FormatError) Error() string { return "this is no CSV file: " + e.Looks }

// open is the text of the file from a position on.
func (j Job) open(from int64) (*stream, error) {
	file, err := os.Open(j.In)
	if err != nil {
		return nil, err
	}
	s := &stream{Reader: file, file: file}
	if j.Encoding == Windows1252 {
		s.Reader = charmap.Windows1252.NewDecoder().Reader(file)
	}
	if _, err := io.CopyN(io.Discard, s, from); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return s, nil
}

// stream is the text of a file.
type stream struct {
	io.Reader
	file *os.File
}

func (j Job) readHead() (h head, err error) {
	s, err := j.open(0)
	if err != nil {
		return h, err
	}
	defer s.file.Close()
	start := make([]byte, maxRecord)
	n, err := io.ReadFull(s, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return h, err
	}
	if looks := looks(start[:n], n == len(start)); looks != "" {
		return h, &FormatError{looks}
	}
	start, h.bom = bytes.CutPrefix(start[:n], []byte(bom))
	if h.separator = j.Separator; h.separator == 0 {
		h.separator = separator(start)
	}
	if err := h.read(start); err != nil {
		return h, err
	}
	return h, h.find(j)
}

// looks says what is wrong with the beginning of a file, if anything is.
func looks(start []byte, more bool) string {
	for more && len(start) > 0 && !utf8.RuneStart(start[len(start)-1]) {
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

// separator is what the header has most of.
func separator(start []byte) rune {
	line, _, _ := bytes.Cut(start, []byte("\n"))
	best, most := ',', 0
	for _, c := range ",;\t|" {
		if n := bytes.Count(line, []byte(string(c))); n > most {
			best, most = c, n
		}
	}
	return best
}

// read reads the header's columns.
func (h *head) read(start []byte) error {
	rows := newRows(bytes.NewReader(start), h.separator, 0)
	row, err := rows.next()
	if err != nil {
		return err
	}
	h.columns, h.raw, h.length = row.fields, row.raw, rows.offset
	h.end = "\n"
	if bytes.HasSuffix(start[:rows.offset], []byte("\r\n")) {
		h.end = "\r\n"
	}
	if h.bom {
		h.length += int64(len(bom))
	}
	return nil
}

// find finds the columns of the job.
func (h *head) find(j Job) error {
	for _, c := range resultColumns() {
		if slices.Contains(h.columns, c) {
			return &ColumnError{Column: c, Taken: true}
		}
	}
	var err error
	if h.postcode, err = h.index(j.Postcode); err != nil {
		return err
	}
	if h.cityCode, err = h.index(j.CityCode); err != nil {
		return err
	}
	for _, c := range j.Columns {
		i, err := h.index(c)
		if err != nil {
			return err
		}
		h.text = append(h.text, i)
	}
	for i := range h.columns {
		if len(j.Columns) == 0 {
			h.text = append(h.text, i)
		}
	}
	return nil
}

// index is where a column is; that of no column is -1.
func (h *head) index(column string) (int, error) {
	if column == "" {
		return -1, nil
	}
	i := slices.IndexFunc(h.columns, func(c string) bool { return strings.TrimSpace(c) == strings.TrimSpace(column) })
	if i < 0 {
		return -1, &ColumnError{Column: column, Columns: h.columns}
	}
	return i, nil
}
