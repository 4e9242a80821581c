package ban

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// FormatError is a file that is no address base, or one that breaks off.
type FormatError struct {
	File  string
	Looks string // what it looks like
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s is not a file of the address base: %s", e.File, e.Looks)
}

// signs are the first bytes of what people mistake for the base.
var signs = [...]struct{ prefix, looks string }{
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

// window is how much of a file is read ahead, and so the longest line.
const window = 1 << 18

// plain is the text of a file, unpacked when its content says so.
func plain(r io.Reader, name string) (*bufio.Reader, error) {
	text := bufio.NewReaderSize(r, window)
	head, err := text.Peek(2)
	if err == nil && head[0] == 0x1f && head[1] == 0x8b {
		unpacked, err := gzip.NewReader(text)
		if err != nil {
			return nil, unreadable(name, 0, err)
		}
		text = bufio.NewReaderSize(unpacked, window)
	}
	head, err = text.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, unreadable(name, 0, err)
	}
	if looks := looks(head); looks != "" {
		return nil, &FormatError{File: name, Looks: looks}
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		_, err = text.Discard(3)
		return text, err
	}
	return text, nil
}

// looks says what the first bytes of a file are, when they are not text of the base.
func looks(head []byte) string {
	for _, s := range signs {
		if bytes.HasPrefix(head, []byte(s.prefix)) {
			return s.looks
		}
	}
	text := bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")))
	switch {
	case len(text) == 0:
		return "it is empty"
	case text[0] == '<':
		return "it is a web page or XML, perhaps an error page in its place"
	case text[0] == '{' || text[0] == '[':
		return "it is JSON"
	case bytes.IndexByte(text, 0) >= 0:
		return "it is binary"
	}
	return ""
}

// unreadable says why reading stopped at a line.
func unreadable(name string, line int, err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &FormatError{File: name, Looks: fmt.Sprintf("it breaks off after line %d, like an interrupted download", line)}
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		return &FormatError{File: name, Looks: fmt.Sprintf("its gzip data is damaged after line %d", line)}
	}
	return fmt.Errorf("read %s after line %d: %w", name, line, err)
}

// quoted is a header as an error shows it.
func quoted(header []byte) string {
	if !utf8.Valid(header) {
		return "its first line is not UTF-8"
	}
	if len(header) > 100 {
		header = append(bytes.ToValidUTF8(header[:100], nil), "…"...)
	}
	return fmt.Sprintf("its first line is %q", header)
}
