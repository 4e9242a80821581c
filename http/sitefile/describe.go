package sitefile

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"lieudit/http/sitefile/mapping"
	"lieudit/http/sitefile/record"
)

// Describe says in one line what the file is.
func (i *Import) Describe() string {
	text := fmt.Sprintf("%d rows of %s", i.Rows, i.Info.Format)
	switch {
	case i.Info.Separator != 0:
		text += fmt.Sprintf(", separated by %q, %s", i.Info.Separator, i.Info.Encoding)
	case i.Info.Sheet != "":
		text += fmt.Sprintf(", sheet %q", i.Info.Sheet)
	case i.Info.CRS != "":
		text += ", " + i.Info.CRS
	}
	if i.Mapping.IsExport {
		text += ", exported by lieudit: read exactly as it is"
	}
	return text
}

// ColumnUse is a column of the file, what it becomes, and a value of it.
type ColumnUse struct{ Name, Becomes, Example string }

// DescribeColumns says what becomes of the columns that hold a field, of those that are left out, and names those that are only kept
// in proprietes.
func (i *Import) DescribeColumns() (uses []ColumnUse, properties []string) {
	var leftOut []ColumnUse
	for column, t := range i.Mapping.Targets {
		use := ColumnUse{Name: i.Mapping.Columns[column], Example: i.example(column)}
		switch {
		case t.LeftOut != "":
			use.Becomes = "not stored: " + t.LeftOut
			leftOut = append(leftOut, use)
		case t.IsSecondary:
			use.Becomes = "not stored: repeats the position"
			leftOut = append(leftOut, use)
		case t.Field != "":
			use.Becomes = describeField(t)
			uses = append(uses, use)
		case t.Fallback != "":
			use.Becomes = "proprietes, and " + describeField(mapping.Target{Field: t.Fallback}) + " where that is empty"
			uses = append(uses, use)
		default:
			properties = append(properties, t.Property)
		}
	}
	return append(uses, leftOut...), properties
}

// fieldPhrases are fields that are only a part of one of a site.
var fieldPhrases = map[mapping.Field]string{
	mapping.HouseNumber: "ligne_1 (number)", mapping.Suffix: "ligne_1 (suffix)", mapping.StreetType: "ligne_1 (type of street)",
	mapping.StreetName: "ligne_1 (street)", mapping.Pair: "lat, lon", mapping.Shape: "lat, lon", mapping.X: "lon (x)", mapping.Y: "lat (y)",
	mapping.Monday: "horaires (lundi)", mapping.Tuesday: "horaires (mardi)", mapping.Wednesday: "horaires (mercredi)", mapping.Thursday: "horaires (jeudi)",
	mapping.Friday: "horaires (vendredi)", mapping.Saturday: "horaires (samedi)", mapping.Sunday: "horaires (dimanche)",
}

func describeField(t mapping.Target) string {
	text := fieldPhrases[t.Field]
	if text == "" {
		text = string(t.Field)
	}
	if t.Evidence == mapping.ByContent {
		text += " (by its content)"
	}
	return text
}

// example is a short value of a column.
func (i *Import) example(column int) string {
	if column >= len(i.examples) {
		return ""
	}
	text := strings.Join(strings.Fields(i.examples[column]), " ")
	if utf8.RuneCountInString(text) > 40 {
		text = string([]rune(text)[:39]) + "…"
	}
	return text
}

// Notes says what was found in the file, and is not of single values: what was passed over, and what was read in an unusual way.
func (i *Import) Notes() []string {
	var notes []string
	add := func(isSo bool, format string, args ...any) {
		if isSo {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	info := i.Info
	count := func(c record.Count, what string) {
		add(c.Number > 0, "%d × %s, the first in line %d", c.Number, what, c.Line)
	}
	add(info.TitleRows > 0, "%d rows above the names of the columns are passed over", info.TitleRows)
	add(info.SecondHeaderLine > 0, "line %d is a second row of names and is passed over", info.SecondHeaderLine)
	add(len(info.SkippedSheets) > 0, "sheets without names of columns are passed over: %s", strings.Join(info.SkippedSheets, ", "))
	add(len(info.OtherSheets) > 0, "other sheets of the file are not read: %s; --sheet names one", strings.Join(info.OtherSheets, ", "))
	add(len(info.OtherLists) > 0, "other lists of the file are not read: %s", strings.Join(info.OtherLists, ", "))
	add(info.WrongDecodingUndone, "letters that were encoded twice (Ã©) are read as what was meant")
	count(info.RepeatedHeaders, "a row that repeats the names, passed over")
	count(info.CellsBeyondHeader, "a cell to the right of the last name, passed over")
	count(info.BrokenCharacters, "a broken character")
	count(info.UncomputedFormulas, "a formula without a value, read as empty")
	count(info.HiddenRows, "a row that a filter hides, read as the others")
	return notes
}
