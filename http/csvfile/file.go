package csvfile

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"lieudit/http/sitefile/record"
)

// File is a CSV file that is read row by row and written again with more columns. It is safe for concurrent use, if its data is.
type File struct {
	Names     []string // of the columns, decoded, with the spaces around them
	Encoding  string   // one of record.Encodings()
	Separator rune     // between cells; for a file of one column a character that it does not contain, if possible
	// FirstRow is the offset of the rows, at which the row of names ends. Offsets count bytes of the text: those of the file,
	// except for UTF-16, which is UTF-8 in the text.
	FirstRow int64

	charset
	data     io.ReaderAt
	size     int64
	preamble string // before the row of names: a byte order mark, a line that names the separator
	header   Row
	lineEnd  string // "\n" or "\r\n"
}

// Options set what Open would otherwise detect. The zero value detects everything.
type Options struct {
	FileName  string // helps to distinguish CSV from JSON; may be empty
	Encoding  string // one of record.Encodings()
	Separator rune
}

// FormatError says why a file is not CSV. Reason is a sentence about the file, with advice for the user.
type FormatError struct{ Reason string }

func (e *FormatError) Error() string { return e.Reason }

// ErrEmpty says that a file has no row of names.
var ErrEmpty = &FormatError{"the file is empty"}

// Open reads a file once to detect its form, and reads its row of names. Its errors are *FormatError,
// *RowError and those of data, which stays in use as long as the file.
func Open(data io.ReaderAt, size int64, o Options) (*File, error) {
	if size == 0 {
		return nil, ErrEmpty
	}
	found, err := record.DetectText(data, size, o.FileName, o.Encoding)
	if err != nil {
		return nil, toFormatError(err)
	}
	if found.Format == record.JSON {
		return nil, &FormatError{"this is JSON or GeoJSON: save it as CSV"}
	}
	f := &File{Encoding: found.Encoding, charset: newCharset(found.Codec), data: data, size: size}
	start, err := f.readStart()
	if err != nil {
		return nil, err
	}
	rest := f.cutPreamble(start, found.NamesSeparator)
	switch {
	case o.Separator != 0:
		f.Separator = o.Separator
	case found.Separator != 0:
		f.Separator = found.Separator
	default:
		f.Separator = cmp.Or(separatorOfNames(rest), rarestSeparator(rest))
	}
	return f, f.readNames(rest)
}

// separatorOfNames returns the separator that occurs most often in the row of names outside of quotes, or 0. A row of names decides if
// the rows below it have a single cell each. One that a space follows is part of a name.
func separatorOfNames(text []byte) rune {
	counts, isQuoted := map[byte]int{}, false
	text = bytes.TrimLeft(text, "\r\n")
	for i, c := range text {
		if c == '"' {
			isQuoted = !isQuoted
		}
		if c == '\n' && !isQuoted {
			break
		}
		if !isQuoted && (i+1 == len(text) || text[i+1] != ' ') {
			counts[c]++
		}
	}
	best := rune(0)
	for _, c := range record.Separators {
		if counts[byte(c)] > counts[byte(best)] {
			best = c
		}
	}
	return best
}

// toFormatError turns an error of package record, which reads more formats than CSV, into a *FormatError. It returns other errors unchanged.
func toFormatError(err error) error {
	format, ok := errors.AsType[*record.FormatError](err)
	if !ok {
		return err
	}
	what, wayOn, _ := strings.Cut(format.Reason, ": ")
	if strings.HasPrefix(wayOn, "save it") || strings.HasPrefix(wayOn, "export it") {
		wayOn = "save it as CSV"
	}
	return &FormatError{strings.TrimSuffix(what+": "+wayOn, ": ")}
}

