package sheet

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxRecord is how long a row may be, its line breaks within quotes included.
const maxRecord = 1 << 20

// errEndless: a row is longer than any should be.
var errEndless = errors.New("it does not end: a quote is not closed")

// row is one row of the file: as it is written, and its fields.
type row struct {
	raw    string // without its end
	fields []string
}

// rows reads rows and knows where each of them ends.
type rows struct {
	csv    *csv.Reader
	kept   *kept
	offset int64 // where the last row ends, in the text of the whole file
	begun  int64 // where the reader began
}

// window is how much of the text is read at once.
const window = 1 << 16

// kept passes text on and keeps what is not taken yet.
type kept struct {
	io.Reader
	text  []byte
	taken int // of text
}

func (k *kept) Read(p []byte) (int, error) {
	if len(k.text)-k.taken > maxRecord+window {
		return 0, errEndless
	}
	k.text = append(k.text[:0], k.text[k.taken:]...)
	k.taken = 0
	n, err := k.Reader.Read(p)
	k.text = append(k.text, p[:n]...)
	return n, err
}

func (k *kept) take(n int) string {
	text := string(k.text[k.taken : k.taken+n])
	k.taken += n
	return text
}

// beginning is how what comes next begins.
func (k *kept) beginning() string {
	next := strings.TrimLeft(string(k.text[k.taken:min(k.taken+60, len(k.text))]), "\r\n")
	line, _, _ := strings.Cut(next, "\n")
	return line
}

func newRows(text io.Reader, separator rune, offset int64) *rows {
	k := &kept{Reader: text}
	c := csv.NewReader(bufio.NewReaderSize(k, window))
	c.Comma, c.LazyQuotes, c.FieldsPerRecord = separator, true, -1
	return &rows{csv: c, kept: k, offset: offset, begun: offset}
}

// next is the next row that is not empty; io.EOF: there is none.
func (r *rows) next() (row, error) {
	fields, err := r.csv.Read()
	if errors.Is(err, io.EOF) {
		return row{}, io.EOF
	}
	if err != nil {
		return row{}, fmt.Errorf("the row that begins with %q: %w", r.kept.beginning(), err)
	}
	end := r.begun + r.csv.InputOffset()
	raw := strings.Trim(r.kept.take(int(end-r.offset)), "\r\n")
	r.offset = end
	return row{raw, fields}, nil
}
