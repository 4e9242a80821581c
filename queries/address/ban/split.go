package ban

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// joined is how many lines one quoted field may run over.
const joined = 8

// errQuoting: the record at hand cannot be told apart from the next.
var errQuoting = errors.New("broken quotes")

// splitter cuts text into records and records into fields. What it hands out is good until the next record.
type splitter struct {
	text   *bufio.Reader
	line   int // of the record at hand
	ahead  int // lines read of the text
	queue  [][]byte
	fields [][]byte
}

// raw reads one line, without its end.
func (s *splitter) raw() ([]byte, error) {
	if len(s.queue) > 0 {
		line := s.queue[0]
		s.queue = s.queue[1:]
		return line, nil
	}
	line, err := s.text.ReadSlice('\n')
	if len(line) > 0 {
		s.ahead++
	}
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, s.skip()
	case errors.Is(err, io.EOF) && len(line) > 0:
		err = nil
	case err != nil:
		return nil, err
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), err
}

// skip passes over the rest of a line too long to be one.
func (s *splitter) skip() error {
	for {
		_, err := s.text.ReadSlice('\n')
		if !errors.Is(err, bufio.ErrBufferFull) {
			if err == nil || errors.Is(err, io.EOF) {
				return errQuoting
			}
			return err
		}
	}
}

// next reads the next record that is not a blank line into fields.
func (s *splitter) next() error {
	for {
		line, err := s.raw()
		s.line = s.ahead - len(s.queue)
		if err != nil {
			return err
		}
		if len(line) == 0 {
			continue
		}
		if bytes.IndexByte(line, '"') < 0 {
			s.cut(line)
			return nil
		}
		return s.quoted(line)
	}
}

// cut splits a line without quotes.
func (s *splitter) cut(line []byte) {
	s.fields = s.fields[:0]
	for {
		i := bytes.IndexByte(line, ';')
		if i < 0 {
			s.fields = append(s.fields, line)
			return
		}
		s.fields = append(s.fields, line[:i])
		line = line[i+1:]
	}
}

// quoted splits a line with quotes, and reads on while one is open. Lines that close nothing are read again on their own.
func (s *splitter) quoted(first []byte) error {
	record := bytes.Clone(first)
	var more [][]byte
	for !s.unquote(record) {
		line, err := s.raw()
		if len(more) == joined || errors.Is(err, io.EOF) || errors.Is(err, errQuoting) {
			if line != nil {
				more = append(more, bytes.Clone(line))
			}
			s.queue = append(more, s.queue...)
			return errQuoting
		}
		if err != nil {
			return err
		}
		more = append(more, bytes.Clone(line))
		record = append(append(record, '\n'), line...)
	}
	return nil
}

// unquote splits a record, and says whether all its quotes are closed. A quote within a bare field is a letter.
func (s *splitter) unquote(record []byte) bool {
	s.fields = s.fields[:0]
	for {
		field, rest, more, ok := nextField(record)
		if !ok {
			return false
		}
		s.fields = append(s.fields, field)
		if !more {
			return true
		}
		record = rest
	}
}

// nextField takes one field off a record; more says that another follows.
func nextField(record []byte) (field, rest []byte, more, ok bool) {
	if len(record) == 0 || record[0] != '"' {
		field, rest, more = bytes.Cut(record, []byte(";"))
		return field, rest, more, true
	}
	for i := 1; i < len(record); i++ {
		if record[i] != '"' {
			field = append(field, record[i])
			continue
		}
		switch {
		case i+1 == len(record):
			return field, nil, false, true
		case record[i+1] == ';':
			return field, record[i+2:], true, true
		case record[i+1] == '"':
			i++
		}
		field = append(field, '"')
	}
	return nil, nil, false, false
}
