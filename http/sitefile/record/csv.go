package record

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"unicode"

	"lieudit/http/sitefile/record/xlsx"
)

const (
	// maxRecordBytes is how long a record may be. Without a bound, an unclosed quote would bring the rest of a file into
	// memory.
	maxRecordBytes = 16 << 20
	// maxCells is how many cells a row may have: as many as a spreadsheet has columns. Those beyond MaxColumns must be empty.
	maxCells = xlsx.MaxColumns
)

// openCSV finds the separator and the row of names of a CSV file.
func openCSV(t *text, beginning []byte, o Options) (*File, error) {
	separator, hasLine := readSeparatorLine(beginning)
	switch {
	case o.Separator >= 0x80:
		return nil, &FormatError{fmt.Sprintf("%q cannot separate cells: name an ASCII character", o.Separator)}
	case o.Separator != 0:
		separator = byte(o.Separator)
	case !hasLine:
		separator = detectSeparator(beginning)
	}
	hasEscapes := hasEscapedQuotes(beginning)
	rows := iter.Seq2[Record, error](func(yield func(Record, error) bool) {
		r := csvReader{in: t.open(), cells: cellReader{separator: separator, line: 1, hasEscapes: hasEscapes, maxCells: maxCells}, skipsFirst: hasLine}
		r.yieldRows(yield)
	})
	if inside := detectSeparatorInside(beginning); separator == noSeparator && inside != noSeparator {
		separator, rows = inside, unwrapRows(rows, inside)
	}
	info := Info{Format: CSV, Separator: rune(separator)}
	t.fillInfo(&info)
	return openTable(rows, o, info)
}

