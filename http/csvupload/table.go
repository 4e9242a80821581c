package csvupload

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"lieudit/http/csvfile"
	"lieudit/schemas/refusal"
)

const (
	// MaxRows is the most rows that a file may have, not counting its header.
	MaxRows = 200_000
	// MaxColumns is the most columns that a file may have, and the most cells of a row.
	MaxColumns = 1024
)

// FormatError says why a file is not CSV. Reason is a sentence about the file, without a full stop.
type FormatError struct{ Reason string }

func (e *FormatError) Error() string { return "no CSV file: " + e.Reason }

// WidthError says that a row has more than MaxColumns cells.
type WidthError struct {
	Row   int // 0 for the header
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

	file *csvfile.File
}

// bytesToYield is how many bytes of a file are read between two calls of giveWay.
const bytesToYield = 64 << 10

// ReadTable reads the whole file. It calls giveWay with how many bytes it has read since the last call, so that other work can be done
// between two parts of the file. Its errors are those of giveWay, *FormatError, *WidthError, refusal.RequestMalformed for an empty file,
// refusal.BodyTooLarge for more than MaxRows rows, and errors of the disk.
func (u *Upload) ReadTable(giveWay func(read int64) error) (*Table, error) {
	file, err := csvfile.Open(u.data, u.size, csvfile.Options{FileName: u.FileName})
	if err != nil {
		return nil, toOwnError(err)
	}
	if len(file.Names) > MaxColumns {
		return nil, &WidthError{0, len(file.Names)}
	}
	t := &Table{file: file}
	for _, name := range file.Names {
		t.Columns = append(t.Columns, strings.TrimSpace(name))
	}
	return t, toOwnError(t.countRows(giveWay))
}

// toOwnError turns the errors of package csvfile into those that ReadTable promises.
func toOwnError(err error) error {
	if errors.Is(err, csvfile.ErrEmpty) {
		return refusal.RequestMalformed
	}
	if format, ok := errors.AsType[*csvfile.FormatError](err); ok {
		return &FormatError{format.Reason}
	}
	if row, ok := errors.AsType[*csvfile.RowError](err); ok {
		return &FormatError{row.Reason()}
	}
	return err
}

// countRows reads all rows.
func (t *Table) countRows(giveWay func(read int64) error) error {
	rows, err := t.file.Rows(t.file.FirstRow)
	if err != nil {
		return err
	}
	for counted := int64(0); ; {
		if read := rows.Offset() - counted; read >= bytesToYield {
			if err := giveWay(read); err != nil {
				return err
			}
			counted = rows.Offset()
		}
		switch cells, err := rows.Skip(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case t.Rows == MaxRows:
			return refusal.BodyTooLarge
		case cells > MaxColumns:
			return &WidthError{t.Rows + 1, cells}
		}
		t.Rows++
	}
}

// Column returns the index of the first column with a name, or -1.
func (t *Table) Column(name string) int { return t.file.Column(name) }

// Charset returns the name of the file's encoding for a Content-Type.
func (t *Table) Charset() string { return t.file.Encoding }
