package csvfile

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxRowBytes is how long a row may be, including line ends within quotes. Without a limit, a quote that is not closed would read the
// rest of the file into memory.
const maxRowBytes = 1 << 20

// readBufferSize is how many bytes are read at once.
const readBufferSize = 64 << 10

// RowError is a row that does not end.
type RowError struct{ Beginning string }

func (e *RowError) Error() string {
	return fmt.Sprintf("the row that begins with %q: %s", e.Beginning, e.Reason())
}

// Reason is the error without the line.
func (e *RowError) Reason() string { return "a quote is never closed, or a row is longer than 1 MiB" }

// errTooLong says that a row is longer than maxRowBytes.
var errTooLong = errors.New("a row is too long")

// Row is a row of a file, in the bytes of its text.
type Row struct {
	Cells  []string // without quotes
	Text   string   // without the line end
	starts []int    // of each cell in Text, or of its quote
	isOpen bool     // the quote of the last cell is not closed
}

// Size estimates how many bytes of memory the row takes.
func (r *Row) Size() int { return 2*len(r.Text) + 24*len(r.Cells) }

// RowReader reads rows together with their text. It is lenient, because customers' files need that: quotes may occur within a cell, and
// rows may have more or fewer cells than the header. Empty lines are skipped.
//
// encoding/csv returns only cells. A retainingReader below it therefore keeps the text that it has read, and its InputOffset is where in that
// text a row ends.
type RowReader struct {
	csv       *csv.Reader
	retained  *retainingReader
	separator string
	start     int64 // offset of the text that the CSV reader counts as 0
	offset    int64
}

func newRowReader(text io.Reader, separator rune, offset int64) *RowReader {
	retained := &retainingReader{Reader: text}
	reader := csv.NewReader(bufio.NewReaderSize(retained, readBufferSize))
	reader.Comma, reader.LazyQuotes, reader.FieldsPerRecord, reader.ReuseRecord = separator, true, -1, true
	return &RowReader{csv: reader, retained: retained, separator: string(separator), start: offset, offset: offset}
}

// Offset is the end of the last row that was read.
func (r *RowReader) Offset() int64 { return r.offset }

// Read reads the next row. At the end it returns io.EOF, and for a row that does not end a *RowError.
func (r *RowReader) Read() (Row, error) {
	cells, text, isOpen, err := r.next()
	if err != nil {
		return Row{}, err
	}
	row := Row{Cells: slices.Clone(cells), Text: string(text), isOpen: isOpen}
	row.starts = r.findStarts(row.Text, len(cells))
	return row, nil
}

// Skip reads the next row and returns how many cells it has. Its errors are those of Read.
func (r *RowReader) Skip() (cells int, err error) {
	skipped, _, _, err := r.next()
	return len(skipped), err
}

// next reads a row. Its cells and its text are valid until the next call.
func (r *RowReader) next() (cells []string, text []byte, isOpen bool, err error) {
	cells, err = r.csv.Read()
	if errors.Is(err, errTooLong) {
		return nil, nil, false, &RowError{firstLine(r.retained.unconsumed())}
	}
	if err != nil {
		return nil, nil, false, err
	}
	end := r.start + r.csv.InputOffset()
	whole := r.retained.consume(int(end - r.offset))
	r.offset = end
	text = trimLineEnds(whole)
	last := cells[len(cells)-1]
	if bytes.HasSuffix(whole, []byte("\n")) && !strings.HasSuffix(last, "\n") || bytes.IndexByte(text, '"') < 0 {
		return cells, text, false, nil
	}
	// Only the last row can lack a line end, or have it within its last cell. An open quote over several lines has swallowed rows.
	if isOpen = r.isOpen(text, len(cells)); isOpen && strings.Contains(last, "\n") {
		return nil, nil, false, &RowError{firstLine(whole)}
	}
	return cells, text, isOpen, nil
}

// isOpen reports whether a cell written after a row would become part of its last cell.
func (r *RowReader) isOpen(text []byte, cells int) bool {
	longer := csv.NewReader(io.MultiReader(bytes.NewReader(text), strings.NewReader(r.separator)))
	longer.Comma, longer.LazyQuotes, longer.FieldsPerRecord = r.csv.Comma, true, -1
	again, err := longer.Read()
	return err != nil || len(again) != cells+1
}

// findStarts finds where the cells of the last row begin in its text.
func (r *RowReader) findStarts(text string, cells int) []int {
	starts := make([]int, cells)
	line, _ := r.csv.FieldPos(0)
	lineStart := 0
	for i := range starts {
		cellLine, column := r.csv.FieldPos(i)
		for ; line < cellLine; line++ {
			lineStart += strings.IndexByte(text[lineStart:], '\n') + 1
		}
		starts[i] = lineStart + column - 1
	}
	return starts
}

// trimLineEnds removes the empty lines before a row and its line end from its text, as encoding/csv does.
func trimLineEnds(text []byte) []byte {
	for {
		rest, isEmptyLine := bytes.CutPrefix(bytes.TrimPrefix(text, []byte("\r")), []byte("\n"))
		if !isEmptyLine {
			return bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
		}
		text = rest
	}
}

// retainingReader keeps the text that is read through it until consume returns it. If it keeps more than maxRowBytes, besides
// what is read ahead, Read returns errTooLong.
type retainingReader struct {
	io.Reader
	retained []byte
	consumed int // leading bytes of retained that were consumed
}

func (r *retainingReader) Read(p []byte) (int, error) {
	if len(r.retained)-r.consumed > maxRowBytes+readBufferSize {
		return 0, errTooLong
	}
	r.retained = append(r.retained[:0], r.retained[r.consumed:]...)
	r.consumed = 0
	n, err := r.Reader.Read(p)
	r.retained = append(r.retained, p[:n]...)
	return n, err
}

// consume returns the next n bytes of the retained text. The next Read drops them.
func (r *retainingReader) consume(n int) []byte {
	text := r.retained[r.consumed : r.consumed+n]
	r.consumed += n
	return text
}

// unconsumed returns the retained text that consume has not returned.
func (r *retainingReader) unconsumed() []byte { return r.retained[r.consumed:] }

// firstLine returns the first line of a text that is not empty, at most 60 bytes of it, for error messages.
func firstLine(text []byte) string {
	line, _, _ := strings.Cut(strings.TrimLeft(string(text[:min(60, len(text))]), "\r\n"), "\n")
	return line
}
