package csvgeocode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"

	"lieudit/http/sitefile/record"
)

// charset is how a file writes its characters and ends its lines. The run works on the bytes of the file as they stand, so that the
// result can repeat them: only what is looked up is decoded. Two kinds of file are rewritten on the way in and back on the way out,
// because encoding/csv cannot read them: UTF-16 becomes UTF-8, and where lines end with \r alone, \r and \n change places.
type charset struct {
	name   string            // one of record.Encodings()
	single *charmap.Charmap  // of one byte a character; nil: UTF-8 or UTF-16
	wide   encoding.Encoding // UTF-16; nil: any other
	usesCR bool              // lines end with \r alone
}

// detectCharset finds out how a file is written. name "" is found out. What is not a CSV is a *FormatError.
func detectCharset(path, name string) (charset, error) {
	file, err := os.Open(path)
	if err != nil {
		return charset{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return charset{}, err
	}
	found, err := record.DetectText(file, info.Size(), path, name)
	if err != nil {
		return charset{}, explainFormat(err)
	}
	if found.Format == record.JSON {
		return charset{}, &FormatError{"this is JSON or GeoJSON: lieudit sites import takes it; save it as CSV to geocode it"}
	}
	c := charset{name: found.Encoding, wide: found.Codec}
	if c.single, _ = found.Codec.(*charmap.Charmap); c.single != nil {
		c.wide = nil
	}
	start := make([]byte, readBufferSize)
	n, err := io.ReadFull(c.decodeText(file), start)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return c, err
	}
	c.usesCR = bytes.IndexByte(start[:n], '\r') >= 0 && bytes.IndexByte(start[:n-1], '\n') < 0 && start[n-1] != '\n'
	return c, nil
}

// decodeText reads a file from where it stands as text that encoding/csv can read. Its bytes are those of the file but for the two
// kinds of file that are rewritten.
func (c charset) decodeText(file io.Reader) io.Reader {
	if c.wide != nil {
		file = transform.NewReader(file, c.wide.NewDecoder())
	}
	if c.usesCR {
		file = lineEndSwapper{file}
	}
	return file
}

// encodeText is the reverse of decodeText, for text that ends with a whole character.
func (c charset) encodeText(text []byte) ([]byte, error) {
	if c.usesCR {
		swapLineEnds(text)
	}
	if c.wide == nil {
		return text, nil
	}
	return c.wide.NewEncoder().Bytes(text)
}

// decodeField is a field of the text as UTF-8.
func (c charset) decodeField(field string) string {
	if c.single == nil {
		return field
	}
	var out strings.Builder
	for i := range len(field) {
		out.WriteRune(c.single.DecodeByte(field[i]))
	}
	return out.String()
}

// encodeField is a text of the result as the file writes it. A character that the encoding lacks is written in its nearest form.
func (c charset) encodeField(text string) string {
	if c.single == nil {
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

// plainForms are characters of labels that some encodings lack, and what stands for them. Letters with accents are not among them.
var plainForms = strings.NewReplacer("’", "'", "‘", "'", "ʼ", "'", "“", `"`, "”", `"`, "–", "-", "—", "-", "…", "...",
	"œ", "oe", "Œ", "OE", "\u00a0", " ", "\u202f", " ")

// nearestForm is what stands for a character in encodings that lack it: a letter without its accents, or plain signs.
func nearestForm(r rune) string {
	if plain := plainForms.Replace(string(r)); plain != string(r) {
		return plain
	}
	letter, _ := utf8.DecodeRuneInString(norm.NFD.String(string(r))) // its accents follow it
	return string(letter)
}

// lineEndSwapper reads text in which \r and \n have changed places.
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

// openText opens the input as text that begins at an offset of the text. Of UTF-16 it decodes all that stands before the offset
// again, since an offset of its text says nothing about a place in the file. The caller closes the file.
func (c charset) openText(path string, offset int64) (*textReader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	text := &textReader{Reader: c.decodeText(file), file: file}
	if c.wide == nil {
		_, err = file.Seek(offset, io.SeekStart)
	} else {
		_, err = io.CopyN(io.Discard, text, offset)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: go on at byte %d: %w", path, offset, errors.Join(err, file.Close()))
	}
	return text, nil
}

// textReader reads the text of a file.
type textReader struct {
	io.Reader
	file *os.File
}
