package ban

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
	"unicode/utf8"
)

// Read yields the rows of one file: gzip or plain text by its content, addresses or localities by its columns. Bad rows
// go to the report only. An error is the last item: a *FormatError when the file is not of the base, or the error that
// ended reading. Rows share no memory with the reader and may be kept.
func Read(r io.Reader, name string, report *Report) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		text, err := openText(r, name)
		if err != nil {
			yield(Row{}, err)
			return
		}
		s := &recordReader{text: text}
		first, err := s.readLine()
		if err != nil {
			yield(Row{}, headerError(name, err))
			return
		}
		c, err := readHeader(name, first)
		if err != nil {
			yield(Row{}, err)
			return
		}
		p := &parser{columns: c, name: name, records: s, report: report}
		p.parseRows(yield)
	}
}

// headerError says why a file has no first line.
func headerError(name string, err error) error {
	if errors.Is(err, errQuoting) {
		return &FormatError{File: name, Looks: "its first line has no end"}
	}
	return readError(name, 0, err)
}

// parser turns the fields of records into rows.
type parser struct {
	columns
	name       string
	records    *recordReader
	report     *Report
	isRepaired bool // the current row held letters that were encoded twice
	last       Row  // the row before, whose strings are reused when a column repeats
}

// parseRows yields the good rows and reports the others.
func (p *parser) parseRows(yield func(Row, error) bool) {
	for {
		err := p.records.readRecord()
		switch {
		case errors.Is(err, io.EOF):
			return
		case errors.Is(err, errQuoting):
			p.report.addBadRow(BadRow{p.name, p.records.line, BadQuoting})
			continue
		case err != nil:
			yield(Row{}, readError(p.name, p.records.line, err))
			return
		}
		if fault, ok := p.parseRow(); !ok {
			p.report.addBadRow(BadRow{p.name, p.records.line, fault})
			continue
		}
		p.report.Good++
		if string(p.column(fieldSource)) == SyntheticSource {
			p.report.Synthetic++
		}
		if p.isRepaired {
			p.report.Repaired++
		}
		if !yield(p.last, nil) {
			return
		}
	}
}

// FormatError says that a file is not of the address base, or breaks off.
type FormatError struct {
	File  string
	Looks string // what it looks like
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s is not a file of the address base: %s", e.File, e.Looks)
}

// knownFormats are the first bytes of files that people mistake for the base.
var knownFormats = [...]struct{ prefix, looks string }{
	{"PK\x03\x04", "it is a zip archive; unpack it first"},
	{"%PDF", "it is a PDF"},
	{"7z\xbc\xaf", "it is a 7z archive; unpack it first"},
	{"BZh", "it is compressed with bzip2; unpack it first"},
	{"\xfd7zXZ", "it is compressed with xz; unpack it first"},
	{"\x28\xb5\x2f\xfd", "it is compressed with zstd; unpack it first"},
	{"PAR1", "it is a Parquet file; the CSV export is needed"},
	{"SQLite format 3", "it is a database"},
	{"\xff\xfe", "it is UTF-16; UTF-8 is needed"},
	{"\xfe\xff", "it is UTF-16; UTF-8 is needed"},
}

// maxLineLength is the size of the read buffer and so the length of the longest line.
const maxLineLength = 1 << 18

// openText returns the text of a file and unpacks gzip.
func openText(r io.Reader, name string) (*bufio.Reader, error) {
	text := bufio.NewReaderSize(r, maxLineLength)
	head, err := text.Peek(2)
	if err == nil && head[0] == 0x1f && head[1] == 0x8b {
		unpacked, err := gzip.NewReader(text)
		if err != nil {
			return nil, readError(name, 0, err)
		}
		text = bufio.NewReaderSize(unpacked, maxLineLength)
	}
	head, err = text.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, readError(name, 0, err)
	}
	if looks := describeFormat(head); looks != "" {
		return nil, &FormatError{File: name, Looks: looks}
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		_, err = text.Discard(3)
		return text, err
	}
	return text, nil
}

// describeFormat describes a file by its first bytes. It returns "" for what may be text of the base.
func describeFormat(head []byte) string {
	for _, s := range knownFormats {
		if bytes.HasPrefix(head, []byte(s.prefix)) {
			return s.looks
		}
	}
	text := bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")))
	first, _, _ := bytes.Cut(text, []byte("\n"))
	switch {
	case len(text) == 0:
		return "it is empty"
	case text[0] == '<':
		return "it is a web page or XML, perhaps an error page in its place"
	case text[0] == '{' || text[0] == '[':
		return "it is JSON"
	case bytes.IndexByte(first, 0) >= 0:
		return "it is binary"
	}
	return ""
}

// readError says why reading stopped after a line.
func readError(name string, line int, err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &FormatError{File: name, Looks: fmt.Sprintf("it breaks off after line %d, like an interrupted download", line)}
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		return &FormatError{File: name, Looks: fmt.Sprintf("its gzip data is damaged after line %d", line)}
	}
	return fmt.Errorf("read %s after line %d: %w", name, line, err)
}

// quoteHeader is the first line of a file, shortened for an error.
func quoteHeader(header []byte) string {
	if !utf8.Valid(header) {
		return "its first line is not UTF-8"
	}
	if len(header) > 100 {
		header = append(bytes.ToValidUTF8(header[:100], nil), "…"...)
	}
	return fmt.Sprintf("its first line is %q", header)
}
