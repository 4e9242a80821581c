package csvupload

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"lieudit/schemas/refusal"
)

const (
	// MaxRows is the most rows that a file may have, not counting its header.
	MaxRows = 200_000
	// MaxColumns is the most columns that a file may have, and the most cells of a row.
	MaxColumns = 1024
	// maxRowBytes is how long a row may be, in bytes of its text. Without a limit, an unclosed quote would read the rest of the file
	// into memory.
	maxRowBytes = 1 << 20
)

// FormatError says why a file is not CSV. Reason is a sentence about the file, without a full stop.
type FormatError struct{ Reason string }

func (e *FormatError) Error() string { return "no CSV file: " + e.Reason }

// WidthError says that a row has more than MaxColumns cells.
type WidthError struct {
	Row   int // 0: the header
	Cells int
}

func (e *WidthError) Error() string {
	if e.Row == 0 {
		return fmt.Sprintf("the file has %d columns, and at most %d are accepted: delete the empty ones", e.Cells, MaxColumns)
	}
	return fmt.Sprintf("row %d has %d cells, and at most %d are accepted: check its separators", e.Row, e.Cells, MaxColumns)
}

// Table is an uploaded file whose rows can be read.
type Table struct {
	Columns []string // names, without the spaces around them
	Rows    int      // without the header

	upload    *Upload
	header    row
	encoding  textEncoding
	separator byte
	lineEnd   string
}

// bytesToYield is how many bytes of a file are read between two calls of giveWay.
const bytesToYield = 64 << 10

// ReadTable reads the whole file. It calls giveWay with how many bytes it has read since the last call, so that other work can be done
// between two parts of the file. Its errors are those of giveWay, *FormatError, *WidthError, refusal.RequestMalformed for an empty file,
// refusal.BodyTooLarge for more than MaxRows rows, and errors of the disk.
func (u *Upload) ReadTable(giveWay func(read int64) error) (*Table, error) {
	encoding, err := detectEncoding(u.open())
	if err != nil {
		return nil, err
	}
	t := &Table{upload: u, encoding: encoding}
	if err := t.detectDialect(); err != nil {
		return nil, err
	}
	rows := t.openRows()
	if err := t.readHeader(rows); err != nil {
		return nil, err
	}
	if err := t.countRows(rows, giveWay); err != nil {
		return nil, err
	}
	return t, nil
}

// countRows reads all rows.
func (t *Table) countRows(rows *rowReader, giveWay func(read int64) error) error {
	for told := int64(0); ; {
		if read := rows.end - told; read >= bytesToYield {
			if err := giveWay(read); err != nil {
				return err
			}
			told = rows.end
		}
		switch cells, err := rows.read(); {
		case errors.Is(err, io.EOF):
			return rows.checkEnd()
		case err != nil:
			return err
		case t.Rows == MaxRows:
			return refusal.BodyTooLarge
		case len(cells) > MaxColumns:
			return &WidthError{t.Rows + 1, len(cells)}
		}
		t.Rows++
	}
}

// readHeader reads the names of the columns.
func (t *Table) readHeader(rows *rowReader) error {
	cells, err := rows.read()
	switch {
	case errors.Is(err, io.EOF):
		return refusal.RequestMalformed
	case err != nil:
		return err
	case len(cells) > MaxColumns:
		return &WidthError{0, len(cells)}
	}
	t.header = rows.row(len(cells))
	for _, name := range t.header.cells {
		t.Columns = append(t.Columns, strings.TrimSpace(name))
	}
	return nil
}

// Column returns the index of the first column with a name, or -1.
func (t *Table) Column(name string) int { return slices.Index(t.Columns, strings.TrimSpace(name)) }

// Charset returns the name of the file's encoding for a Content-Type.
func (t *Table) Charset() string { return t.encoding.charset }

// separators are the separators that a file may have.
const separators = ",;\t|"

// detectDialect finds the separator and the line end in the first line that is not empty. The separator is the one that occurs there
// most often outside quotes.
func (t *Table) detectDialect() error {
	line, err := t.readFirstLine()
	if err != nil {
		return err
	}
	t.lineEnd = "\n"
	if bytes.HasSuffix(line, []byte("\r\n")) {
		t.lineEnd = "\r\n"
	}
	if first, isAlone := cutAtCarriageReturn(line); isAlone {
		t.lineEnd, line = "\r", first
	}
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
		if counts[c] > counts[t.separator] {
			t.separator = c
		}
	}
	return nil
}

// cutAtCarriageReturn returns what stands before the first CR outside of quotes that no LF follows. Such a CR ends the lines of the file, as
// in the CSV of a Macintosh.
func cutAtCarriageReturn(text []byte) (line []byte, isAlone bool) {
	text = bytes.TrimLeft(text, "\r\n")
	isQuoted := false
	for i, c := range text {
		switch {
		case c == '"':
			isQuoted = !isQuoted
		case c == '\r' && !isQuoted && (i+1 == len(text) || text[i+1] != '\n'):
			return text[:i], true
		}
	}
	return text, false
}

// carriageReturns reads a text whose lines end with CR as one whose lines end with LF. Both are as long.
type carriageReturns struct{ io.Reader }

func (r carriageReturns) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	for i, c := range p[:n] {
		if c == '\r' {
			p[i] = '\n'
		}
	}
	return n, err
}

// readFirstLine reads the first line that is not empty, or the beginning of a long one.
func (t *Table) readFirstLine() ([]byte, error) {
	text := bufio.NewReaderSize(t.encoding.decode(t.upload.open()), 64<<10)
	for {
		line, err := text.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		if err != nil || len(bytes.TrimRight(line, "\r\n")) > 0 {
			return line, nil
		}
	}
}