// readStart reads the beginning of the text, as much as a row may have, and detects how its lines end.
func (f *File) readStart() ([]byte, error) {
	start := make([]byte, min(maxRowBytes, f.size*utf8.UTFMax))
	n, err := io.ReadFull(f.decodeText(io.NewSectionReader(f.data, 0, f.size)), start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if start = start[:n]; endsLinesWithCR(start) {
		f.usesCR = true
		swapLineEnds(start)
	}
	return start, nil
}

// endsLinesWithCR reports whether the first line end of a text outside of quotes is \r alone, as in files of old Macintosh programs.
func endsLinesWithCR(text []byte) bool {
	text = bytes.TrimLeft(text, "\r\n")
	isQuoted := false
	for i, c := range text {
		switch {
		case c == '"':
			isQuoted = !isQuoted
		case isQuoted:
		case c == '\n':
			return false
		case c == '\r':
			return i+1 == len(text) || text[i+1] != '\n'
		}
	}
	return false
}

// byteOrderMark is the character with which Excel begins files, as text.
const byteOrderMark = "\uFEFF"

// cutPreamble cuts off what precedes the row of names.
func (f *File) cutPreamble(start []byte, namesSeparator bool) (rest []byte) {
	rest = bytes.TrimPrefix(start, []byte(byteOrderMark))
	if namesSeparator {
		_, rest, _ = bytes.Cut(rest, []byte("\n"))
	}
	f.preamble = string(start[:len(start)-len(rest)])
	return rest
}

// rarestSeparator returns the first separator that a text does not have outside quotes, or a comma. It separates added results from
// the only column.
func rarestSeparator(text []byte) rune {
	var outside [256]bool
	isQuoted := false
	for _, c := range text {
		if c == '"' {
			isQuoted = !isQuoted
		}
		outside[c] = outside[c] || !isQuoted
	}
	for _, c := range record.Separators {
		if !outside[c] {
			return c
		}
	}
	return ','
}

// readNames reads the row of names at the beginning of start.
func (f *File) readNames(start []byte) error {
	rows := newRowReader(bytes.NewReader(start), f.Separator, 0)
	header, err := rows.Read()
	if err == io.EOF {
		return ErrEmpty
	}
	if err != nil {
		return err
	}
	for _, name := range header.Cells {
		f.Names = append(f.Names, f.decodeCell(name))
	}
	f.header, f.FirstRow = header, rows.Offset()+int64(len(f.preamble))
	f.lineEnd = "\n"
	if bytes.HasSuffix(start[:rows.Offset()], []byte("\r\n")) {
		f.lineEnd = "\r\n"
	}
	return nil
}

// Rows reads the rows from an offset on: FirstRow, or an Offset of an earlier reader. In UTF-16 all text before the offset is decoded
// again, because an offset of the text is not one of the file.
func (f *File) Rows(offset int64) (*RowReader, error) {
	start := offset
	if f.wide != nil {
		start = 0
	}
	text := f.decodeText(io.NewSectionReader(f.data, start, f.size-start))
	if _, err := io.CopyN(io.Discard, text, offset-start); err != nil {
		return nil, err
	}
	return newRowReader(text, f.Separator, offset), nil
}

// Column returns the index of the first column with a name, without regard to the spaces around names, or -1.
func (f *File) Column(name string) int {
	name = strings.TrimSpace(name)
	return slices.IndexFunc(f.Names, func(n string) bool { return strings.TrimSpace(n) == name })
}

// Values returns the cells of a row, decoded, at most one for each column. The last column has the surplus cells too, without
// the separators at their end.
func (f *File) Values(r Row) []string {
	values := make([]string, min(len(r.Cells), len(f.Names)))
	for i := range values {
		values[i] = f.Value(r, i)
	}
	return values
}

// Value returns the cell of a row in a column as Values does. It is "" for the index -1 and for a cell that the row lacks.
func (f *File) Value(r Row, column int) string {
	switch {
	case column < 0 || column >= len(r.Cells):
		return ""
	case column == len(f.Names)-1 && len(r.Cells) > len(f.Names):
		separator := string(f.Separator)
		return f.decodeCell(strings.TrimRight(strings.Join(r.Cells[column:], separator), separator))
	}
	return f.decodeCell(r.Cells[column])
}

// IsText reports whether a row is text in the encoding of the file. In single-byte encodings every row is.
func (f *File) IsText(r Row) bool { return f.single != nil || utf8.ValidString(r.Text) }
