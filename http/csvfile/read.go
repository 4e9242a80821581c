package csvfile

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

// UnclosedQuoteError is a quote that nothing closes.
type UnclosedQuoteError struct{ Line int }

func (e *UnclosedQuoteError) Error() string {
	return fmt.Sprintf("line %d: a quote is opened here and never closed", e.Line)
}

// ReadRecords reads the rows of a sheet as Exact writes them, and as most programs do: a quote that stands where none should is
// what it is. Cells without quotes lose the spaces around them. Rows without a cell that says anything are passed over.
func ReadRecords(text string, separator byte) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		r := recordReader{text: text, separator: separator, line: 1}
		for r.pos < len(r.text) {
			record, err := r.readRecord()
			if err == nil && strings.Join(record.Cells, "") == "" {
				continue
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

type recordReader struct {
	text      string
	separator byte
	pos       int
	line      int
}

func (r *recordReader) readRecord() (Record, error) {
	rec := Record{Line: r.line}
	for {
		cell, err := r.readCell()
		if err != nil {
			return rec, err
		}
		rec.Cells = append(rec.Cells, cell)
		if r.pos == len(r.text) || r.text[r.pos] != r.separator {
			r.skipLineEnd()
			return rec, nil
		}
		r.pos++
	}
}

// skipLineEnd passes over the end of a line.
func (r *recordReader) skipLineEnd() {
	if strings.HasPrefix(r.text[r.pos:], "\r\n") {
		r.pos++
	}
	if r.pos < len(r.text) {
		r.pos++
		r.line++
	}
}

// readCell reads a cell up to what ends it.
func (r *recordReader) readCell() (string, error) {
	rest := r.text[r.pos:]
	spaces := len(rest) - len(strings.TrimLeft(rest, " \t"))
	if r.separator != '\t' && strings.HasPrefix(rest[spaces:], `"`) || strings.HasPrefix(rest, `"`) {
		r.pos += spaces + 1
		return r.readQuoted()
	}
	return strings.TrimSpace(r.readUnquoted()), nil
}

func (r *recordReader) readUnquoted() string {
	rest := r.text[r.pos:]
	end := strings.IndexAny(rest, string([]byte{r.separator, '\r', '\n'}))
	if end < 0 {
		end = len(rest)
	}
	r.pos += end
	return rest[:end]
}

// readQuoted reads a cell whose opening quote was read. What follows the closing one belongs to it.
func (r *recordReader) readQuoted() (string, error) {
	openedOn := r.line
	var cell strings.Builder
	for {
		rest := r.text[r.pos:]
		end := strings.IndexByte(rest, '"')
		if end < 0 {
			return "", &UnclosedQuoteError{openedOn}
		}
		cell.WriteString(rest[:end])
		r.line += strings.Count(rest[:end], "\n")
		r.pos += end + 1
		if !strings.HasPrefix(r.text[r.pos:], `"`) {
			cell.WriteString(strings.TrimSpace(r.readUnquoted()))
			return cell.String(), nil
		}
		cell.WriteByte('"')
		r.pos++
	}
}
