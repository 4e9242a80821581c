package record

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// namedEncoding is an encoding and its name. A nil codec is UTF-8.
type namedEncoding struct {
	name  string
	codec encoding.Encoding
}

// encodings are all possible encodings of a text.
var encodings = []namedEncoding{
	utf8Index:    {"utf-8", nil},
	utf16LEIndex: {"utf-16le", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)},
	utf16BEIndex: {"utf-16be", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
	windowsIndex: {"windows-1252", charmap.Windows1252},
	latin9Index:  {"iso-8859-15", charmap.ISO8859_15},
	macIndex:     {"macintosh", charmap.Macintosh},
	dosIndex:     {"ibm850", charmap.CodePage850},
}

// The indexes of the encodings in their list.
const (
	utf8Index = iota
	utf16LEIndex
	utf16BEIndex
	windowsIndex
	latin9Index
	macIndex
	dosIndex
)

// Encodings are the names that Options.Encoding can have.
func Encodings() []string {
	names := make([]string, len(encodings))
	for i, e := range encodings {
		names[i] = e.name
	}
	return names
}

// text is a file of text whose encoding is known. Each call of open decodes it from its beginning, as valid UTF-8 without
// a mark, unless the file has U+FEFF inside.
type text struct {
	file   *io.SectionReader // without the byte order mark
	coding namedEncoding
	stats  textStats
	undo   bool // UTF-8 was read as Windows-1252 and written again: undo it
}

// openText detects the encoding of a text: by name, by the byte order mark, by the zeros of UTF-16, otherwise by all its bytes.
func openText(file *io.SectionReader, name string) (*text, error) {
	marked, markLen, err := detectMark(file)
	if err != nil {
		return nil, err
	}
	t := &text{file: io.NewSectionReader(file, int64(markLen), file.Size()-int64(markLen)), coding: marked}
	if name != "" {
		if t.coding, err = findEncoding(name); err != nil {
			return nil, err
		}
	}
	if strings.HasPrefix(t.coding.name, "utf-16") {
		return t, nil
	}
	if t.stats, err = scanText(io.NewSectionReader(t.file, 0, t.file.Size())); err != nil {
		return nil, err
	}
	if t.coding.name == "" {
		t.coding = t.stats.chooseEncoding()
	}
	if t.stats.hasNUL {
		return nil, &FormatError{"this is a binary file: save it as CSV, XLSX or GeoJSON"}
	}
	t.undo = t.coding.codec == nil && t.stats.isDecodedTwice()
	return t, nil
}

// findEncoding is the encoding of a name that Options give.
func findEncoding(name string) (namedEncoding, error) {
	for _, e := range encodings {
		if strings.EqualFold(e.name, name) {
			return e, nil
		}
	}
	return namedEncoding{}, &FormatError{fmt.Sprintf("no encoding is called %q here; there are %s", name, strings.Join(Encodings(), ", "))}
}

// detectMark is the encoding that a byte order mark names, and the length of the mark. Without one it may still be UTF-16, if
// every other byte is zero. The encoding has no name if it is not known yet.
func detectMark(file *io.SectionReader) (namedEncoding, int, error) {
	start := make([]byte, min(file.Size(), detectBytes))
	if _, err := file.ReadAt(start, 0); err != nil && err != io.EOF {
		return namedEncoding{}, 0, err
	}
	marks := []string{"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"} // in the order of encodings
	for i, mark := range marks {
		if bytes.HasPrefix(start, []byte(mark)) {
			return encodings[i], len(mark), nil
		}
	}
	// In UTF-16 European text nearly every high byte is zero, and hardly any low one.
	var noughts [2]int
	for i, b := range start {
		if b == 0 {
			noughts[i%2]++
		}
	}
	pairs := len(start) / 2
	switch {
	case noughts[1] > pairs/2 && noughts[0] <= pairs/50:
		return encodings[utf16LEIndex], 0, nil
	case noughts[0] > pairs/2 && noughts[1] <= pairs/50:
		return encodings[utf16BEIndex], 0, nil
	}
	return namedEncoding{}, 0, nil
}

// open decodes the text from its beginning.
func (t *text) open() io.Reader {
	in := io.Reader(io.NewSectionReader(t.file, 0, t.file.Size()))
	switch {
	case t.coding.codec != nil:
		return transform.NewReader(in, t.coding.codec.NewDecoder())
	case t.undo:
		return transform.NewReader(transform.NewReader(in, repairUTF8{}), undoDecoding{})
	case t.stats.broken.Number > 0:
		return transform.NewReader(in, repairUTF8{})
	}
	return in
}

