package csvupload

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"io"
	"slices"
	"strings"
)

// row is a row of a table: its cells, and their text in the file.
type row struct {
	cells  []string // at most one for each column; missing ones are empty
	text   string   // of the row in the file, without its line end
	starts []int    // of each cell in text
	// isLastQuoted: the last cell must be quoted anew when it is written. It holds surplus cells, or its quote is not closed.
	isLastQuoted bool
}

// size estimates how many bytes of memory the row takes.
func (r *row) size() int { return 2*len(r.text) + 24*len(r.cells) }

// cellText returns the text of a cell in the file, with its quotes.
func (r *row) cellText(i int) string {
	if i+1 < len(r.starts) {
		return r.text[r.starts[i] : r.starts[i+1]-1] // without the separator
	}
	return r.text[r.starts[i]:]
}

// rowReader reads the rows of a table, its header first. It is lenient, because customers' files need that: quotes may occur within a
// cell, and rows may have more or fewer cells than the header. Empty lines are skipped.
type rowReader struct {
	csv        *csv.Reader
	source     *rowSource
	separator  byte
	cells      []string // of the row that was read last
	start, end int64    // of its text, with the empty lines before it and its line end
}

func (t *Table) openRows() *rowReader {
	text := t.encoding.decode(t.upload.open())
	if t.lineEnd == "\r" {
		text = carriageReturns{text}
	}
	source := &rowSource{Reader: text, allowed: maxRowBytes}
	reader := csv.NewReader(bufio.NewReaderSize(source, 16<<10))
	reader.Comma, reader.LazyQuotes, reader.FieldsPerRecord, reader.ReuseRecord = rune(t.separator), true, -1, true
	return &rowReader{csv: reader, source: source, separator: t.separator}
}

// read reads the next row. Its cells are valid until the next call. At the end it returns io.EOF, for a row longer than maxRowBytes a
// *FormatError.
func (r *rowReader) read() ([]string, error) {
	r.source.drop(r.end)
	cells, err := r.csv.Read()
	if err != nil {
		return nil, err
	}
	r.cells, r.start, r.end = cells, r.end, r.csv.InputOffset()
	r.source.allowed = r.end + maxRowBytes
	return cells, nil
}

// row returns the row that was read last, as one of a table with width columns. Surplus cells are joined to the last one.
func (r *rowReader) row(width int) row {
	text, hasLineEnd := trimLineEnds(r.source.text(r.start, r.end))
	n := min(len(r.cells), width)
	row := row{cells: slices.Clone(r.cells[:n]), text: text, starts: r.findStarts(text, n)}
	last := &row.cells[n-1]
	isUnclosed := row.text[row.starts[n-1]:] != "" && row.text[row.starts[n-1]] == '"' && (!hasLineEnd || strings.HasSuffix(*last, "\n"))
	if isSurplus := len(r.cells) > width; isSurplus || isUnclosed {
		row.isLastQuoted = true
		*last = strings.Join(r.cells[n-1:], string(r.separator))
	}
	return row
}

// findStarts finds where the first n cells of the row begin in its text.
func (r *rowReader) findStarts(text string, n int) []int {
	starts := make([]int, n)
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
func trimLineEnds(text string) (row string, hasLineEnd bool) {
	for {
		rest, isEmptyLine := strings.CutPrefix(strings.TrimPrefix(text, "\r"), "\n")
		if !isEmptyLine {
			break
		}
		text = rest
	}
	row, hasLineEnd = strings.CutSuffix(text, "\n")
	return strings.TrimSuffix(row, "\r"), hasLineEnd
}

// checkEnd returns a *FormatError if the quote of the last cell is not closed: encoding/csv has no error for that if it allows quotes
// within cells. A last cell with a line end is quoted, so the file must end with a quote.
func (r *rowReader) checkEnd() error {
	if n := len(r.cells); n > 0 && strings.Contains(r.cells[n-1], "\n") && r.source.lastByte != '"' {
		return errUnclosedQuote
	}
	return nil
}

var errUnclosedQuote = &FormatError{"a quote is never closed, or a row is longer than 1 MiB"}

// rowSource keeps the text that was read through it until drop. Read fails if a row is longer than maxRowBytes.
type rowSource struct {
	io.Reader
	read, allowed int64  // bytes: read so far, and after which Read fails
	kept          []byte // the last bytes read
	dropped       int    // leading bytes of kept that are no longer needed
	lastByte      byte   // the last one that is not a space
}

func (s *rowSource) Read(p []byte) (int, error) {
	if s.read > s.allowed {
		return 0, errUnclosedQuote
	}
	if s.dropped > 0 {
		s.kept, s.dropped = append(s.kept[:0], s.kept[s.dropped:]...), 0
	}
	n, err := s.Reader.Read(p)
	s.read += int64(n)
	s.kept = append(s.kept, p[:n]...)
	if text := bytes.TrimSpace(p[:n]); len(text) > 0 {
		s.lastByte = text[len(text)-1]
	}
	return n, err
}

// drop frees the text before an offset of the file.
func (s *rowSource) drop(offset int64) { s.dropped = s.index(offset) }

// text returns the text between two offsets of the file.
func (s *rowSource) text(start, end int64) string { return string(s.kept[s.index(start):s.index(end)]) }

// index returns the index in kept of an offset of the file.
func (s *rowSource) index(offset int64) int { return len(s.kept) - int(s.read-offset) }
