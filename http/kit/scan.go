package kit

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// The limits of a text. maxDepth bounds the recursion of the scanner. No struct of a request is nearly as deep, so only free JSON
// and skipped values can reach it. maxMembers bounds the names of one object, which are kept until its end to find duplicates.
const (
	maxDepth   = 64
	maxMembers = 1000 // of one object
)

// errNotJSON means that the text is not JSON, or breaks one of the stricter rules of jsonScanner.
var errNotJSON = errors.New("not JSON")

// jsonScanner scans JSON strictly: no duplicate members, no lone surrogates, at most maxMembers members in an object, and no
// nesting deeper than maxDepth. The text must be valid UTF-8; the caller checks that. Each method starts at pos, skips spaces,
// and leaves pos after what it scanned. After an error, pos is undefined and the scanner must not be used again.
type jsonScanner struct {
	text          []byte
	pos           int
	depth         int
	memberNames   []string          // of the objects that are open, the outermost first
	internedNames map[string]string // names that were scanned, so that each is allocated once

	giveWay   func(scanned int) error // called about every turnBytes; nil if the scan does not take turns
	turnBegan int                     // pos at the last call of giveWay
	turnErr   error                   // the error of giveWay that ended the scan
}

// turnBytes is how many bytes are scanned between two calls of giveWay.
const turnBytes = 32 << 10

// takeTurn calls giveWay if it is due.
func (s *jsonScanner) takeTurn() error {
	if s.giveWay == nil || s.pos-s.turnBegan < turnBytes {
		return nil
	}
	s.turnErr = s.giveWay(s.pos - s.turnBegan)
	s.turnBegan = s.pos
	return s.turnErr
}

