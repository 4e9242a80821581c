package grid

import (
	"fmt"
	"iter"
	"strings"
)

// Record is a row that was read, and the line it begins on, the first being 1.
type Record struct {
	Line  int
	Cells []string
}

// UnclosedError is a quote that nothing closes.
type UnclosedError struct{ Line int }

func (e *UnclosedError) Error() string {
	return fmt.Sprintf("line %d: a quote is opened here and never closed", e.Line)
}

// Read reads the rows of a sheet as Exact writes them, and as most programs do: a quote that stands where none should is
// what it is. Cells without quotes lose the spaces around them. Rows without a cell that says anything are passed over.
func Read(text string, comma byte) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		r := reader{text: text, comma: comma, line: 1}
		for r.at < len(r.text) {
			record, err := r.record()
			if err == nil && strings.Join(record.Cells, "") == "" {
				continue
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

type reader struct {
	text  string
	comma byte
	at    int
	line  int
}

func (r *reader) record() (Record, error) {
	rec := Record{Line: r.line}
	for {
		cell, err := r.cell()
		if err != nil {
			return rec, err
		}
		rec.Cells = append(rec.Cells, cell)
		if r.at == len(r.text) || r.text[r.at] != r.comma {
			r.end()
			return rec, nil
		}
		r.at++
	}
}

// end passes over the end of a line.
func (r *reader) end() {
	if strings.HasPrefix(r.text[r.at:], "\r\n") {
		r.at++
	}
	if r.at < len(r.text) {
		r.at++
		r.line++
	}
}

// cell reads a cell up to what ends it.
func (r *reader) cell() (string, error) {
	rest := r.text[r.at:]
	spaces := len(rest) - len(strings.TrimLeft(rest, " \t"))
	if r.comma != '\t' && strings.HasPrefix(rest[spaces:], `"`) || strings.HasPrefix(rest, `"`) {
		r.at += spaces + 1
		return r.quoted()
	}
	return strings.TrimSpace(r.bare()), nil
}

func (r *reader) bare() string {
	rest := r.text[r.at:]
	end := strings.IndexAny(rest, string([]byte{r.comma, '\r', '\n'}))
	if end < 0 {
		end = len(rest)
	}
	r.at += end
	return rest[:end]
}

// quoted reads a cell whose opening quote was read. What follows the closing one belongs to it.
func (r *reader) quoted() (string, error) {
	opened := r.line
	var cell strings.Builder
	for {
		rest := r.text[r.at:]
		end := strings.IndexByte(rest, '"')
		if end < 0 {
			return "", &UnclosedError{opened}
		}
		cell.WriteString(rest[:end])
		r.line += strings.Count(rest[:end], "\n")
		r.at += end + 1
		if !strings.HasPrefix(r.text[r.at:], `"`) {
			cell.WriteString(strings.TrimSpace(r.bare()))
			return cell.String(), nil
		}
		cell.WriteByte('"')
		r.at++
	}
}
