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
	byteOrderMark string            // is not part of the text
	codec         encoding.Encoding // nil: UTF-8
}

const utf8Mark = "\xef\xbb\xbf"

// encodings are those of UTF-16 and UTF-8 that are known by their byte order mark.
var markedEncodings = []textEncoding{
	{"utf-8", utf8Mark, nil},
	{"utf-16le", "\xff\xfe", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)},
	{"utf-16be", "\xfe\xff", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
}

// detectEncoding finds the encoding of a file: by its byte order mark, else UTF-8 if it is that, else Windows-1252, which any text
// of a French Excel without a mark is. What is no text is a *FormatError.
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

// scanEncoding reads a file without a byte order mark to its end. A file in UTF-8 may have a few broken characters: they are the
// business of their rows, and taking all of it for Windows-1252 would break every accent.
func scanEncoding(file io.Reader) (textEncoding, error) {
	text := bufio.NewReaderSize(file, 64<<10)
	accents, broken := 0, 0 // characters of several bytes; bytes of none
	for {
		r, size, err := text.ReadRune()
		switch {
		case err == io.EOF && accents >= brokenShare*broken:
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
			accents++
		}
	}
}

// brokenShare is how many characters of several bytes a file in UTF-8 has at least for each broken one.
const brokenShare = 10

// decode reads the text of a file as UTF-8, without the byte order mark.
func (e textEncoding) decode(file io.Reader) io.Reader {
	io.CopyN(io.Discard, file, int64(len(e.byteOrderMark))) // an error comes again with the next read
	if e.codec == nil {
		return file
	}
	return transform.NewReader(file, e.codec.NewDecoder())
}

// encode writes text, with the byte order mark before it. Close writes what is left, and closes nothing. Letters that the
// encoding lacks lose their accents, or become a question mark.
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

// toWindows1252 is a character of Windows-1252 that stands for r.
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
