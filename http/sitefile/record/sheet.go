package record

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// maxSheetColumns is how many columns a sheet has at most, up to XFD.
const maxSheetColumns = 16_384

// openSheet finds the row of names of a sheet.
func (wb *workbook) openSheet(s sheet, o Options) (*File, error) {
	reader := &sheetReader{workbook: wb, part: s.part, width: maxSheetColumns}
	f, err := openTable(reader.yieldRows, o, Info{Format: XLSX, Sheet: s.name}, nil)
	if err != nil {
		return nil, err
	}
	reader.width, reader.info = len(f.columns), &f.info
	return f, nil
}

// sheetReader reads the rows of a sheet.
type sheetReader struct {
	workbook *workbook
	part     string
	width    int   // cells to the right of it are left out
	info     *Info // nil: the row of names is looked for

	row    int // number of the row, from 1
	column int // of the last cell, from 0
	values []Value
}

// yieldRows yields the rows that have text, hidden ones too: a filter that was left on hides them.
func (r *sheetReader) yieldRows(yield func(Record, error) bool) {
	r.row = 0
	if r.info != nil {
		r.info.UncomputedFormulas, r.info.CellsBeyondHeader, r.info.HiddenRows = Count{}, Count{}, Count{}
	}
	shared := r.workbook.archive.unpacked
	defer func() { r.workbook.archive.unpacked = shared }() // each run may unpack as much
	err := r.workbook.archive.eachToken(r.part, func(s *xmlScanner, t *xmlToken) error { return r.readToken(s, t, yield) })
	if err != nil && err != errStopped && err != io.EOF {
		yield(Record{}, err)
	}
}

// readToken reads the beginning or the end of a row, or a cell.
func (r *sheetReader) readToken(s *xmlScanner, t *xmlToken, yield func(Record, error) bool) error {
	switch name := string(t.name); {
	case t.kind == xmlText:
	case name == "row" && t.kind == xmlStart:
		r.row++
		if n, err := strconv.Atoi(string(t.attribute("r"))); err == nil {
			r.row = n
		}
		if isTrue(t.attribute("hidden")) && r.info != nil {
			r.info.HiddenRows.add(r.row)
		}
		r.column, r.values = -1, nil
	case name == "row":
		values := r.values
		r.values = nil
		if !isBlank(values) && !yield(Record{r.row, values}, nil) {
			return errStopped
		}
	case name == "c" && t.kind == xmlStart:
		return r.readCell(s, t)
	case name == "sheetData" && t.kind == xmlEnd:
		return io.EOF
	}
	return nil
}

// cell is a cell of a sheet as its part has it.
type cell struct {
	kind       string // how the value is meant: s shared, str and inlineStr text, b bool, e error, d date, n or none number
	style      int
	text       []byte
	hasValue   bool
	hasFormula bool
}

// readCell reads up to the end of a cell, and sets its value.
func (r *sheetReader) readCell(s *xmlScanner, t *xmlToken) error {
	r.column++
	if column, ok := parseColumn(t.attribute("r")); ok {
		r.column = column
	}
	c := cell{kind: cellKind(t.attribute("t"))}
	c.style, _ = strconv.Atoi(string(t.attribute("s"))) // none is the first
	if err := c.readParts(s); err != nil {
		return err
	}
	if c.hasFormula && !c.hasValue && r.info != nil {
		r.info.UncomputedFormulas.add(r.row)
	}
	return r.set(r.workbook.formatCell(&c))
}

// cellKind is the kind as a constant: a sheet has a million of them.
func cellKind(t []byte) string {
	switch string(t) {
	case "s":
		return "s"
	case "", "n":
		return ""
	}
	return string(t)
}

// readParts reads the value of a cell: <v>, or <t> inside <is>.
func (c *cell) readParts(s *xmlScanner) error {
	inValue, inPronunciation := false, false
	for {
		t, err := s.next()
		if err == io.EOF {
			return errWrongXML
		}
		if err != nil {
			return err
		}
		if t.kind == xmlText {
			if inValue && !inPronunciation {
				c.text = append(c.text, t.text...)
			}
			continue
		}
		isStart := t.kind == xmlStart
		switch string(t.name) {
		case "c":
			return nil
		case "v", "t":
			inValue, c.hasValue = isStart, true
		case "rPh":
			inPronunciation = isStart
		case "f":
			c.hasFormula = true
		}
	}
}

// set sets the value of the cell at column.
func (r *sheetReader) set(text string) error {
	switch {
	case text == "":
		return nil
	case r.column >= maxSheetColumns:
		return fmt.Errorf("%w: row %d has too many cells", errWrongXML, r.row)
	case r.column >= r.width:
		if r.info != nil && r.row > r.info.HeaderLine {
			r.info.CellsBeyondHeader.add(r.row)
		}
		return nil
	}
	if r.values == nil {
		r.values = make([]Value, 0, min(r.width, 64))
	}
	for len(r.values) <= r.column {
		r.values = append(r.values, Value{})
	}
	r.values[r.column].Text = text
	return nil
}

// parseColumn is the number of the column that a reference such as BC12 names, from 0.
func parseColumn(reference []byte) (int, bool) {
	column := 0
	for i, b := range reference {
		if b < 'A' || b > 'Z' {
			return column - 1, i > 0
		}
		if column = 26*column + int(b-'A') + 1; column > maxSheetColumns {
			return column, true
		}
	}
	return 0, false
}

// formatCell is the text of a cell. An error such as #N/A has none.
func (wb *workbook) formatCell(c *cell) string {
	switch c.kind {
	case "s":
		n, err := strconv.Atoi(string(bytes.TrimSpace(c.text)))
		if err != nil {
			return ""
		}
		return wb.shared.at(n)
	case "e":
		return ""
	case "b":
		return strconv.FormatBool(isTrue(c.text))
	case "str", "inlineStr":
		return decodeEscapes(string(c.text))
	case "d":
		return string(c.text)
	}
	if c.style < 0 || c.style >= len(wb.formats) {
		return formatNumber(string(c.text))
	}
	return wb.formats[c.style].format(string(c.text), wb.is1904)
}
