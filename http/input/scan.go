package input

import (
	"bytes"
	"errors"
	"slices"
)

const (
	maxDepth   = 64
	maxMembers = 1000 // of one object; more is no body of ours
)

// errSyntax: the text is not JSON as we read it.
var errSyntax = errors.New("not JSON")

// scanner reads JSON strictly: no member twice in an object, no half a surrogate pair, nothing nested
// deeper than maxDepth. The text must be valid UTF-8.
type scanner struct {
	text  []byte
	at    int
	depth int
	names []string          // of members, of the objects it is in, the outermost first
	known map[string]string // names that were met, so that each is made once
}

// peek is the first byte of the next token, or 0 at the end.
func (s *scanner) peek() byte {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// take passes over the next token if it is the byte.
func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.at++
	return true
}

// each calls do for every element of an object or list, whose opening bracket is next, until its closing one.
func (s *scanner) each(closing byte, do func() error) error {
	if s.depth++; s.depth > maxDepth {
		return errSyntax
	}
	defer func() { s.depth-- }()
	s.peek()
	s.at++ // the opening bracket
	if s.take(closing) {
		return nil
	}
	for {
		if err := do(); err != nil {
			return err
		}
		switch {
		case s.take(closing):
			return nil
		case !s.take(','):
			return errSyntax
		}
	}
}

// members calls do for every member of the object that is next, with the member's value next.
func (s *scanner) members(do func(name string) error) error {
	base := len(s.names)
	var many map[string]bool
	err := s.each('}', func() error {
		name, err := s.name()
		if err != nil || len(s.names)-base == maxMembers || !s.take(':') {
			return errSyntax
		}
		if len(s.names)-base == fewMembers {
			many = make(map[string]bool)
			for _, n := range s.names[base:] {
				many[n] = true
			}
		}
		if many[name] || many == nil && slices.Contains(s.names[base:], name) {
			return errSyntax
		}
		if many != nil {
			many[name] = true
		}
		s.names = append(s.names, name)
		return do(name)
	})
	s.names = s.names[:base]
	return err
}

// fewMembers are looked through one by one faster than in a table.
const fewMembers = 32

// maxKnown bounds the names that are remembered.
const maxKnown = 256

// name is the string that is next, as the name of a member.
func (s *scanner) name() (string, error) {
	if s.peek() == '"' {
		rest := s.text[s.at+1:]
		if end := bytes.IndexByte(rest, '"'); end >= 0 {
			if name, ok := s.known[string(rest[:end])]; ok {
				s.at += end + 2
				return name, nil
			}
		}
	}
	start := s.at
	name, err := s.string()
	if err == nil && len(s.known) < maxKnown && s.at-start == len(name)+2 { // it holds no escapes
		if s.known == nil {
			s.known = make(map[string]string)
		}
		s.known[name] = name
	}
	return name, err
}

// skip passes over a value of any kind and returns its text.
func (s *scanner) skip() ([]byte, error) {
	c := s.peek()
	start := s.at
	var err error
	switch {
	case c == '{':
		err = s.members(func(string) error { return s.pass() })
	case c == '[':
		err = s.each(']', s.pass)
	case c == '"':
		err = s.passString()
	case c == '-' || c >= '0' && c <= '9':
		_, err = s.number()
	default:
		err = s.word()
	}
	return s.text[start:s.at], err
}

func (s *scanner) pass() error {
	_, err := s.skip()
	return err
}

// word passes over true, false or null.
func (s *scanner) word() error {
	s.peek()
	for _, w := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(s.text[s.at:], []byte(w)) {
			s.at += len(w)
			return nil
		}
	}
	return errSyntax
}

// number is the text of the number that is next.
func (s *scanner) number() (string, error) {
	s.peek()
	n := numberLength(s.text[s.at:])
	if n == 0 {
		return "", errSyntax
	}
	s.at += n
	return string(s.text[s.at-n : s.at]), nil
}

// numberLength is how much of a text is a JSON number.
func numberLength(text []byte) int {
	i := 0
	digits := func() bool {
		from := i
		for i < len(text) && text[i] >= '0' && text[i] <= '9' {
			i++
		}
		return i > from
	}
	is := func(set string) bool {
		if i < len(text) && bytes.IndexByte([]byte(set), text[i]) >= 0 {
			i++
			return true
		}
		return false
	}
	is("-")
	if !is("0") && !digits() {
		return 0
	}
	if is(".") && !digits() {
		return 0
	}
	if is("eE") {
		is("+-")
		if !digits() {
			return 0
		}
	}
	return i
}
