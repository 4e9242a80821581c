package csvgeocode

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxRowBytes is how long a row may be, its line breaks within quotes included.
const maxRowBytes = 1 << 20

// errUnclosedQuote: a row is longer than any should be.
var errUnclosedQuote = errors.New("it does not end: a quote is not closed")

// row is one row of the file: as it is written, and its fields.
type row struct {
	raw    string // without its end
	fields []string
}

// rowReader reads rows and knows where each of them ends.
type rowReader struct {
	csv      *csv.Reader
	buffered *retainingReader
	offset   int64 // where the last row ends, in the text of the whole file
	start    int64 // where the reader began
}

// readBufferSize is how much of the text is read at once.
const readBufferSize = 1 << 16

// retainingReader passes text on and keeps what is not taken yet.
type retainingReader struct {
	io.Reader
	retained []byte
	consumed int // of text
}

func (k *retainingReader) Read(p []byte) (int, error) {
	if len(k.retained)-k.consumed > maxRowBytes+readBufferSize {
		return 0, errUnclosedQuote
	}
	k.retained = append(k.retained[:0], k.retained[k.consumed:]...)
	k.consumed = 0
	n, err := k.Reader.Read(p)
	k.retained = append(k.retained, p[:n]...)
	return n, err
}

func (k *retainingReader) consume(n int) string {
	text := string(k.retained[k.consumed : k.consumed+n])
	k.consumed += n
	return text
}

// peekLine is how what comes next begins.
func (k *retainingReader) peekLine() string {
	next := strings.TrimLeft(string(k.retained[k.consumed:min(k.consumed+60, len(k.retained))]), "\r\n")
	line, _, _ := strings.Cut(next, "\n")
	return line
}

func newRowReader(text io.Reader, separator rune, offset int64) *rowReader {
	k := &retainingReader{Reader: text}
	c := csv.NewReader(bufio.NewReaderSize(k, readBufferSize))
	c.Comma, c.LazyQuotes, c.FieldsPerRecord = separator, true, -1
	return &rowReader{csv: c, buffered: k, offset: offset, start: offset}
}

// readRow is the next row that is not empty; io.EOF: there is none.
func (r *rowReader) readRow() (row, error) {
	fields, err := r.csv.Read()
	if errors.Is(err, io.EOF) {
		return row{}, io.EOF
	}
	if err != nil {
		return row{}, fmt.Errorf("the row that begins with %q: %w", r.buffered.peekLine(), err)
	}
	end := r.start + r.csv.InputOffset()
	raw := strings.Trim(r.buffered.consume(int(end-r.offset)), "\r\n")
	r.offset = end
	return row{raw, fields}, nil
}
