package csvgeocode

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxRowBytes is how long a row may be, its line breaks within quotes included. Without a bound, a quote that is not closed
// would read the rest of the file into memory.
const maxRowBytes = 1 << 20

// errUnclosedQuote says that a row is longer than maxRowBytes.
var errUnclosedQuote = errors.New("it does not end: a quote is not closed")

// row is one row of the file: its text and its fields, in the bytes of the file.
type row struct {
	raw    string   // as it stands in the file, quotes included, without its line end
	fields []string // values, without quotes
	isLast bool     // perhaps: no line end stands behind it, or within its last field
}

// field is a value of a row without the spaces around it, decoded. It is "" for the index -1 and for a field that the row lacks. The
// last column has all that stands beyond the names too.
func (h *header) field(r row, i int) string {
	if i < 0 || i >= len(r.fields) {
		return ""
	}
	value := r.fields[i]
	if i == len(h.names)-1 {
		value = strings.TrimRight(strings.Join(r.fields[i:], string(h.separator)), string(h.separator))
	}
	return strings.TrimSpace(h.decodeField(value))
}

// rowReader reads rows together with their text. encoding/csv returns fields only. So a retainingReader below it keeps the
// text that the CSV reader has read, and the CSV reader's InputOffset says where in that text a row ends. Offsets count
// bytes of the text of the whole file.
type rowReader struct {
	csv      *csv.Reader
	buffered *retainingReader
	offset   int64 // end of the last row
	start    int64 // offset of the text that the CSV reader counts as 0
}

// readBufferSize is how many bytes the CSV reader reads at once.
const readBufferSize = 1 << 16

// retainingReader keeps the text that is read through it until consume returns it. More than maxRowBytes of it, beyond what
// the CSV reader reads ahead, is errUnclosedQuote.
type retainingReader struct {
	io.Reader
	retained []byte
	consumed int // leading bytes of retained that were consumed
}

func (r *retainingReader) Read(p []byte) (int, error) {
	if len(r.retained)-r.consumed > maxRowBytes+readBufferSize {
		return 0, errUnclosedQuote
	}
	r.retained = append(r.retained[:0], r.retained[r.consumed:]...)
	r.consumed = 0
	n, err := r.Reader.Read(p)
	r.retained = append(r.retained, p[:n]...)
	return n, err
}

// consume returns the next n bytes of the retained text. The next Read drops them.
func (r *retainingReader) consume(n int) string {
	text := string(r.retained[r.consumed : r.consumed+n])
	r.consumed += n
	return text
}

// peekLine returns the first line that is not consumed yet, at most 60 bytes of it, for error messages.
func (r *retainingReader) peekLine() string {
	next := strings.TrimLeft(string(r.retained[r.consumed:min(r.consumed+60, len(r.retained))]), "\r\n")
	line, _, _ := strings.Cut(next, "\n")
	return line
}

// newRowReader reads rows from text that begins at an offset of the whole file, which must be the beginning of a row. It is
// lenient, because customers' files are: quotes may stand within a field, and rows may have more or fewer fields than the
// header.
func newRowReader(text io.Reader, separator rune, offset int64) *rowReader {
	retaining := &retainingReader{Reader: text}
	reader := csv.NewReader(bufio.NewReaderSize(retaining, readBufferSize))
	reader.Comma, reader.LazyQuotes, reader.FieldsPerRecord = separator, true, -1
	return &rowReader{csv: reader, buffered: retaining, offset: offset, start: offset}
}

// readRow reads the next row and skips empty lines. At the end it returns io.EOF.
func (r *rowReader) readRow() (row, error) {
	fields, err := r.csv.Read()
	if errors.Is(err, io.EOF) {
		return row{}, io.EOF
	}
	if err != nil {
		return row{}, fmt.Errorf("the row that begins with %q: %w", r.buffered.peekLine(), err)
	}
	end := r.start + r.csv.InputOffset()
	// What is consumed begins with the empty lines that the CSV reader has skipped, and ends with the row's line end.
	text := r.buffered.consume(int(end - r.offset))
	r.offset = end
	isLast := !strings.HasSuffix(text, "\n") || strings.HasSuffix(fields[len(fields)-1], "\n")
	return row{trimLineEnds(text), fields, isLast}, nil
}

// trimLineEnds takes the empty lines before a row and the line end behind it from its text, as encoding/csv reads them.
func trimLineEnds(text string) string {
	for {
		rest, isEmptyLine := strings.CutPrefix(strings.TrimPrefix(text, "\r"), "\n")
		if !isEmptyLine {
			return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
		}
		text = rest
	}
}
