package record

import (
	"bytes"
	"fmt"
	"io"
)

// jsonScanner cuts values out of a JSON text, of which it holds at most one value. It finds the end of a value by quotes and brackets
// alone; objectParser checks the rest of those that are records. Brackets of two kinds are counted together: a record in which they do
// not match fails there.
//
// encoding/json does not serve: it does not accept NaN, which Python writes, count lines, or bound a value.
type jsonScanner struct {
	in    io.Reader
	buf   []byte
	pos   int
	start int   // bytes from here on are kept; -1 means from pos on
	base  int64 // the offset of buf[0] in the text
	line  int   // of pos
	atEnd bool
}

// newJSONScanner scans a text from its beginning, where line 1 is.
func newJSONScanner(in io.Reader) *jsonScanner { return &jsonScanner{in: in, line: 1, start: -1} }

// offset is how many bytes of the text precede pos.
func (s *jsonScanner) offset() int64 { return s.base + int64(s.pos) }

// readMore reads more. It drops what is before pos, or before the value that is kept. It returns io.EOF at the end of the text.
func (s *jsonScanner) readMore() error {
	if s.atEnd {
		return io.EOF
	}
	from := s.pos
	if s.start >= 0 {
		from = s.start
		s.start = 0
	}
	kept := s.buf[from:]
	if len(kept) >= maxRecordBytes {
		return &LineError{s.line, fmt.Sprintf("an object has more than %d MiB: check whether one before this line is closed", maxRecordBytes>>20)}
	}
	buf := s.buf[:cap(s.buf)]
	if len(kept) > len(buf)/2 || len(buf) == 0 {
		buf = make([]byte, max(64<<10, 4*len(kept)))
	}
	copy(buf, kept)
	n, err := io.ReadFull(s.in, buf[len(kept):])
	s.base, s.pos, s.buf = s.base+int64(from), s.pos-from, buf[:len(kept)+n]
	s.atEnd = err == io.EOF || err == io.ErrUnexpectedEOF
	switch {
	case s.atEnd && n == 0:
		return io.EOF
	case s.atEnd:
		return nil
	}
	return err
}

// peek is the first byte of the next value or sign; spaces before it are skipped, and the signs that part the texts of a sequence.
func (s *jsonScanner) peek() (byte, error) {
	for {
		for ; s.pos < len(s.buf); s.pos++ {
			switch b := s.buf[s.pos]; b {
			case '\n':
				s.line++
			case ' ', '\t', '\r', 0x1e:
			default:
				return b, nil
			}
		}
		if err := s.readMore(); err != nil {
			return 0, err
		}
	}
}

// endError is the error of a text that ends before its brackets are closed.
func (s *jsonScanner) endError() error {
	return &LineError{s.line, "the JSON breaks off here: get the whole file"}
}

// expect skips one sign.
func (s *jsonScanner) expect(sign byte) error {
	switch b, err := s.peek(); {
	case err == io.EOF:
		return s.endError()
	case err != nil:
		return err
	case b != sign:
		return &LineError{s.line, fmt.Sprintf("the JSON is wrong here: %q stands where %q is due", b, sign)}
	}
	s.pos++
	return nil
}

// eachElement calls read for each element of a list; read must read it.
func (s *jsonScanner) eachElement(read func() error) error { return s.eachPart('[', ']', read) }

// eachMember calls read for each member of an object, whose name was read; read must read its value.
func (s *jsonScanner) eachMember(read func(name string) error) error {
	return s.eachPart('{', '}', func() error {
		name, err := s.readText()
		if err == nil {
			err = s.expect(':')
		}
		if err != nil {
			return err
		}
		return read(name)
	})
}

