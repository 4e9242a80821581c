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

// encodings are all that a text may have. The first of those with one byte a character is the one that decides where several fit.
var encodings = []namedEncoding{
	{"utf-8", nil},
	{"utf-16le", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)},
	{"utf-16be", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
	{"windows-1252", charmap.Windows1252},
	{"iso-8859-15", charmap.ISO8859_15},
	{"macintosh", charmap.Macintosh},
	{"ibm850", charmap.CodePage850},
}

// Encodings are the names that Options.Encoding can have.
func Encodings() []string {
	names := make([]string, len(encodings))
	for i, e := range encodings {
		names[i] = e.name
	}
	return names
}

// text is a file of text, whose encoding is known. Each call of open decodes it from its beginning.
type text struct {
	file   *io.SectionReader // without the byte order mark
	coding namedEncoding
	stats  textStats
	undo   bool // UTF-8 was read as Windows-1252 and written again: undo it
}

// openText finds out the encoding of a text: by name, by the byte order mark, by the noughts of UTF-16, else by all its bytes.
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

func findEncoding(name string) (namedEncoding, error) {
	for _, e := range encodings {
		if strings.EqualFold(e.name, name) {
			return e, nil
		}
	}
	return namedEncoding{}, &FormatError{fmt.Sprintf("no encoding is called %q here; there are %s", name, strings.Join(Encodings(), ", "))}
}

