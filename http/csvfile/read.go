package csvfile

import (
	"fmt"
	"iter"
	"strings"
)

// Record is a row, and the line that it begins on; the first is 1. A row with line ends in its cells has several lines.
type Record struct {
	Line  int
	Cells []string
}

// UnclosedQuoteError is a quote that nothing closes, by the line on which it is opened.
type UnclosedQuoteError struct{ Line int }

func (e *UnclosedQuoteError) Error() string {
	return fmt.Sprintf("line %d: a quote is opened here and never closed", e.Line)
}

// ReadRecords reads the rows that an ExactWriter or most other programs write, without a byte order mark before them. Lines end
// with \r\n, \n or \r. A quote inside a cell without quotes is a character like others. Cells without quotes lose the spaces
// around them. Rows of empty cells are skipped; rows may have different numbers of cells. An *UnclosedQuoteError is the last
// element of the sequence; its record is not complete.
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

// recordReader reads records from a text that it holds whole. line is the line of pos.
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

// skipLineEnd skips the end of a line: \r\n, \n or \r.
func (r *recordReader) skipLineEnd() {
	if strings.HasPrefix(r.text[r.pos:], "\r\n") {
		r.pos++
	}
	if r.pos < len(r.text) {
		r.pos++
		r.line++
	}
}

// readCell reads a cell up to the separator, the line end or the end of the text. Spaces before an opening quote are skipped, but
// where tabs separate cells a quote must come first: there skipping spaces could skip separators.
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

// readQuoted reads a cell whose opening quote was read. A doubled quote is one quote. Text after the closing quote belongs to the
// cell, without the spaces around it.
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
