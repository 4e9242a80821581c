package csvupload

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"
)

// textEncoding is the encoding of a file, with the byte order mark that it begins with.
type textEncoding struct {
	charset       string
	byteOrderMark string            // not part of the text
	codec         encoding.Encoding // nil: UTF-8
}

const utf8Mark = "\xef\xbb\xbf"

// markedEncodings are the encodings that a byte order mark identifies.
var markedEncodings = []textEncoding{
	{"utf-8", utf8Mark, nil},
	{"utf-16le", "\xff\xfe", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)},
	{"utf-16be", "\xfe\xff", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
}

// detectEncoding finds the encoding of a file: that of its byte order mark, or UTF-8 if the file is valid, otherwise Windows-1252, as
// French Excel writes. Binary input is a *FormatError.
func detectEncoding(file io.Reader) (textEncoding, error) {
	start := make([]byte, 64<<10)
	n, err := io.ReadFull(file, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return textEncoding{}, err
	}
	start = start[:n]
	for _, e := range markedEncodings {
		if bytes.HasPrefix(start, []byte(e.byteOrderMark)) {
			return e, nil
		}
	}
	switch {
	case bytes.HasPrefix(start, []byte("\x1f\x8b")):
		return textEncoding{}, &FormatError{"it is compressed with gzip; unpack it first"}
	case bytes.HasPrefix(start, []byte("PK\x03\x04")):
		return textEncoding{}, &FormatError{"it is a spreadsheet or a zip archive; save it as CSV"}
	}
	return scanEncoding(io.MultiReader(bytes.NewReader(start), file))
}

// scanEncoding reads a file without a byte order mark to its end. A file with a few broken characters is still UTF-8: only their rows
// suffer, whereas reading the file as Windows-1252 would break every accent.
func scanEncoding(file io.Reader) (textEncoding, error) {
	text := bufio.NewReaderSize(file, 64<<10)
	multibyte, broken := 0, 0 // valid characters of several bytes; invalid bytes
	for {
		r, size, err := text.ReadRune()
		switch {
		case err == io.EOF && multibyte >= minMultibytePerBroken*broken:
			return textEncoding{charset: "utf-8"}, nil
		case err == io.EOF:
			return textEncoding{charset: "windows-1252", codec: charmap.Windows1252}, nil
		case err != nil:
			return textEncoding{}, err
		case r == 0:
			return textEncoding{}, &FormatError{"it is binary, or UTF-16 without a byte order mark"}
		case r == utf8.RuneError && size == 1:
			broken++
		case size > 1:
			multibyte++
		}
	}
}

// minMultibytePerBroken is the fewest characters of several bytes that a file in UTF-8 has for each invalid byte.
const minMultibytePerBroken = 10

// decode returns a reader of the text of a file in UTF-8, without the byte order mark.
func (e textEncoding) decode(file io.Reader) io.Reader {
	io.CopyN(io.Discard, file, int64(len(e.byteOrderMark))) // the next read returns the error again
	if e.codec == nil {
		return file
	}
	return transform.NewReader(file, e.codec.NewDecoder())
}

// encode returns a writer that encodes text to out, and writes the byte order mark. Close writes the buffered text and does not close
// out. Letters that the encoding lacks lose their accents, or become a question mark.
func (e textEncoding) encode(out io.Writer) (io.WriteCloser, error) {
	_, err := io.WriteString(out, e.byteOrderMark)
	if e.codec == nil {
		return nopCloser{out}, err
	}
	var encoder transform.Transformer = e.codec.NewEncoder()
	if e.codec == charmap.Windows1252 {
		encoder = transform.Chain(runes.Map(toWindows1252), encoder)
	}
	return transform.NewWriter(out, encoder), err
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// toWindows1252 returns r, or a character of Windows-1252 that replaces it.
func toWindows1252(r rune) rune {
	if _, ok := charmap.Windows1252.EncodeRune(r); ok {
		return r
	}
	letter, _ := utf8.DecodeRuneInString(norm.NFD.String(string(r))) // accents follow it
	if _, ok := charmap.Windows1252.EncodeRune(letter); ok {
		return letter
	}
	return '?'
}
