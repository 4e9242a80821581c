package record

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// The encoding is decided on the whole text. Its beginning may be ASCII for thousands of rows; and one byte that is wrong, cut by a
// database or pasted by hand, must not turn all other accents into signs.

// textStats counts the bytes of a text that bear on its encoding.
type textStats struct {
	hasNUL       bool
	characters   int      // of several bytes, in UTF-8
	broken       Count    // bytes of no character of UTF-8
	decodedTwice Count    // Ã or Â and a sign that cannot follow it in a word
	letters      int      // é, è, à and their like
	bytes        [256]int // bytes from 0x80 on, of pieces that are not UTF-8
	ligatures    int      // bytes that are œ or Œ in ISO-8859-15, next to letters
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

// incompleteTail is the length of a character of UTF-8 that a piece cuts, at most 3 bytes, or of a line end that it may cut.
func incompleteTail(piece []byte) int {
	if bytes.HasSuffix(piece, []byte{'\r'}) {
		return 1
	}
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

// countPiece counts what a piece has. Only one with letters beyond ASCII is read character by character.
func (s *textStats) countPiece(piece []byte) {
	s.hasNUL = s.hasNUL || bytes.IndexByte(piece, 0) >= 0
	// Most pieces of most files are ASCII, for which whole words are compared at once.
	if n := utf8.RuneCount(piece); n == len(piece) && utf8.Valid(piece) {
		s.line += countLines(piece)
		return
	}
	valid := utf8.Valid(piece)
	counted := 0 // lines are counted up to here
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

// countRune counts a character of several bytes, or a byte outside any character.
func (s *textStats) countRune(r rune, isBroken, isTwice bool) {
	switch {
	case isBroken:
		s.broken.Add(s.line)
		return
	case isTwice:
		s.decodedTwice.Add(s.line)
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

// isLetter reports whether a byte is a letter of ASCII.
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

// isDecodedTwice reports whether the whole text was decoded twice: many characters were, and no accented letter stands for itself.
func (s *textStats) isDecodedTwice() bool { return s.decodedTwice.Number >= 5 && s.letters == 0 }

// countLines counts line ends: \r\n, \n and \r.
func countLines(piece []byte) int {
	n := bytes.Count(piece, []byte{'\n'})
	if cr := bytes.Count(piece, []byte{'\r'}); cr > 0 {
		n += cr - bytes.Count(piece, []byte("\r\n"))
	}
	return n
}

// brokenShare is the least number of characters of several bytes in a UTF-8 text for each broken one. In other encodings letters with
// accents hardly ever stand next to characters with which they look like UTF-8.
const brokenShare = 2

// chooseEncoding returns UTF-8 for a text in it but for a few bytes, otherwise the single-byte encoding that gives the most letters
// of French. It prefers Windows-1252 unless that gives characters that do not occur in texts.
func (s *textStats) chooseEncoding() namedEncoding {
	if s.characters >= brokenShare*s.broken.Number {
		return encodings[utf8Index]
	}
	best, bestScore := encodings[windowsIndex], s.score(charmap.Windows1252)
	switch {
	case s.ligatures > 0 && !s.hasC1():
		return encodings[latin9Index]
	case bestScore >= 0:
		return best
	}
	for _, e := range []namedEncoding{encodings[macIndex], encodings[dosIndex]} {
		if score := s.score(e.codec.(*charmap.Charmap)); score > max(bestScore, 0) {
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

// score is how French the text is in an encoding: letters speak for it, signs that no text has against it. Punctuation speaks less than
// letters, because the letters of one encoding are the punctuation of another.
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
