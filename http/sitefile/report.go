package sitefile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"lieudit/http/sitefile/clean"
	"lieudit/http/sitefile/mapping"
	"lieudit/http/sitefile/record"
)

// Report is what happened to the values of a file. Every kind is counted, with examples, so an error in ten thousand rows is
// one line.
type Report struct {
	Fixed    []Issue         // what was changed, and how
	Warnings []Issue         // what was stored unchanged, or put into proprietes, though it looks wrong
	Errors   []mapping.Error // why the file cannot be imported
}

// Issue is one kind of fix or warning.
type Issue struct {
	Kind        string
	Count       int
	Lines       []int // the first few
	Column      string
	Before      string // of the first
	After       string // of the first, if something was changed
	advice      string // of an issue that is an error
	isTolerable bool   // an error that is only a warning if few rows have it
}

// maxLines is the most lines that an issue keeps.
const maxLines = 5

// DescribeLines names the lines of an issue.
func (f Issue) DescribeLines() string { return describeLines(f.Lines, f.Count) }

func (r *Report) addError(advice, format string, args ...any) {
	r.Errors = append(r.Errors, mapping.Error{Reason: fmt.Sprintf(format, args...), Advice: advice})
}

// issues counts issues by their kind.
type issues map[string]*Issue

func (f issues) add(kind string, line int, column, before, after string) *Issue {
	found, ok := f[kind]
	if !ok {
		found = &Issue{Kind: kind, Column: column, Before: shorten(before), After: shorten(after)}
		f[kind] = found
	}
	found.Count++
	if len(found.Lines) < maxLines && (len(found.Lines) == 0 || found.Lines[len(found.Lines)-1] != line) {
		found.Lines = append(found.Lines, line)
	}
	return found
}

// list is the issues, the most frequent first.
func (f issues) list() []Issue {
	all := make([]Issue, 0, len(f))
	for _, found := range f {
		all = append(all, *found)
	}
	slices.SortFunc(all, func(a, b Issue) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Kind, b.Kind)) })
	return all
}

// shorten cuts an example for people at 60 characters.
func shorten(text string) string {
	const limit = 60
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}

// The kinds of warnings.
const (
	warningPhone        = "not read as a telephone, kept in proprietes"
	warningEmail        = "not read as an e-mail address, kept in proprietes"
	warningWebsite      = "not read as the address of a web site, kept in proprietes"
	warningPostcode     = "not a French postcode, stored as it stands"
	warningLongPostcode = "not a postcode, kept in proprietes"
	warningHours        = "opening hours kept as a text: the place is never found as open (ouvert=true)"
	warningDayHours     = "opening hours of days not read, kept in proprietes: the place is never found as open (ouvert=true)"
	warningClosed       = "is closed or inactive by its column and is left out: it is not created, or becomes inactive"
	warningActive       = "not read as open or closed, imported as active and kept in proprietes"
	warningPostalTown   = "not read as a postcode and a commune, kept in proprietes"
	warningShortCode    = "a postcode of four digits that its commune contradicts, stored as it stands"
	warningManyTags     = "more than 50 tags, kept in proprietes"
	warningInsee        = "not an INSEE code, kept in proprietes"
	warningPosition     = "not read as a position"
	warningNoID         = "has no id and is left out"
	warningRepeated     = "repeats another row in full and counts once"
	warningScientific   = "a number that a spreadsheet has shortened: its last digits are lost"
	warningIDCase       = "an id that differs from another only by case"
	warningFewCells     = "has fewer cells than the file has columns"
	warningNoName       = "has no name"
	warningSkipped      = "is a line or a polygon and is left out"
	warningTagsTooLong  = "a tag of more than 64 characters, kept in proprietes"
)

// The kinds of fix to whole sites; those to values are clean.Fix.
const (
	fixID              = clean.Fix("ids: other characters than A-Z a-z 0-9 . _ ~ : * @ + - became -")
	fixNumericID       = clean.Fix("ids: .0 taken off")
	fixCut             = clean.Fix("longer than the field: cut there, whole in proprietes")
	fixTownSplit       = clean.Fix("postcode and commune taken out of a line")
	fixNumberPrepended = clean.Fix("the number of its own column put before the street")
	fixBesidePhone     = clean.Fix("a telephone and other words, the whole in proprietes")
	fixCenter          = clean.Fix("a line or a polygon became the point in its middle")
	fixFirstOfSeveral  = clean.Fix("the first of several, the whole in proprietes")
)

// Describe describes the file in one line.
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

// ColumnUse is a column of the file, its target, and one of its values.
type ColumnUse struct{ Name, Becomes, Example string }

// DescribeColumns describes the columns that hold a field and those that are left out, and names those that are only kept
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

// fieldPhrases are fields that are only a part of a site's field.
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

// Notes describes findings about the whole file: what was skipped, and what was read in an unusual way.
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
	if id := i.Mapping.ID; id.IsLikeOne {
		add(true, "external_id is the column %q: it is called like an id, and no value comes twice; --id names another", i.Mapping.Columns[id.Column])
	}
	for _, m := range i.Mapping.Misnamed {
		name := i.Mapping.Columns[m.Column]
		add(true, "the column %q is called like %s, and most of it does not look like one: it is kept in proprietes; --map '%s=%s' takes it all the same", name, m.Field, m.Field, name)
	}
	quoted := 0
	for _, is := range i.Mapping.IsQuoted {
		if is && !i.Mapping.IsExport {
			quoted++
		}
	}
	add(quoted > 0, "%d columns have an apostrophe before every number, which is taken off", quoted)
	add(info.TitleRows > 0, "%d rows above the names of the columns are passed over", info.TitleRows)
	add(info.SecondHeaderLine > 0, "line %d is a second row of names and is passed over", info.SecondHeaderLine)
	add(len(info.SkippedSheets) > 0, "sheets without names of columns are passed over: %s", strings.Join(info.SkippedSheets, ", "))
	add(len(info.OtherSheets) > 0, "other sheets of the file are not read: %s; --sheet names one", strings.Join(info.OtherSheets, ", "))
	add(len(info.OtherLists) > 0, "other lists of the file are not read: %s", strings.Join(info.OtherLists, ", "))
	add(info.WrongDecodingUndone, "letters that were encoded twice (Ã©) are read as what was meant")
	count(i.totals, "a row of totals, passed over")
	count(info.RepeatedHeaders, "a row that repeats the names, passed over")
	count(info.CellsBeyondHeader, "a cell to the right of the last name, passed over")
	count(info.BrokenCharacters, "a broken character")
	count(info.UncomputedFormulas, "a formula without a value, which a spreadsheet program computes when it saves the file; a place that is stored keeps what it has there")
	count(info.HiddenRows, "a row that a filter hides, read as the others")
	return notes
}
