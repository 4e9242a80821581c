package xlsx

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
)

// MaxColumns is the most columns of a sheet, up to XFD.
const MaxColumns = 16_384

// Most rows and cells of a sheet may be empty: they were formatted, or are there to take time. A sheet has at most maxRows rows. A cell
// with its reference and its format takes some 20 bytes, so maxUnpackedBytes has room for at most maxCells.
const (
	maxRows  = 1 << 20
	maxCells = 32 << 20
)

// Row is a row of a sheet. Cells[i] is the text of the cell in column i, from 0; cells without text at its end are left out.
type Row struct {
	Number     int // from 1
	Cells      []string
	IsHidden   bool  // as a filter that was left on hides rows
	Beyond     int   // cells with text that were left out because they stand to the right of the width
	Uncomputed []int // the columns of formulas without a value: the program that wrote them did not compute them
}

// Rows yields the rows of a sheet that have a cell with text or a formula. Cells to the right of the first width columns are left out. An
// error is the last element. Each run reads the sheet anew. The caller may keep the rows.
func (w *Workbook) Rows(s Sheet, width int) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		unpacked := w.archive.unpacked
		defer func() { w.archive.unpacked = unpacked }() // each run may unpack as much
		r := sheetReader{workbook: w, width: min(width, MaxColumns), yield: yield}
		if err := w.archive.eachToken(s.part, r.readToken); err != nil && err != errEnd {
			yield(Row{}, err)
		}
	}
}

// errEnd stops the reading of a sheet.
var errEnd = errors.New("the rows have ended")

// sheetReader reads the rows of a sheet, and yields each at its end.
type sheetReader struct {
	workbook *Workbook
	width    int
	yield    func(Row, error) bool
	row      Row
	column   int // of the last cell, from 0
	lastLen  int // how many cells the last row had
	rows     int // so far
	cells    int // so far
}

// readToken reads the beginning or the end of a row, or a cell.
func (r *sheetReader) readToken(s *xmlScanner, t *xmlToken) error {
	switch name := string(t.name); {
	case t.kind == xmlText:
	case name == "row" && t.kind == xmlStart:
		return r.beginRow(t)
	case name == "row":
		return r.endRow()
	case name == "c" && t.kind == xmlStart:
		return r.readCell(s, t)
	case name == "sheetData" && t.kind == xmlEnd:
		return errEnd
	}
	return nil
}

// beginRow begins a row. One without a number follows the last.
func (r *sheetReader) beginRow(t *xmlToken) error {
	if r.rows++; r.rows > maxRows {
		return &FormatError{fmt.Sprintf("the sheet has more than %d rows: delete the empty ones, or save it as CSV", maxRows)}
	}
	number := r.row.Number + 1
	if n, ok := parseNumber(t.attribute("r")); ok {
		number = n
	}
	r.row, r.column = Row{Number: number, IsHidden: isTrue(t.attribute("hidden"))}, -1
	return nil
}

// parseNumber is the number in an attribute that may be missing. strconv.Atoi would allocate a million errors.
func parseNumber(digits []byte) (int, bool) {
	if len(digits) == 0 {
		return 0, false
	}
	n, err := strconv.Atoi(string(digits))
	return n, err == nil
}

// endRow yields a row that has something, with room for the next.
func (r *sheetReader) endRow() error {
	row := r.row
	r.row, r.lastLen = Row{Number: row.Number}, len(row.Cells)
	if len(row.Cells)+row.Beyond+len(row.Uncomputed) > 0 && !r.yield(row, nil) {
		return errEnd
	}
	return nil
}

// cell is a cell of a sheet as its part has it.
type cell struct {
	kind       string // how the value is meant: s shared, str and inlineStr text, b bool, e error, d date, n or missing number
	style      int
	text       []byte
	hasValue   bool
	hasFormula bool
}

// readCell reads up to the end of a cell, and sets its value. Cells without content are not written, so each may name its column; one
// that does not follows the last.
func (r *sheetReader) readCell(s *xmlScanner, t *xmlToken) error {
	if r.cells++; r.cells > maxCells {
		return &FormatError{fmt.Sprintf("the sheet has more than %d cells: delete the empty rows and columns, or save it as CSV", maxCells)}
	}
	r.column++
	if column, ok := parseColumn(t.attribute("r")); ok {
		r.column = column
	}
	c := cell{kind: cellKind(t.attribute("t"))}
	c.style, _ = parseNumber(t.attribute("s")) // a cell without a style has the first one
	if err := c.readParts(s); err != nil {
		return err
	}
	if c.hasFormula && !c.hasValue {
		r.row.Uncomputed = append(r.row.Uncomputed, r.column)
	}
	if len(c.text) == 0 {
		return nil
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

// set sets the text of the cell at column.
func (r *sheetReader) set(text string) error {
	switch {
	case text == "":
		return nil
	case r.column >= MaxColumns:
		return fmt.Errorf("%w: row %d has too many cells", errWrongXML, r.row.Number)
	case r.column >= r.width:
		r.row.Beyond++
		return nil
	case r.row.Cells == nil:
		r.row.Cells = make([]string, 0, max(r.lastLen, r.column+1))
	}
	for len(r.row.Cells) <= r.column {
		r.row.Cells = append(r.row.Cells, "")
	}
	r.row.Cells[r.column] = text
	return nil
}

// parseColumn is the index, from 0, of the column that a reference such as BC12 names.
func parseColumn(reference []byte) (int, bool) {
	column := 0
	for i, b := range reference {
		if b < 'A' || b > 'Z' {
			return column - 1, i > 0
		}
		if column = 26*column + int(b-'A') + 1; column > MaxColumns {
			return column, true
		}
	}
	return 0, false
}

// formatCell is the text of a cell as its reader sees it, except for the format of numbers and dates. An error such as
// #N/A is empty. For a formula it is the last computed value.
func (w *Workbook) formatCell(c *cell) string {
	switch c.kind {
	case "s":
		n, err := strconv.Atoi(string(bytes.TrimSpace(c.text)))
		if err != nil {
			return ""
		}
		return w.shared.at(n)
	case "e":
		return ""
	case "b":
		return strconv.FormatBool(isTrue(c.text))
	case "str", "inlineStr":
		return decodeEscapes(string(c.text))
	case "d":
		return string(c.text)
	}
	if c.style < 0 || c.style >= len(w.formats) {
		return formatNumber(string(c.text))
	}
	return w.formats[c.style].format(string(c.text), w.is1904)
}