// eachPart calls read for each of the parts between brackets, which commas separate. A comma before the closing bracket is an error of
// read, which finds no value.
func (s *jsonScanner) eachPart(opening, closing byte, read func() error) error {
	if err := s.expect(opening); err != nil {
		return err
	}
	for n := 0; ; n++ {
		b, err := s.peek()
		switch {
		case err == io.EOF:
			return s.endError()
		case err != nil:
			return err
		case b == closing:
			s.pos++
			return nil
		case n > 0:
			if err := s.expect(','); err != nil {
				return err
			}
		}
		if err := read(); err != nil {
			return endAsError(err, s)
		}
	}
}

// endAsError is err, or the error of a text that breaks off.
func endAsError(err error, s *jsonScanner) error {
	if err == io.EOF {
		return s.endError()
	}
	return err
}

// readText reads a string.
func (s *jsonScanner) readText() (string, error) {
	if b, err := s.peek(); err != nil || b != '"' {
		return "", s.expectationError(err)
	}
	raw, err := s.readRaw()
	if err != nil {
		return "", err
	}
	line := s.line
	p := objectParser{text: string(raw)}
	text, err := p.parseString()
	if err != nil {
		return "", &LineError{line, err.Error()}
	}
	return text, nil
}

// expectationError is the error of a missing name in quotes.
func (s *jsonScanner) expectationError(err error) error {
	if err != nil {
		return endAsError(err, s)
	}
	return &LineError{s.line, "the JSON is wrong here: a name in quotes is due"}
}

// readRaw reads a value. Its bytes are valid until the next call.
func (s *jsonScanner) readRaw() ([]byte, error) {
	if _, err := s.peek(); err != nil {
		return nil, endAsError(err, s)
	}
	s.start = s.pos
	err := s.passValue()
	raw := s.buf[s.start:s.pos]
	s.start = -1
	return raw, err
}

// skip skips a value, of any length.
func (s *jsonScanner) skip() error {
	if _, err := s.peek(); err != nil {
		return endAsError(err, s)
	}
	return s.passValue()
}

// passValue moves pos after a value that begins at pos. The error of a value that breaks off names the line on which it begins.
func (s *jsonScanner) passValue() error {
	var err error
	line := s.line
	switch s.buf[s.pos] {
	case '{', '[', '"':
		err = s.passBrackets()
	default:
		err = s.passLiteral()
	}
	if err == io.EOF {
		return &LineError{line, "the JSON breaks off in what begins here: get the whole file, or close its brackets and quotes"}
	}
	return err
}

// passBrackets moves pos after the end of a string, list or object. A line end inside quotes is an error at once: JSON has none there,
// and an unclosed text would otherwise swallow the following lines.
func (s *jsonScanner) passBrackets() error {
	depth, inString, isEscaped := 0, false, false
	for {
		for s.pos < len(s.buf) {
			b := s.buf[s.pos]
			s.pos++
			switch {
			case isEscaped:
				isEscaped = false
			case b == '\n' && inString:
				return &LineError{s.line, "a text in quotes is not closed before the end of the line"}
			case b == '\n':
				s.line++
			case b == '"':
				inString = !inString
				// A backslash escapes the next character, even a quote.
			case inString:
				isEscaped = b == '\\'
			case b == '{' || b == '[':
				depth++
			case b == '}' || b == ']':
				depth--
			}
			if depth == 0 && !inString {
				return nil
			}
		}
		if err := s.readMore(); err != nil {
			return err
		}
	}
}

// passLiteral moves pos after a number, true, false or null, which the end of the text may end too.
func (s *jsonScanner) passLiteral() error {
	for n := 0; ; n++ {
		if s.pos == len(s.buf) {
			if err := s.readMore(); err == io.EOF && n > 0 {
				return nil
			} else if err != nil {
				return err
			}
		}
		if bytes.IndexByte([]byte(",]}{[:\" \t\r\n\x1e"), s.buf[s.pos]) >= 0 {
			if n == 0 {
				return &LineError{s.line, fmt.Sprintf("the JSON is wrong here: %q stands where a value is due", s.buf[s.pos])}
			}
			return nil
		}
		s.pos++
	}
}
