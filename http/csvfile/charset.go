package csvfile

import (
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"
)

// charset is how a file encodes its characters and ends its lines. Rows are read and written in the bytes of the file, and only cells
// that are used are decoded. Two kinds of file are converted when they are read and converted back when they are written, because
// encoding/csv cannot read them: UTF-16 becomes UTF-8, and if lines end with \r alone, \r and \n are swapped.
type charset struct {
	single *charmap.Charmap  // of one byte per character; nil for UTF-8 and UTF-16
	wide   encoding.Encoding // UTF-16; nil for any other
	usesCR bool              // lines end with \r alone
}

// newCharset returns the charset of a codec; nil is UTF-8.
func newCharset(codec encoding.Encoding) charset {
	if single, ok := codec.(*charmap.Charmap); ok {
		return charset{single: single}
	}
	return charset{wide: codec}
}

// decodeText converts a file to text that encoding/csv can read.
func (c charset) decodeText(file io.Reader) io.Reader {
	if c.wide != nil {
		file = transform.NewReader(file, c.wide.NewDecoder())
	}
	if c.usesCR {
		file = lineEndSwapper{file}
	}
	return file
}

// encodeText is the reverse of decodeText for text that ends with a whole character. It may change text.
func (c charset) encodeText(text []byte) ([]byte, error) {
	if c.usesCR {
		swapLineEnds(text)
	}
	if c.wide == nil {
		return text, nil
	}
	return c.wide.NewEncoder().Bytes(text)
}

// decodeCell decodes a cell to UTF-8.
func (c charset) decodeCell(cell string) string {
	if c.single == nil || isASCII(cell) {
		return cell
	}
	var out strings.Builder
	for i := range len(cell) {
		out.WriteRune(c.single.DecodeByte(cell[i]))
	}
	return out.String()
}

// encodeCell encodes a text as a cell of the file. A character that the encoding lacks is replaced by its nearest form.
func (c charset) encodeCell(text string) string {
	if c.single == nil || isASCII(text) {
		return text
	}
	var out []byte
	for _, r := range text {
		if b, ok := c.single.EncodeRune(r); ok {
			out = append(out, b)
			continue
		}
		for _, near := range nearestForm(r) {
			b, ok := c.single.EncodeRune(near)
			if !ok {
				b = '?'
			}
			out = append(out, b)
		}
	}
	return string(out)
}

// isASCII reports whether a text has the same bytes in all single-byte charsets.
func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// plainForms are characters that some encodings lack, and their replacements. Letters with accents are not among them.
var plainForms = strings.NewReplacer("’", "'", "‘", "'", "ʼ", "'", "“", `"`, "”", `"`, "–", "-", "—", "-", "…", "...",
	"œ", "oe", "Œ", "OE", "\u00a0", " ", "\u202f", " ")

// nearestForm returns the replacement of a character that an encoding lacks: a letter without its accents, or plain signs.
func nearestForm(r rune) string {
	if plain := plainForms.Replace(string(r)); plain != string(r) {
		return plain
	}
	letter, _ := utf8.DecodeRuneInString(norm.NFD.String(string(r))) // its accents follow it
	return string(letter)
}

// lineEndSwapper swaps \r and \n in the text that it reads.
type lineEndSwapper struct{ io.Reader }

func (s lineEndSwapper) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	swapLineEnds(p[:n])
	return n, err
}

func swapLineEnds(text []byte) {
	for i, b := range text {
		switch b {
		case '\r':
			text[i] = '\n'
		case '\n':
			text[i] = '\r'
		}
	}
}
