// Package text turns what people type, and what the base publishes, into the same words: accents, case, apostrophes,
// hyphens and abbreviations are gone, on both sides alike. It holds pure functions and knows no data.
package text

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Word is a run of letters or of digits, folded, and where it stood.
type Word struct {
	Text   string // lower case, without accents
	Start  int    // in characters of the text
	End    int    // one past the last character
	Tail   string // what was glued to a number and makes it an ordinal: er, e, eme…
	Glued  bool   // nothing stood between this word and the one before
	Elided bool   // an apostrophe follows
	Before Sign   // the signs between the word before and this one
}

// Sign is a set of the signs between two words that say how they belong together.
type Sign uint8

const (
	// Break ends a part of an address: a comma, a semicolon, a line end, a dash between spaces.
	Break Sign = 1 << iota
	// Join makes several numbers one: 13/15, 12-14, 1&2, 2_4.
	Join
	// Open and Close are parentheses and brackets.
	Open
	Close
)

// Number says whether the word is written in digits.
func (w Word) Number() bool { return w.Text != "" && w.Text[0] >= '0' && w.Text[0] <= '9' }

// Words cuts a text into its words. Invalid UTF-8, signs and spaces separate; digits and letters separate each other,
// save for the tail of an ordinal.
func Words(s string) []Word {
	var c cutter
	c.buf = make([]byte, 0, len(s)+8)
	at := 0
	for i := 0; i < len(s); at++ {
		r, size := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
		}
		c.take(r, at)
		i += size
	}
	c.flush()
	return c.words
}

// Fold is a text's words in a row, one space between.
func Fold(s string) string {
	var out []byte
	for i, w := range Words(s) {
		if i > 0 {
			out = append(out, ' ')
		}
		out = append(append(out, w.Text...), w.Tail...)
	}
	return string(out)
}

// cutter gathers words out of characters.
type cutter struct {
	words  []Word
	buf    []byte
	from   int // where in buf the word under way begins
	start  int // its first character
	end    int // one past its last character
	digits bool
	signs  Sign // since the last word
	spaced bool // a space came since the last word
}

func (c *cutter) take(r rune, at int) {
	before := len(c.buf)
	c.buf = appendFolded(c.buf, r)
	if len(c.buf) == before {
		if !unicode.Is(unicode.Mn, r) {
			c.flush()
			c.elide(r, at)
			c.noteSign(r)
		} else if c.from < before {
			c.end = at + 1
		}
		return
	}
	digit := c.buf[before] >= '0' && c.buf[before] <= '9'
	if before > c.from && digit != c.digits {
		c.emit(c.buf[c.from:before])
		c.from = before
	}
	if before == c.from {
		c.start, c.digits = at, digit
	}
	c.end = at + 1
}

func (c *cutter) flush() {
	if len(c.buf) > c.from {
		c.emit(c.buf[c.from:])
		c.from = len(c.buf)
	}
}

// noteSign keeps what a sign says of the words around it. A dash after a space ends a part; one between words joins.
func (c *cutter) noteSign(r rune) {
	switch r {
	case ',', ';', '\n', '\r', '\t', '|', '·', '•':
		c.signs |= Break
	case '/', '&', '+', '_':
		c.signs |= Join
	case '-', '–', '—', '‐', '‑':
		if c.spaced {
			c.signs |= Break
		}
		c.signs |= Join
	case '(', '[', '{':
		c.signs |= Open
	case ')', ']', '}':
		c.signs |= Close
	case ' ', '\u00a0', '\u202f':
		c.spaced = true
	}
}

// elide marks the word that an apostrophe follows.
func (c *cutter) elide(r rune, at int) {
	if n := len(c.words); n > 0 && c.words[n-1].End == at && (r == '\'' || r == '’' || r == 'ʼ' || r == '`') {
		c.words[n-1].Elided = true
	}
}

func (c *cutter) emit(word []byte) {
	glued := false
	if n := len(c.words); n > 0 && c.words[n-1].End == c.start {
		before := &c.words[n-1]
		glued = true
		if before.Number() && before.Tail == "" && ordinal(string(word)) {
			before.Tail, before.End = string(word), c.end
			return
		}
	}
	c.words = append(c.words, Word{Text: string(word), Start: c.start, End: c.end, Glued: glued, Before: c.signs})
	c.signs, c.spaced = 0, false
}

func ordinal(tail string) bool {
	switch tail {
	case "er", "ere", "re", "e", "eme", "ieme", "nd", "nde":
		return true
	}
	return false
}

// appendFolded appends the plain letters of a character, or nothing for a sign.
func appendFolded(buf []byte, r rune) []byte {
	switch {
	case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
		return append(buf, byte(r))
	case 'A' <= r && r <= 'Z':
		return append(buf, byte(r)+'a'-'A')
	case r < utf8.RuneSelf || r == utf8.RuneError:
		return buf
	}
	n := len(buf)
	if buf = appendSpelt(buf, r); len(buf) > n {
		return buf
	}
	if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
		return buf
	}
	return appendBase(buf, r)
}

// appendSpelt appends a letter that stands for others, as these.
func appendSpelt(buf []byte, r rune) []byte {
	switch r {
	case 'œ', 'Œ':
		return append(buf, "oe"...)
	case 'æ', 'Æ':
		return append(buf, "ae"...)
	case 'ß', 'ẞ':
		return append(buf, "ss"...)
	case 'ø', 'Ø':
		return append(buf, 'o')
	}
	return buf
}

// appendBase appends a letter without its marks.
func appendBase(buf []byte, r rune) []byte {
	var whole, parts [utf8.UTFMax * 4]byte
	n := utf8.EncodeRune(whole[:], r)
	base, _ := utf8.DecodeRune(norm.NFD.Append(parts[:0], whole[:n]...))
	n = len(buf)
	if buf = appendSpelt(buf, base); len(buf) > n {
		return buf
	}
	return utf8.AppendRune(buf, unicode.ToLower(base))
}
