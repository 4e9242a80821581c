package input

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// string is the string that is next.
func (s *scanner) string() (string, error) {
	if !s.take('"') {
		return "", errSyntax
	}
	if text, ok := s.plain(); ok {
		return string(text), nil
	}
	return s.escaped()
}

// plain is the rest of a string that holds no escapes; false, and nothing is read, when it is none.
func (s *scanner) plain() ([]byte, bool) {
	for i, c := range s.text[s.at:] {
		if c == '"' {
			s.at += i + 1
			return s.text[s.at-i-1 : s.at-1], true
		}
		if c == '\\' || c < ' ' {
			break
		}
	}
	return nil, false
}

// passString passes over the string that is next.
func (s *scanner) passString() error {
	if !s.take('"') {
		return errSyntax
	}
	if _, ok := s.plain(); ok {
		return nil
	}
	_, err := s.escaped()
	return err
}

// escaped is the rest of a string that holds escapes.
func (s *scanner) escaped() (string, error) {
	var out []byte
	for s.at < len(s.text) {
		c := s.text[s.at]
		s.at++
		switch {
		case c == '"':
			return string(out), nil
		case c < ' ':
			return "", errSyntax
		case c != '\\':
			out = append(out, c)
		default:
			r, err := s.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		}
	}
	return "", errSyntax
}

// escape is the character an escape stands for; its backslash was read.
func (s *scanner) escape() (rune, error) {
	if s.at >= len(s.text) {
		return 0, errSyntax
	}
	c := s.text[s.at]
	s.at++
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	if i := bytes.IndexByte([]byte(from), c); i >= 0 {
		return rune(to[i]), nil
	}
	if c != 'u' {
		return 0, errSyntax
	}
	r, err := s.hex()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if !bytes.HasPrefix(s.text[s.at:], []byte(`\u`)) {
		return 0, errSyntax
	}
	s.at += 2
	low, err := s.hex()
	if r = utf16.DecodeRune(r, low); err != nil || r == utf8.RuneError {
		return 0, errSyntax
	}
	return r, nil
}

func (s *scanner) hex() (rune, error) {
	if len(s.text)-s.at < 4 {
		return 0, errSyntax
	}
	n, err := strconv.ParseUint(string(s.text[s.at:s.at+4]), 16, 16)
	if err != nil {
		return 0, errSyntax
	}
	s.at += 4
	return rune(n), nil
}