// detectMark is the encoding that a byte order mark names, and the length of the mark. Without one it may still be UTF-16: where
// every other byte is nought. An encoding without name: not known yet.
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
	var noughts [2]int
	for i, b := range start {
		if b == 0 {
			noughts[i%2]++
		}
	}
	pairs := len(start) / 2
	switch {
	case noughts[1] > pairs/2 && noughts[0] <= pairs/50:
		return encodings[1], 0, nil
	case noughts[0] > pairs/2 && noughts[1] <= pairs/50:
		return encodings[2], 0, nil
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

// beginning is the first characters of the text, enough to tell formats and separators apart. A text that is empty, or has only
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

const (
	detectBytes = 64 << 10
	sampleBytes = 512 << 10
)

// fill sets what is known of the text in info.
func (t *text) fill(info *Info) {
	info.Encoding = t.coding.name
	if t.coding.codec == nil {
		info.BrokenCharacters, info.WrongDecoding, info.WrongDecodingUndone = t.stats.broken, t.stats.decodedTwice, t.undo
	}
}

// textStats are what all bytes of a text say about its encoding.
type textStats struct {
	hasNUL       bool
	characters   int      // of several bytes, in UTF-8
	broken       Count    // bytes of no character of UTF-8
	decodedTwice Count    // Ã or Â and a sign that cannot follow it in a word
	letters      int      // é, è, à and their like
	bytes        [256]int // bytes from 0x80 on, of pieces that are no UTF-8
	ligatures    int      // bytes that are œ or Œ in ISO-8859-15, beside letters
	line         int
}

// scanText reads a text to its end. Pieces that are UTF-8 are counted by fast means; characters that a piece cuts are carried over.
func scanText(in io.Reader) (textStats, error) {
	s := textStats{line: 1}
	buf, kept := make([]byte, 256<<10), 0
	for {
		n, err := io.ReadFull(in, buf[kept:])
		atEnd := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !atEnd {
			return s, err
		}
		piece := buf[:kept+n]
		if !atEnd {
			piece = piece[:len(piece)-incompleteTail(piece)]
		}
		s.countPiece(piece)
		if atEnd {
			return s, nil
		}
		kept = copy(buf, buf[len(piece):kept+n])
	}
}

// incompleteTail is the length of a character of UTF-8 that a piece cuts, at most 3 bytes.
func incompleteTail(piece []byte) int {
	for n := 1; n <= min(3, len(piece)); n++ {
		if tail := piece[len(piece)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

func (s *textStats) countPiece(piece []byte) {
	s.hasNUL = s.hasNUL || bytes.IndexByte(piece, 0) >= 0
	if n := utf8.RuneCount(piece); n == len(piece) && utf8.Valid(piece) {
		s.line += countLines(piece)
		return
	}
	valid := utf8.Valid(piece)
	counted := 0 // up to where lines are counted
	for i := 0; i < len(piece); {
		if piece[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRune(piece[i:])
		isBroken, isTwice := r == utf8.RuneError && size == 1, isDecodedTwice(r, piece[i+size:])
		if isBroken || isTwice {
			s.line += countLines(piece[counted:i])
			counted = i
		}
		s.countRune(r, isBroken, isTwice)
		if !valid {
			s.countBytes(piece, i, size)
		}
		i += size
	}
	s.line += countLines(piece[counted:])
}

func (s *textStats) countRune(r rune, isBroken, isTwice bool) {
	switch {
	case isBroken:
		s.broken.add(s.line)
		return
	case isTwice:
		s.decodedTwice.add(s.line)
	case strings.ContainsRune("éèêëàçôîïûùÉÈÀÇ", r):
		s.letters++
	}
	s.characters++
}

// countBytes counts a piece's bytes as characters of one byte each, from i on.
func (s *textStats) countBytes(piece []byte, i, size int) {
	for j := i; j < i+size; j++ {
		b := piece[j]
		s.bytes[b]++
		if (b == 0xBC || b == 0xBD) && j+1 < len(piece) && isLetter(piece[j+1]) {
			s.ligatures++
		}
	}
}

func isLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

// isDecodedTwice reports whether r and the character after it are two bytes of UTF-8 that were read as Windows-1252: Ã and ©.
func isDecodedTwice(r rune, rest []byte) bool {
	if r != 'Ã' && r != 'Â' && r != 'â' || len(rest) == 0 || rest[0] < utf8.RuneSelf {
		return false
	}
	next, _ := utf8.DecodeRune(rest)
	b, ok := encodeTwice(next)
	return ok && b >= 0x80 && b < 0xC0
}

// isDecodedTwice reports whether the whole text is so: often, and without any letter with an accent that stands for itself.
func (s *textStats) isDecodedTwice() bool { return s.decodedTwice.Number >= 5 && s.letters == 0 }

// countLines counts line ends: \r\n, \n and \r.
func countLines(piece []byte) int {
	n := bytes.Count(piece, []byte{'\n'})
	if cr := bytes.Count(piece, []byte{'\r'}); cr > 0 {
		n += cr - bytes.Count(piece, []byte("\r\n"))
	}
	return n
}

// brokenShare is how many characters of several bytes a text in UTF-8 has at least for each broken one. In other encodings letters with
// accents hardly ever stand beside such signs that they look like UTF-8.
const brokenShare = 2

// chooseEncoding is UTF-8 for a text that is so but for a few bytes, else the encoding of one byte a character that gives most letters
// of French. It is Windows-1252 unless that gives signs that no text has.
func (s *textStats) chooseEncoding() namedEncoding {
	if s.characters >= brokenShare*s.broken.Number {
		return encodings[0]
	}
	best, bestScore := encodings[3], s.score(charmap.Windows1252)
	switch {
	case s.ligatures > 0 && !s.hasC1():
		return encodings[4]
	case bestScore >= 0:
		return best
	}
	for _, e := range encodings[5:] {
		if score := s.score(e.codec.(*charmap.Charmap)); score > bestScore && score > 0 {
			best, bestScore = e, score
		}
	}
	return best
}

// hasC1 reports whether the text has bytes that are control signs in ISO-8859-15, and text in Windows-1252.
func (s *textStats) hasC1() bool {
	for b := 0x80; b < 0xA0; b++ {
		if s.bytes[b] > 0 {
			return true
		}
	}
	return false
}

// score is how French the text is in an encoding: letters for it, signs that no text has against it.
func (s *textStats) score(m *charmap.Charmap) int {
	score := 0
	for b := 0x80; b < 0x100; b++ {
		switch r := m.DecodeByte(byte(b)); {
		case strings.ContainsRune("éèêëàâçôîïûùœ", r):
			score += 3 * s.bytes[b]
		case strings.ContainsRune("ÉÈÊÀÂÇÔÎŒ°«»‘’“”–—•€…\u00a0", r):
			score += s.bytes[b]
		default:
			score -= 3 * s.bytes[b]
		}
	}
	return score
}

// repairUTF8 is a transform.Transformer that keeps UTF-8 and reads each byte that is none as Windows-1252, because rows of another
// program were put below the others. The rest of a character that was cut becomes U+FFFD.
type repairUTF8 struct{ transform.NopResetter }

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

// repairByte is the character that a byte of no character stands for, and how many bytes it takes. 0xC2 and 0xC3 are letters that
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

func isASCII(r rune) bool { return r < utf8.RuneSelf }

// undoRune is the character that the first ones of rest stand for, and their bytes.
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
