package ban

import (
	"errors"
	"io"
	"iter"
)

// Read gives the rows of one file, gzip or plain by its content, addresses or localities by its columns. Bad rows go to
// the report and no further. An error is the last thing given: the file is no address base (a *FormatError) or
// could not be read to its end. Rows share nothing with the reader and may be kept.
func Read(r io.Reader, name string, report *Report) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		text, err := plain(r, name)
		if err != nil {
			yield(Row{}, err)
			return
		}
		s := &splitter{text: text}
		first, err := s.raw()
		if err != nil {
			yield(Row{}, headless(name, err))
			return
		}
		c, err := readHeader(name, first)
		if err != nil {
			yield(Row{}, err)
			return
		}
		p := &parser{columns: c, name: name, split: s, report: report}
		p.rows(yield)
	}
}

// headless says why a file has no first line.
func headless(name string, err error) error {
	if errors.Is(err, errQuoting) {
		return &FormatError{File: name, Looks: "its first line has no end"}
	}
	return unreadable(name, 0, err)
}

// parser turns records into rows.
type parser struct {
	columns
	name   string
	split  *splitter
	report *Report
	last   Row // whose strings are used again when a column repeats
}

func (p *parser) rows(yield func(Row, error) bool) {
	for {
		err := p.split.next()
		switch {
		case errors.Is(err, io.EOF):
			return
		case errors.Is(err, errQuoting):
			p.report.add(Bad{p.name, p.split.line, Quoting})
			continue
		case err != nil:
			yield(Row{}, unreadable(p.name, p.split.line, err))
			return
		}
		if fault, ok := p.row(); !ok {
			p.report.add(Bad{p.name, p.split.line, fault})
			continue
		}
		p.report.Good++
		if string(p.get(fieldSource)) == SyntheticSource {
			p.report.Synthetic++
		}
		if !yield(p.last, nil) {
			return
		}
	}
}