// peekByte skips spaces and returns the first byte of the next token, or 0 at the end.
func (s *jsonScanner) peekByte() byte {
	for s.pos < len(s.text) {
		switch c := s.text[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// consumeByte skips the next token if it is the byte c, and reports whether it was.
func (s *jsonScanner) consumeByte(c byte) bool {
	if s.peekByte() != c {
		return false
	}
	s.pos++
	return true
}

// scanElements calls scanElement for each element of an object or list. The next token is its opening bracket; scanElements scans
// up to the closing one.
func (s *jsonScanner) scanElements(closing byte, scanElement func() error) error {
	if s.depth++; s.depth > maxDepth {
		return errNotJSON
	}
	defer func() { s.depth-- }()
	s.peekByte()
	s.pos++ // the opening bracket
	if s.consumeByte(closing) {
		return nil
	}
	for {
		if err := scanElement(); err != nil {
			return err
		}
		if err := s.takeTurn(); err != nil {
			return err
		}
		switch {
		case s.consumeByte(closing):
			return nil
		case !s.consumeByte(','):
			return errNotJSON
		}
	}
}

// scanMembers calls scanValue for each member of the next object, with pos at the member's value. scanValue must scan exactly
// that value. Nested objects push their names on memberNames above those of this object, and remove them.
func (s *jsonScanner) scanMembers(scanValue func(name string) error) error {
	firstName := len(s.memberNames)
	var seen map[string]bool
	err := s.scanElements('}', func() error {
		name, err := s.scanName()
		if err != nil || len(s.memberNames)-firstName == maxMembers || !s.consumeByte(':') {
			return errNotJSON
		}
		if len(s.memberNames)-firstName == maxLinearSearch {
			seen = make(map[string]bool)
			for _, n := range s.memberNames[firstName:] {
				seen[n] = true
			}
		}
		if seen[name] || seen == nil && slices.Contains(s.memberNames[firstName:], name) {
			return errNotJSON
		}
		if seen != nil {
			seen[name] = true
		}
		s.memberNames = append(s.memberNames, name)
		return scanValue(name)
	})
	s.memberNames = s.memberNames[:firstName]
	return err
}

// maxLinearSearch is the number of names up to which a linear search is faster than a map.
const maxLinearSearch = 32

// maxInternedNames bounds internedNames, which a client fills.
const maxInternedNames = 256

// scanName scans the next string, the name of a member. The objects of a list have the same member names, so a name is looked up
// by its bytes first, and allocated only if it is new. Names with escapes are not interned: their bytes are not their text.
func (s *jsonScanner) scanName() (string, error) {
	if s.peekByte() == '"' {
		rest := s.text[s.pos+1:]
		if end := bytes.IndexByte(rest, '"'); end >= 0 {
			if name, ok := s.internedNames[string(rest[:end])]; ok {
				s.pos += end + 2
				return name, nil
			}
		}
	}
	start := s.pos
	name, err := s.scanString()
	if err == nil && len(s.internedNames) < maxInternedNames && s.pos-start == len(name)+2 { // without escapes, so that the text is the name
		if s.internedNames == nil {
			s.internedNames = make(map[string]string)
		}
		s.internedNames[name] = name
	}
	return name, err
}

// scanRawValue checks the next value, of any kind, and returns its text.
func (s *jsonScanner) scanRawValue() ([]byte, error) {
	c := s.peekByte()
	start := s.pos
	var err error
	switch {
	case c == '{':
		err = s.scanMembers(func(string) error { return s.skipValue() })
	case c == '[':
		err = s.scanElements(']', s.skipValue)
	case c == '"':
		err = s.skipString()
	case c == '-' || c >= '0' && c <= '9':
		_, err = s.scanNumber()
	default:
		err = s.scanLiteral()
	}
	return s.text[start:s.pos], err
}

// skipValue checks and skips the next value, of any kind.
func (s *jsonScanner) skipValue() error {
	_, err := s.scanRawValue()
	return err
}

// scanLiteral skips true, false or null.
func (s *jsonScanner) scanLiteral() error {
	s.peekByte()
	for _, w := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(s.text[s.pos:], []byte(w)) {
			s.pos += len(w)
			return nil
		}
	}
	return errNotJSON
}

// scanNumber returns the text of the next number.
func (s *jsonScanner) scanNumber() (string, error) {
	s.peekByte()
	n := numberLength(s.text[s.pos:])
	if n == 0 {
		return "", errNotJSON
	}
	s.pos += n
	return string(s.text[s.pos-n : s.pos]), nil
}

// numberLength returns how many bytes at the beginning of a text are a JSON number, or 0 if it does not begin with a number. The
// caller must check what follows them: in 012 only the first byte is a number.
func numberLength(text []byte) int {
	i := 0
	skipDigits := func() bool {
		start := i
		for i < len(text) && text[i] >= '0' && text[i] <= '9' {
			i++
		}
		return i > start
	}
	accept := func(set string) bool {
		if i < len(text) && bytes.IndexByte([]byte(set), text[i]) >= 0 {
			i++
			return true
		}
		return false
	}
	accept("-")
	if !accept("0") && !skipDigits() {
		return 0
	}
	if accept(".") && !skipDigits() {
		return 0
	}
	if accept("eE") {
		accept("+-")
		if !skipDigits() {
			return 0
		}
	}
	return i
}

// scanString returns the next string, unescaped.
func (s *jsonScanner) scanString() (string, error) {
	if !s.consumeByte('"') {
		return "", errNotJSON
	}
	if text, ok := s.scanUnescapedString(); ok {
		return string(text), nil
	}
	return s.scanEscapedString()
}

// scanUnescapedString returns the rest of a string without escapes. If the string has escapes, it returns false and scans
// nothing.
func (s *jsonScanner) scanUnescapedString() ([]byte, bool) {
	for i, c := range s.text[s.pos:] {
		if c == '"' {
			s.pos += i + 1
			return s.text[s.pos-i-1 : s.pos-1], true
		}
		if c == '\\' || c < ' ' {
			break
		}
	}
	return nil, false
}

// skipString checks and skips the next string.
func (s *jsonScanner) skipString() error {
	if !s.consumeByte('"') {
		return errNotJSON
	}
	if _, ok := s.scanUnescapedString(); ok {
		return nil
	}
	_, err := s.scanEscapedString()
	return err
}

// scanEscapedString returns the rest of a string with escapes.
func (s *jsonScanner) scanEscapedString() (string, error) {
	var out []byte
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		s.pos++
		switch {
		case c == '"':
			return string(out), nil
		case c < ' ':
			return "", errNotJSON
		case c != '\\':
			out = append(out, c)
		default:
			r, err := s.scanEscapeSequence()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		}
	}
	return "", errNotJSON
}

// scanEscapeSequence returns the character of an escape sequence whose backslash has been scanned. A surrogate must be followed
// by the other half of its pair.
func (s *jsonScanner) scanEscapeSequence() (rune, error) {
	if s.pos >= len(s.text) {
		return 0, errNotJSON
	}
	c := s.text[s.pos]
	s.pos++
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	if i := bytes.IndexByte([]byte(from), c); i >= 0 {
		return rune(to[i]), nil
	}
	if c != 'u' {
		return 0, errNotJSON
	}
	r, err := s.scanHexDigits()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if !bytes.HasPrefix(s.text[s.pos:], []byte(`\u`)) {
		return 0, errNotJSON
	}
	s.pos += 2
	low, err := s.scanHexDigits()
	if r = utf16.DecodeRune(r, low); err != nil || r == utf8.RuneError {
		return 0, errNotJSON
	}
	return r, nil
}

// scanHexDigits returns the UTF-16 code unit of the four hexadecimal digits of an escape sequence.
func (s *jsonScanner) scanHexDigits() (rune, error) {
	if len(s.text)-s.pos < 4 {
		return 0, errNotJSON
	}
	n, err := strconv.ParseUint(string(s.text[s.pos:s.pos+4]), 16, 16)
	if err != nil {
		return 0, errNotJSON
	}
	s.pos += 4
	return rune(n), nil
}
