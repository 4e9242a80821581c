// Package text turns typed text and the names of the address base into the same terms, so that the two can be compared.
// It holds pure functions without data of their own. Both sides pass through the same ones, so
// a change here changes the terms of every vintage that is built.
//
//	string ── Words ──► Word… (folded: no accents, no case, no signs) ── Terms ──► Term… (abbreviations expanded)
//	Term.Text ── Deletes, Distance ──► terms within some edits
//	          ── PhoneticKey ──► terms that sound alike
//	          ── ClassOf ──► how much the term says about a place
package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/text/unicode/norm"
)

// Word is a run of letters or of digits, folded, with its position in the text.
type Word struct {
	Text   string // lower case, without accents
	Start  int    // in characters of the text
	End    int    // one past the last character
	Tail   string // the suffix that makes a number an ordinal: er, e, eme…
	Glued  bool   // no character separates the word from the one before
	Elided bool   // an apostrophe follows the word
	Before Sign   // the signs between the word before and this one
}

// Sign is a set of signs between two words that show how the words belong together.
type Sign uint8

const (
	// Break ends a part of an address: a comma, a semicolon, a line end, a dash between spaces.
	Break Sign = 1 << iota
	// Join connects several numbers: 13/15, 12-14, 1&2, 2_4.
	Join
	// Open and Close are parentheses and brackets.
	Open
	Close
)

// Number reports whether the word is written in digits.
func (w Word) Number() bool { return w.Text != "" && w.Text[0] >= '0' && w.Text[0] <= '9' }

// Words splits a text into words. Invalid UTF-8, signs and spaces separate words. Digits and letters separate each
// other, except for the suffix of an ordinal.
func Words(s string) []Word {
	c := tokenizer{words: make([]Word, 0, strings.Count(s, " ")+3), buf: make([]byte, 0, len(s)+8)}
	at := 0
	for i := 0; i < len(s); at++ {
		r, size := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
		}
		c.addRune(r, at)
		i += size
	}
	c.endWord()
	return c.words
}

// Fold joins the words of a text with single spaces.
func Fold(s string) string {
	if isFolded(s) {
		return s
	}
	out := make([]byte, 0, len(s)+8)
	for i, w := range Words(s) {
		if i > 0 {
			out = append(out, ' ')
		}
		out = append(append(out, w.Text...), w.Tail...)
	}
	return string(out)
}

// isFolded reports whether a text is words of small letters with single spaces, which Fold leaves unchanged.
func isFolded(s string) bool {
	isInWord := s == ""
	for i := range len(s) {
		isLetter := 'a' <= s[i] && s[i] <= 'z'
		if !isLetter && (s[i] != ' ' || !isInWord) {
			return false
		}
		isInWord = isLetter
	}
	return isInWord
}

// tokenizer builds words from characters.
type tokenizer struct {
	words     []Word
	buf       []byte // of all words; it only grows, so that the texts of words are parts of it
	wordStart int    // start of the current word in buf
	start     int    // first character of the current word
	end       int    // one past the last character of the current word
	isNumber  bool
	signs     Sign // since the last word
	hasSpace  bool // a space came since the last word
}

// addRune adds the character at a position of the text.
func (c *tokenizer) addRune(r rune, at int) {
	before := len(c.buf)
	c.buf = appendFolded(c.buf, r)
	if len(c.buf) == before {
		if !unicode.Is(unicode.Mn, r) {
			c.endWord()
			c.markElided(r, at)
			c.addSign(r)
		} else if c.wordStart < before {
			c.end = at + 1
		}
		return
	}
	digit := c.buf[before] >= '0' && c.buf[before] <= '9'
	if before > c.wordStart && digit != c.isNumber {
		c.emitWord(c.buf[c.wordStart:before])
		c.wordStart = before
	}
	if before == c.wordStart {
		c.start, c.isNumber = at, digit
	}
	c.end = at + 1
}

// endWord ends the current word, if there is one.
func (c *tokenizer) endWord() {
	if len(c.buf) > c.wordStart {
		c.emitWord(c.buf[c.wordStart:])
		c.wordStart = len(c.buf)
	}
}

// addSign records a sign before the next word. A dash after a space ends a part of the address; one between words joins
// them.
func (c *tokenizer) addSign(r rune) {
	switch r {
	case ',', ';', '\n', '\r', '\t', '|', '·', '•':
		c.signs |= Break
	case '/', '&', '+', '_':
		c.signs |= Join
	case '-', '–', '—', '‐', '‑':
		if c.hasSpace {
			c.signs |= Break
		}
		c.signs |= Join
	case '(', '[', '{':
		c.signs |= Open
	case ')', ']', '}':
		c.signs |= Close
	case ' ', '\u00a0', '\u202f':
		c.hasSpace = true
	}
}

// markElided marks the word before an apostrophe.
func (c *tokenizer) markElided(r rune, at int) {
	if n := len(c.words); n > 0 && c.words[n-1].End == at && (r == '\'' || r == '’' || r == 'ʼ' || r == '`') {
		c.words[n-1].Elided = true
	}
}

// emitWord appends a word, or joins the suffix of an ordinal to the number before it.
func (c *tokenizer) emitWord(word []byte) {
	glued := false
	if n := len(c.words); n > 0 && c.words[n-1].End == c.start {
		before := &c.words[n-1]
		glued = true
		if before.Number() && before.Tail == "" && isOrdinalSuffix(viewString(word)) {
			before.Tail, before.End = viewString(word), c.end
			return
		}
	}
	c.words = append(c.words, Word{Text: viewString(word), Start: c.start, End: c.end, Glued: glued, Before: c.signs})
	c.signs, c.hasSpace = 0, false
}

// viewString returns a text without copying its bytes, which must not change any more.
func viewString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func isOrdinalSuffix(tail string) bool {
	switch tail {
	case "er", "ere", "re", "e", "eme", "ieme", "nd", "nde":
		return true
	}
	return false
}

// appendFolded appends the plain letters of a character. It appends nothing for a sign.
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
	if buf = appendLigature(buf, r); len(buf) > n {
		return buf
	}
	if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
		return buf
	}
	return appendBase(buf, r)
}

// appendLigature appends the letters that a ligature or foreign letter stands for.
func appendLigature(buf []byte, r rune) []byte {
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

// latinBases are the plain letters of U+00C0 to U+00FF, 0 if there is none.
const latinBases = "aaaaaa\x00ceeeeiiii\x00nooooo\x00\x00uuuuy\x00\x00aaaaaa\x00ceeeeiiii\x00nooooo\x00\x00uuuuy\x00y"

// appendBase appends a letter without its diacritics.
func appendBase(buf []byte, r rune) []byte {
	if i := int(r) - 0xC0; i >= 0 && i < len(latinBases) && latinBases[i] != 0 {
		return append(buf, latinBases[i])
	}
	var whole, parts [utf8.UTFMax * 4]byte
	n := utf8.EncodeRune(whole[:], r)
	base, _ := utf8.DecodeRune(norm.NFD.Append(parts[:0], whole[:n]...))
	n = len(buf)
	if buf = appendLigature(buf, base); len(buf) > n {
		return buf
	}
	return utf8.AppendRune(buf, unicode.ToLower(base))
}
