// Package sitefile reads files of sites and writes sites as files. No fact of a file is lost silently, and a file that is written
// here and read again gives every site unchanged. Files from other sources are read whatever their format, the names of their
// columns and the form of their values.
//
// Read passes twice over a file. The first pass finds out what its columns hold, the second makes the sites:
//
//	file ──record.Open──► record.Record ──mapping.Profile.Observe, mapping.Guess──► mapping.Mapping
//	                      record.Record ──builder: buildAddress, fillPosition, clean.*──► Site ──identifier──► Import.Sites
//
// The Report records what happens to values. A fix changes the form of a value. A warning is a value that looks wrong and is stored
// anyway, in its field or in proprietes. A fault keeps the file from being imported. Each kind of these is one Issue, however
// many rows it concerns; faults become Errors, with advice.
//
// A file that lieudit exported is read exactly, except for what a spreadsheet is known to do to codes. It is compared with the sites that
// the referential has (FindLosses), and positions that were found by the address are found again in another referential (PlaceAgain).
//
// The export goes through locations.Site ──► Format.NewWriter ──► Writer.WriteRow, Finish. The API exports files; the import is a
// command of the command line.
package sitefile

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"lieudit/http/sitefile/clean"
	"lieudit/http/sitefile/mapping"
	"lieudit/http/sitefile/record"
	"lieudit/schemas/locations"
)

// Options is what the user says about a file. With the zero value everything is detected.
type Options struct {
	Record  record.Options
	Columns mapping.Given
	Shapes  Shapes
}

// Shapes selects the treatment of sites whose geometry is a line or a polygon.
type Shapes string

// The zero value makes such geometries an error.
const (
	CenterShapes Shapes = "center" // the site stands in the middle
	SkipShapes   Shapes = "skip"   // the site is left out
)

// Import is the content of a file: its sites, and what its user should know before they are stored.
type Import struct {
	Info    record.Info
	Mapping mapping.Mapping
	Rows    int    // records of the file; Sites are fewer if rows repeat each other or are left out
	Sites   []Site // in the order of the file
	Report

	examples []string     // one value of each column
	totals   record.Count // rows of totals, which are not sites

	// ProposedID is an --id that gives every site an id of its own, if the file has no column of ids; otherwise "".
	ProposedID string
}

// Site is a site of a file and the line that it begins on.
type Site struct {
	Line       int
	ExternalID string
	Content    locations.Content
	IsGeocoded bool // the file was exported, and the position was found by the address

	unknown []int // columns of formulas without a value, whose results are unknown
}

// MaxSites is the most sites that a sync accepts.
const MaxSites = 20_000

// ErrEmpty: the file has no rows.
var ErrEmpty = errors.New("the file holds no places: it has names of columns, and nothing below them")

// Read reads the sites of a file, in two passes: the first finds out what its columns hold, the second builds the sites. All that keeps
// the file from being imported is in Import.Errors, and then the sites may be incomplete. Read fails if the file
// cannot be read at all, with an error of record.Open, a *record.LineError or ErrEmpty.
func Read(file io.ReaderAt, size int64, name string, o Options) (*Import, error) {
	f, err := record.Open(file, size, name, o.Record)
	if err != nil {
		return nil, err
	}
	var ragged raggedRows
	i := &Import{}
	profile, err := i.profileFile(f, &ragged)
	if err != nil {
		return nil, err
	}
	i.Rows, i.Info = profile.Rows, f.Info()
	if i.Rows > MaxSites {
		i.addError("split the file into several referentials, or leave rows out",
			"the file has more than %d rows; a referential is written with at most that many at once", MaxSites)
		return i, nil
	}
	i.examples = profile.Examples()
	var errs []mapping.Error
	i.Mapping, errs = mapping.Guess(profile, o.Columns)
	i.Errors = append(i.Errors, errs...)
	if err := i.makeSites(f, o, &ragged); err != nil {
		return nil, err
	}
	i.Info = f.Info()
	return i, nil
}

// profileFile runs through the records once. It stops after the last row that a sync could accept.
func (i *Import) profileFile(f *record.File, ragged *raggedRows) (*mapping.Profile, error) {
	p, isCSV := &mapping.Profile{}, f.Info().Format == record.CSV
	columns := f.Columns()
	for r, err := range f.Records() {
		if err != nil {
			return nil, err
		}
		if len(r.Values) > len(columns) { // an object has new members
			columns = f.Columns()
		}
		if isTable(f.Info()) && isTotals(r, len(columns)) {
			i.totals.Add(r.Line)
			continue
		}
		if p.Observe(columns, r); p.Rows > MaxSites {
			return p, nil
		}
		if isCSV {
			ragged.observe(r, len(p.Columns))
		}
	}
	if p.Rows == 0 {
		return nil, ErrEmpty
	}
	return p, nil
}

// makeSites runs through the records again and builds a site from each.
func (i *Import) makeSites(f *record.File, o Options, ragged *raggedRows) error {
	b := newBuilder(i, f.Info(), o)
	ragged.report(b)
	for r, err := range f.Records() {
		if err != nil {
			return err
		}
		if b.isTable() && isTotals(r, len(i.Mapping.Columns)) {
			continue
		}
		if site, ok := b.build(r); ok {
			i.Sites = append(i.Sites, site)
		}
	}
	b.finish()
	return nil
}

// describeLines names lines in a message: "line 4", "lines 4, 9, 12 and 250 others". A file of one line has many sites on it:
// "line 1, 155 times".
func describeLines(lines []int, total int) string {
	const shown = 3
	distinct := slices.Compact(slices.Clone(lines))
	switch {
	case total == 1:
		return fmt.Sprintf("line %d", lines[0])
	case len(distinct) == 1:
		return fmt.Sprintf("line %d, %d times", lines[0], total)
	}
	text := "lines "
	for n, line := range distinct[:min(shown, len(distinct))] {
		if n > 0 {
			text += ", "
		}
		text += fmt.Sprint(line)
	}
	switch rest := total - min(shown, len(distinct)); rest {
	case 0:
	case 1:
		text += " and another one"
	default:
		text += fmt.Sprintf(" and %d others", rest)
	}
	return text
}

// totalsWord matches the first cell of a row of totals.
var totalsWord = regexp.MustCompile(`(?i)^(sous[- ]?)?(total|totaux|somme|moyenne|grand total)( g[ée]n[ée]ral)?\s*[:=]?$`)

// isTotals reports whether a row of a table sums up the others: its first cell says so, its other filled cells are numbers, and about
// half are empty. A filling station called Total has an address.
func isTotals(r record.Record, columns int) bool {
	filled := 0
	for _, v := range r.Values {
		text := strings.TrimSpace(v.Text)
		if text == "" {
			continue
		}
		if filled++; filled == 1 && !totalsWord.MatchString(text) {
			return false
		}
		if _, isNumber := clean.Decimal(text); filled > 1 && !isNumber {
			return false
		}
	}
	return filled > 0 && columns > 2 && filled < columns && filled*2 <= columns+2
}
