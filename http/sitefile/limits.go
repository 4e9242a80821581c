package sitefile

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"lieudit/http/sitefile/record"
)

// Limits of proprietes, as the service has them.
const (
	maxProperties     = 100
	maxPropertiesSize = 16_384
)

// oversizedProperties finds the columns to leave out if proprietes would be larger than the service accepts.
type oversizedProperties struct {
	lines []int
	count int
	sizes map[string]int // of each property in rows over a limit, the largest
}

// check records a site whose properties are too many or too large.
func (l *oversizedProperties) check(line int, p *properties, text json.RawMessage) {
	if len(p.keys) <= maxProperties && len(text) <= maxPropertiesSize {
		return
	}
	if l.count++; len(l.lines) < maxLines {
		l.lines = append(l.lines, line)
	}
	for _, key := range p.keys {
		l.sizes[key] = max(l.sizes[key], len(key)+len(p.values[key])+4)
	}
}

// addError names the largest columns that have to go until the rest fits in every row.
func (l *oversizedProperties) addError(i *Import) {
	if l.count == 0 {
		return
	}
	keys, total := make([]string, 0, len(l.sizes)), 2
	for key, size := range l.sizes {
		keys, total = append(keys, key), total+size
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(l.sizes[b]-l.sizes[a], strings.Compare(a, b)) })
	var flags []string
	for n, key := range keys {
		if len(keys)-n <= maxProperties && total <= maxPropertiesSize {
			break
		}
		total -= l.sizes[key]
		flags = append(flags, "--ignore '"+key+"'")
	}
	i.addError("these would do: "+strings.Join(flags, " "),
		"%s: proprietes has more than %d members or %d bytes", describeLines(l.lines, l.count), maxProperties, maxPropertiesSize)
}

// minShifted is how many good rows before, and how many bad ones to the end, make a shift of columns.
const minShifted = 10

// shiftDetector finds the row from which a column of postcodes holds something else to the end: a cell is missing or too many
// from there.
type shiftDetector struct {
	column    string
	good, bad int // good rows so far; bad rows since the last of them
	firstBad  int // its line
}

func (d *shiftDetector) observe(line int, isPostcode bool, column string) {
	switch d.column = column; {
	case isPostcode && d.bad > 0:
		d.good, d.bad = d.good+1, 0
	case isPostcode:
		d.good++
	case d.bad == 0:
		d.bad, d.firstBad = 1, line
	default:
		d.bad++
	}
}

func (d *shiftDetector) addError(i *Import) {
	if d.good >= minShifted && d.bad >= minShifted {
		i.addError("a separator is missing or too many there; correct the rows from there on. Postcodes of another country want a column of countries",
			"line %d: from here on the column %q holds no postcodes: the cells seem to be shifted", d.firstBad, d.column)
	}
}

// raggedRows finds rows of CSV with fewer cells than the others: their cells are separated by another sign, or some are missing.
type raggedRows struct {
	columns int
	full    int      // rows with all cells
	short   lineList // with at least a quarter of them
	stubs   lineList // with less
	joined  lineList // with one cell, which holds signs that may separate others
	cells   int      // of the first of stubs
}

// lineList counts lines and keeps the first few.
type lineList struct {
	lines []int
	count int
}

func (l *lineList) add(line int) {
	if l.count++; len(l.lines) < maxLines {
		l.lines = append(l.lines, line)
	}
}

func (l *lineList) String() string { return describeLines(l.lines, l.count) }

func (r *raggedRows) observe(row record.Record, columns int) {
	cells := len(row.Values)
	switch r.columns = columns; {
	case cells >= columns:
		r.full++
	case cells == 1 && columns > 2 && countSeparators(row.Values[0].Text)+1 >= columns/2:
		r.joined.add(row.Line)
	case cells*4 >= columns:
		r.short.add(row.Line)
	default:
		if r.stubs.add(row.Line); r.stubs.count == 1 {
			r.cells = cells
		}
	}
}

// countSeparators counts the signs that may separate cells.
func countSeparators(text string) int {
	n := 0
	for _, sign := range []string{",", ";", "\t", "|"} {
		n = max(n, strings.Count(text, sign))
	}
	return n
}

// report names the ragged rows if nearly all rows are full: programs that omit empty cells at the end do so in many rows.
func (r *raggedRows) report(b *builder) {
	if r.joined.count > 0 {
		b.imported.addError("another separator there, or quotes around the whole row? correct the line", "%s: one cell instead of %d", &r.joined, r.columns)
	}
	if few := r.full/20 + 1; r.full == 0 || r.short.count+r.stubs.count > few {
		return
	}
	if r.stubs.count > 0 {
		b.imported.addError("another separator there, or a quote too many before? correct the line", "%s: cells are missing, %d instead of %d",
			&r.stubs, r.cells, r.columns)
	}
	if r.short.count > 0 {
		f := b.warnings.add(warningFewCells, r.short.lines[0], "", "", "")
		f.Count, f.Lines = r.short.count, r.short.lines
	}
}