// unwrapRows cuts the rows that stand in quotes as a whole into cells.
func unwrapRows(rows iter.Seq2[Record, error], separator byte) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for r, err := range rows {
			if err == nil {
				inside := cellReader{text: []byte(r.Values[0].Text), separator: separator, line: r.Line, isWhole: true, maxCells: maxCells}
				r, err = inside.readRecord()
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// isBlank reports whether a row has no text.
func isBlank(values []Value) bool { return !slices.ContainsFunc(values, hasText) }

// hasText reports whether a cell has more than spaces and control signs, such as the one that ends a file of DOS.
func hasText(v Value) bool { return strings.IndexFunc(v.Text, isSign) >= 0 || v.JSON != nil }

// isSign reports whether a character is neither a space nor a control sign.
func isSign(r rune) bool { return r > ' ' && !unicode.IsSpace(r) }

// csvReader reads the rows of a CSV file piece by piece. A row that a piece cuts is read again with more of the file.
type csvReader struct {
	in         io.Reader
	cells      cellReader
	skipsFirst bool // the first line names the separator
}

// yieldRows yields the rows that have text, until the first error.
func (r *csvReader) yieldRows(yield func(Record, error) bool) {
	for {
		record, err := r.read()
		if err == io.EOF {
			return
		}
		if r.skipsFirst && err == nil {
			r.skipsFirst = false
			continue
		}
		if err == nil && isBlank(record.Values) {
			continue
		}
		if !yield(record, err) || err != nil {
			return
		}
	}
}

// read reads a row, or returns io.EOF.
func (r *csvReader) read() (Record, error) {
	for {
		if c := &r.cells; c.pos < len(c.text) {
			if c.text[c.pos] == '\n' { // a blank line
				c.pos++
				c.line++
				continue
			}
			// The row may continue in the next piece of the file: then it is read from its beginning again.
			start, line := c.pos, c.line
			record, err := c.readRecord()
			if err != errCut {
				return record, err
			}
			c.pos, c.line = start, line
		} else if c.isWhole {
			return Record{}, io.EOF
		}
		if err := r.readMore(); err != nil {
			return Record{}, err
		}
	}
}

// readMore drops what was read and reads more. The buffer doubles while one row fills it.
func (r *csvReader) readMore() error {
	c := &r.cells
	kept := c.text[c.pos:]
	if len(kept) >= maxRecordBytes {
		return c.tooLongError()
	}
	buf := c.text[:cap(c.text)]
	// A row that fills half of the buffer gets a larger one. It grows fourfold, so a long row is begun anew a few times only.
	if len(kept) > len(buf)/2 || len(buf) == 0 {
		buf = make([]byte, max(64<<10, 4*len(kept)))
	}
	copy(buf, kept)
	n, err := io.ReadFull(r.in, buf[len(kept):])
	c.isWhole = err == io.EOF || err == io.ErrUnexpectedEOF
	c.text, c.pos = buf[:len(kept)+n], 0
	if c.isWhole {
		return nil
	}
	return err
}

// cellReader cuts a piece of a CSV text into rows and cells. Lines end with \r\n, \n or \r. A quote inside a cell without quotes is a
// character like any other. Spaces around quotes are not part of a cell; other spaces are.
type cellReader struct {
	text       []byte
	separator  byte
	hasEscapes bool // a quote with a backslash before it is part of its cell
	pos        int
	line       int  // of pos
	isWhole    bool // text goes to the end of the file
	quoteLine  int  // where the open quote began; 0 if none is open
	width      int  // how many cells the last row had
	maxCells   int  // of a row; 0 for any number
}

// errCut means that the piece ends before the row. It never leaves csvReader.
var errCut = fmt.Errorf("the row goes on")

// readRecord reads a row. With errCut, pos and line are somewhere inside it: the caller sets them back.
func (c *cellReader) readRecord() (Record, error) {
	rec := Record{Line: c.line, Values: make([]Value, 0, c.width)}
	c.quoteLine = 0
	for {
		cell, err := c.readCell()
		if err != nil {
			return Record{}, err
		}
		if rec.Values = append(rec.Values, Value{Text: cell}); c.maxCells > 0 && len(rec.Values) > c.maxCells {
			return Record{}, &LineError{rec.Line, fmt.Sprintf("the row has more than %d cells: delete the empty columns, or check what separates the cells", c.maxCells)}
		}
		if c.pos < len(c.text) && c.text[c.pos] == c.separator {
			c.pos++
			continue
		}
		c.width = len(rec.Values)
		return rec, c.skipLineEnd()
	}
}

// skipLineEnd skips the end of a line, or nothing at the end of the file.
func (c *cellReader) skipLineEnd() error {
	rest := c.text[c.pos:]
	if len(rest) < 2 && !c.isWhole {
		return errCut
	}
	if len(rest) == 0 {
		return nil
	}
	c.pos++
	c.line++
	if rest[0] == '\r' && len(rest) > 1 && rest[1] == '\n' {
		c.pos++
	}
	return nil
}

// readCell reads a cell up to the separator, the line end or the end of the file. If tabs separate cells a quote must come first:
// there skipping spaces could skip separators.
func (c *cellReader) readCell() (string, error) {
	rest := c.text[c.pos:]
	spaces := 0
	if c.separator != '\t' {
		spaces = len(rest) - len(bytes.TrimLeft(rest, " \t"))
	}
	if spaces < len(rest) && rest[spaces] == '"' {
		c.pos += spaces + 1
		return c.readQuoted()
	}
	cell, err := c.readUnquoted()
	return string(cell), err
}

// readUnquoted reads up to the separator or the line end, which stay unread.
func (c *cellReader) readUnquoted() ([]byte, error) {
	rest := c.text[c.pos:]
	for i, b := range rest {
		if b == c.separator || b == '\n' || b == '\r' {
			c.pos += i
			return rest[:i], nil
		}
	}
	if !c.isWhole {
		return nil, errCut
	}
	c.pos = len(c.text)
	return rest, nil
}

// readQuoted reads a cell whose opening quote was read. A doubled quote is one quote. Text after the closing quote belongs to the
// cell. But if the cell spans lines, that is the beginning of another cell, and the quote was opened by mistake.
func (c *cellReader) readQuoted() (string, error) {
	openedOn := c.line
	c.quoteLine = openedOn
	var doubled []byte // the cell up to the last doubled quote, or the last with a backslash
	for {
		rest := c.text[c.pos:]
		end := bytes.IndexByte(rest, '"')
		if end < 0 || end+1 == len(rest) && !c.isWhole {
			return "", c.unclosedError()
		}
		c.line += countLines(rest[:end])
		c.pos += end + 1
		if c.hasEscapes && end > 0 && rest[end-1] == '\\' {
			doubled = append(append(doubled, rest[:end-1]...), '"')
			continue
		}
		if end+1 < len(rest) && rest[end+1] == '"' {
			doubled = append(doubled, rest[:end+1]...)
			c.pos++
			continue
		}
		after, err := c.readUnquoted()
		after = bytes.TrimRight(after, " \t")
		switch {
		case err != nil:
			return "", err
		case len(after) > 0 && c.line > openedOn:
			return "", &LineError{openedOn, fmt.Sprintf("a quote opens here and none closes it before line %d: double it or take it out", c.line)}
		}
		c.quoteLine = 0
		if doubled == nil && len(after) == 0 {
			return string(rest[:end]), nil
		}
		return string(slices.Concat(doubled, rest[:end], after)), nil
	}
}

// unclosedError is the error of a quote that the text does not close.
func (c *cellReader) unclosedError() error {
	if !c.isWhole {
		return errCut
	}
	return &LineError{c.quoteLine, "a quote opens here and nothing closes it: close it, double it or take it out"}
}

// tooLongError is the error of a row that exceeds maxRecordBytes. Usually a quote has joined it with the rows after it.
func (c *cellReader) tooLongError() error {
	const mebibytes = maxRecordBytes >> 20
	if c.quoteLine > 0 {
		return &LineError{c.quoteLine, fmt.Sprintf("a quote opens here and nothing closes it within %d MiB: "+
			"close it, double it or take it out", mebibytes)}
	}
	return &LineError{c.line, fmt.Sprintf("the row has more than %d MiB: check where its line ends", mebibytes)}
}