// beginning returns the first characters of the text, enough to recognize formats and separators. A text that is empty, or has only
// spaces, is a *FormatError.
func (t *text) beginning() ([]byte, error) {
	start := make([]byte, sampleBytes)
	n, err := io.ReadFull(t.open(), start)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return nil, err
	}
	if len(bytes.TrimSpace(start[:n])) == 0 {
		if err == nil {
			return nil, &FormatError{"the file begins with nothing but spaces: take them out"}
		}
		return nil, &FormatError{"the file is empty"}
	}
	return start[:n], nil
}

// How much of a file is inspected, in bytes of the file and of its text: to recognize binary formats, and to find the separator.
const (
	detectBytes = 64 << 10
	sampleBytes = 512 << 10
)

// fillInfo sets the properties of the text in info.
func (t *text) fillInfo(info *Info) {
	info.Encoding = t.coding.name
	if t.coding.codec == nil {
		info.BrokenCharacters, info.WrongDecoding, info.WrongDecodingUndone = t.stats.broken, t.stats.decodedTwice, t.undo
	}
}

// Two fixes of UTF-8 follow. Both leave a correct text unchanged, and are used only on files whose statistics call for them.

// repairUTF8 is a transform.Transformer that keeps UTF-8 and reads each other byte as Windows-1252, because rows of another
// program were appended. The rest of a character that was cut becomes U+FFFD.
type repairUTF8 struct{ transform.NopResetter }

// Transform is that of transform.Transformer.
func (repairUTF8) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for nSrc < len(src) {
		rest := src[nSrc:]
		if !atEOF && !utf8.FullRune(rest) {
			return nDst, nSrc, transform.ErrShortSrc
		}
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 {
			r, size = repairByte(rest)
		}
		if nDst+utf8.RuneLen(r) > len(dst) {
			return nDst, nSrc, transform.ErrShortDst
		}
		nDst += utf8.EncodeRune(dst[nDst:], r)
		nSrc += size
	}
	return nDst, nSrc, nil
}

// repairByte is the character for a byte outside UTF-8, and how many bytes it takes. 0xC2 and 0xC3 are letters that
// French lacks, and begin those that it has.
func repairByte(rest []byte) (rune, int) {
	if rest[0] == 0xC2 || rest[0] == 0xC3 {
		return utf8.RuneError, 1
	}
	if rest[0] >= 0xE0 && len(rest) > 1 && !utf8.RuneStart(rest[1]) {
		return utf8.RuneError, 2
	}
	return charmap.Windows1252.DecodeByte(rest[0]), 1
}

// undoDecoding is a transform.Transformer for UTF-8 that was read as Windows-1252 and written again. Characters that were not stay.
type undoDecoding struct{ transform.NopResetter }

// Transform is that of transform.Transformer.
func (undoDecoding) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for nSrc < len(src) {
		rest := src[nSrc:]
		if !atEOF && len(rest) < 12 && !isComplete(rest) { // four characters of three bytes are the longest
			return nDst, nSrc, transform.ErrShortSrc
		}
		r, size := undoRune(rest)
		if nDst+utf8.RuneLen(r) > len(dst) {
			return nDst, nSrc, transform.ErrShortDst
		}
		nDst += utf8.EncodeRune(dst[nDst:], r)
		nSrc += size
	}
	return nDst, nSrc, nil
}

// isComplete reports whether no more bytes can change what the first character of rest stands for.
func isComplete(rest []byte) bool {
	return rest[0] < utf8.RuneSelf || bytes.IndexFunc(rest, isASCII) > 0
}

// isASCII ends a group: bytes that were read as Windows-1252 are not ASCII.
func isASCII(r rune) bool { return r < utf8.RuneSelf }

// undoRune is the character for which the first ones of rest stand, and their length in bytes.
func undoRune(rest []byte) (rune, int) {
	var meant [utf8.UTFMax]byte
	n, size := 0, 0
	for n < utf8.UTFMax && size < len(rest) {
		r, width := utf8.DecodeRune(rest[size:])
		b, ok := encodeTwice(r)
		if !ok || r < utf8.RuneSelf {
			break
		}
		meant[n] = b
		n, size = n+1, size+width
		if r, width := utf8.DecodeRune(meant[:n]); r != utf8.RuneError && width == n {
			return r, size
		}
	}
	return utf8.DecodeRune(rest)
}

// encodeTwice is the byte that was read as r: that of Windows-1252, or one that has no character there.
func encodeTwice(r rune) (byte, bool) {
	if b, ok := charmap.Windows1252.EncodeRune(r); ok {
		return b, true
	}
	return byte(r), r >= 0x80 && r < 0xA0
}
