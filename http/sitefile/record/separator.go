package record

import (
	"bytes"
	"math"
	"slices"
	"strings"
)

// readSeparatorLine is the separator that a first line "sep=;" names; programs of Microsoft write and read it.
func readSeparatorLine(beginning []byte) (separator byte, ok bool) {
	line := beginning
	if end := bytes.IndexAny(beginning, "\r\n"); end >= 0 {
		line = beginning[:end]
	}
	line = bytes.Trim(line, `"`)
	if len(line) == len("sep=;") && strings.EqualFold(string(line[:4]), "sep=") {
		return line[4], true
	}
	return 0, false
}

// noSeparator is the separator of a file of one column. It occurs in no text.
const noSeparator = 0

// detectDialect detects the separator of a text, and reports whether its first line names it.
func detectDialect(beginning []byte) (separator byte, isNamed bool) {
	if separator, isNamed = readSeparatorLine(beginning); isNamed {
		return separator, true
	}
	if separator = detectSeparator(beginning); separator == noSeparator {
		separator = detectSeparatorInside(beginning)
	}
	return separator, false
}

// detectSeparator finds the separator that cuts the first rows into the same number of cells. The row of names alone does not decide: names
// may contain commas. The other rows alone do not either: decimal commas are as regular as separators. A file may have rows of
// other lengths too, cut or with separators at their end; the most regular candidate wins.
func detectSeparator(beginning []byte) byte {
	best, bestScore := byte(noSeparator), 0.0
	for _, c := range []byte(Separators) {
		if score := scoreSeparator(beginning, c); score > bestScore {
			best, bestScore = c, score
		}
	}
	return best
}

// scoreSeparator is the share of rows that have the most frequent number of cells, weighted by this number. It falls with the number of rows
// above the first of them, and is 0 if rows have one cell each, or if the first row has one and the next ones are not
// names: then it is the name of one column, whose texts contain commas.
func scoreSeparator(beginning []byte, separator byte) float64 {
	rows := sampleRows(beginning, separator)
	cells, frequency := mostFrequentLen(rows)
	if cells < 2 {
		return 0
	}
	// The row of names must have as many cells as the others, if it is to be found at all.
	first := slices.IndexFunc(rows, func(r Record) bool { return len(r.Values) == cells })
	if first > 0 && len(rows[0].Values) == 1 && (!looksLikeNames(rows[first].Values) || isProse(rows[first].Values)) {
		return 0
	}
	share := float64(frequency) / float64(len(rows))
	return share * math.Log2(float64(cells)) / (1 + 0.5*float64(min(first, 4)))
}

// isProse reports whether spaces follow all separators, as they do in a sentence.
func isProse(values []Value) bool {
	return !slices.ContainsFunc(values[1:], func(v Value) bool { return !strings.HasPrefix(v.Text, " ") })
}

// sampleRows are the first rows of a text that may end anywhere. The last one may be cut, and is left out, unless it is the only one
// and has too many cells already.
func sampleRows(beginning []byte, separator byte) []Record {
	const sampled = 200
	var rows []Record
	cells := cellReader{text: beginning, separator: separator, line: 1, isWhole: len(beginning) < sampleBytes,
		hasEscapes: hasEscapedQuotes(beginning)}
	for cells.pos < len(cells.text) && len(rows) < sampled {
		start := cells.pos
		record, err := cells.readRecord()
		if err == errCut && len(rows) == 0 {
			cells.pos, cells.isWhole = start, true
			if record, err = cells.readRecord(); len(record.Values) <= MaxColumns {
				return rows
			}
		}
		if err != nil {
			return rows
		}
		if !isBlank(record.Values) {
			rows = append(rows, record)
		}
	}
	return rows
}

// mostFrequentLen is the number of cells that most rows have, and how many have it.
func mostFrequentLen(rows []Record) (cells, frequency int) {
	counts := map[int]int{}
	for _, r := range rows {
		n := len(r.Values)
		counts[n]++
		if counts[n] > frequency || counts[n] == frequency && n > cells {
			cells, frequency = n, counts[n]
		}
	}
	return cells, frequency
}

// detectSeparatorInside is the separator of rows that are wholly in quotes, each a single cell: "A;""1, rue Haute"";48000". A
// program that found no separator wrote them so.
func detectSeparatorInside(beginning []byte) byte {
	if beginning[0] != '"' {
		return noSeparator
	}
	var lines []byte
	for _, r := range sampleRows(beginning, noSeparator) {
		lines = append(append(lines, r.Values[0].Text...), '\n')
	}
	return detectSeparator(lines)
}

// hasEscapedQuotes reports whether a backslash stands before quotes inside cells, as databases write them, and no quote is doubled. A
// backslash that ends a cell is a path.
func hasEscapedQuotes(beginning []byte) bool {
	isEscaped := false
	for i := 1; i+1 < len(beginning); i++ {
		if beginning[i] != '"' {
			continue
		}
		before, behind := beginning[i-1], beginning[i+1]
		endsCell := strings.IndexByte(Separators+"\r\n", behind) >= 0
		switch {
		case before == '\\' && !endsCell:
			isEscaped = true
		case before == '"' && !endsCell && (i < 2 || strings.IndexByte(Separators+"\r\n\\", beginning[i-2]) < 0):
			return false
		}
	}
	return isEscaped
}
