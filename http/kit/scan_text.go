package kit

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// scanString is the scanString that is next.
func (s *jsonScanner) scanString() (string, error) {
	if !s.consumeByte('"') {
		return "", errNotJSON
	}
	if text, ok := s.scanUnescapedString(); ok {
		return string(text), nil
	}
	return s.scanEscapedString()
}

// scanUnescapedString is the rest of a string that holds no escapes; false, and nothing is read, when it is none.
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

// skipString passes over the string that is next.
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

// scanEscapedString is the rest of a string that holds escapes.
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

// scanEscapeSequence is the character an scanEscapeSequence stands for; its backslash was read.
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
