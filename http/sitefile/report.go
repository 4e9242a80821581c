package sitefile

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"lieudit/http/sitefile/clean"
	"lieudit/http/sitefile/mapping"
)

// Report is what happened to the values of a file. Every kind is counted, with examples, so that a fault of ten thousand rows is
// one line.
type Report struct {
	Mended    []Finding          // what was changed, and how
	Doubts    []Finding          // what was stored as it stood, or put into proprietes, though it looks wrong
	Obstacles []mapping.Obstacle // why the file cannot be imported as it is
}

// Finding is one kind of mending or doubt.
type Finding struct {
	Kind        string
	Count       int
	Lines       []int // the first few
	Column      string
	Before      string // of the first
	After       string // of the first, where something was changed
	advice      string // of a finding that is an obstacle
	isTolerable bool   // a fault that is a doubt where few rows have it
}

// maxLines is how many lines a finding keeps.
const maxLines = 5

// DescribeLines names the lines of a finding.
func (f Finding) DescribeLines() string { return describeLines(f.Lines, f.Count) }

func (r *Report) addObstacle(advice, format string, args ...any) {
	r.Obstacles = append(r.Obstacles, mapping.Obstacle{Reason: fmt.Sprintf(format, args...), Advice: advice})
}

// findings counts findings by their kind.
type findings map[string]*Finding

func (f findings) add(kind string, line int, column, before, after string) *Finding {
	found, ok := f[kind]
	if !ok {
		found = &Finding{Kind: kind, Column: column, Before: shorten(before), After: shorten(after)}
		f[kind] = found
	}
	found.Count++
	if len(found.Lines) < maxLines && (len(found.Lines) == 0 || found.Lines[len(found.Lines)-1] != line) {
		found.Lines = append(found.Lines, line)
	}
	return found
}

// list is the findings, the most frequent first.
func (f findings) list() []Finding {
	all := make([]Finding, 0, len(f))
	for _, found := range f {
		all = append(all, *found)
	}
	slices.SortFunc(all, func(a, b Finding) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Kind, b.Kind)) })
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

// The kinds of doubts.
const (
	doubtPhone        = "not read as a telephone, kept in proprietes"
	doubtEmail        = "not read as an e-mail address, kept in proprietes"
	doubtWebsite      = "not read as the address of a web site, kept in proprietes"
	doubtPostcode     = "not a French postcode, stored as it stands"
	doubtLongPostcode = "not a postcode, kept in proprietes"
	doubtManyTags     = "more than 50 tags, kept in proprietes"
	doubtInsee        = "not an INSEE code, kept in proprietes"
	doubtPosition     = "not read as a position"
	doubtRepeated     = "repeats another row in full and counts once"
	doubtScientific   = "a number that a spreadsheet has shortened: its last digits are lost"
	doubtIDCase       = "an id that differs from another only by case"
	doubtFewCells     = "has fewer cells than the file has columns"
	doubtNoName       = "has no name"
	doubtSkipped      = "is a line or a polygon and is left out"
	doubtTagsTooLong  = "a tag of more than 64 characters, kept in proprietes"
)

// The kinds of mending that are of whole sites; those of values are clean.Mend.
const (
	mendID              = clean.Mend("ids: other signs than A-Z a-z 0-9 . _ ~ : * @ + - became -")
	mendNumericID       = clean.Mend("ids: .0 taken off")
	mendCut             = clean.Mend("longer than the field: cut there, whole in proprietes")
	mendTownSplit       = clean.Mend("postcode and commune taken out of a line")
	mendNumberPrepended = clean.Mend("the number of its own column put before the street")
	mendBesidePhone     = clean.Mend("a telephone and other words, the whole in proprietes")
	mendCenter          = clean.Mend("a line or a polygon became the point in its middle")
	mendFirstOfSeveral  = clean.Mend("the first of several, the whole in proprietes")
)
