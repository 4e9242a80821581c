package record

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"lieudit/http/sitefile/record/xlsx"
)

// openXLSX opens the requested sheet, otherwise the first that has a row of names. A sheet with titles above its names, or with rows
// but no names, is refused and not skipped: the sheets after it may be lists to which its cells refer.
func openXLSX(file io.ReaderAt, size int64, o Options) (*File, error) {
	wb, err := xlsx.Open(file, size)
	if err != nil {
		return nil, asOwnError(err)
	}
	visible := slices.DeleteFunc(wb.Sheets(), func(s xlsx.Sheet) bool { return s.IsHidden })
	candidates := visible
	if o.Sheet != "" {
		found, err := findSheet(wb.Sheets(), o.Sheet)
		if err != nil {
			return nil, err
		}
		candidates = []xlsx.Sheet{found}
	}
	var skipped []string
	for _, s := range candidates {
		f, err := openSheet(wb, s, o)
		// A sheet of one column is a note to the reader, unless it is the only one.
		if err == nil && len(f.columns) < 2 && len(candidates) > 1 || errors.Is(err, errNoNames) {
			skipped = append(skipped, s.Name)
			continue
		}
		if titles, ok := errors.AsType[*TitleRowsError](err); ok && o.Sheet == "" && len(visible) > 1 {
			return nil, &TitleRowsError{titles.HeaderLine, s.Name} // the line of another sheet is another row
		}
		if err != nil {
			return nil, err
		}
		f.info.SkippedSheets = skipped
		f.info.OtherSheets = sheetNames(slices.DeleteFunc(visible, func(v xlsx.Sheet) bool { return v == s }))
		return f, nil
	}
	if len(candidates) == 0 {
		return nil, &FormatError{"the spreadsheet has no sheet of cells that is not hidden: show one"}
	}
	if len(candidates) > 1 {
		return nil, &FormatError{fmt.Sprintf("no sheet has a row of names of columns: put one above the rows, or name the sheet that holds the places with --sheet; there are %q", sheetNames(candidates))}
	}
	return nil, errNoNames
}

// asOwnError turns the error of a spreadsheet into a *FormatError of this package, and returns any other unchanged.
func asOwnError(err error) error {
	if e, ok := errors.AsType[*xlsx.FormatError](err); ok {
		return &FormatError{e.Reason}
	}
	return err
}

// findSheet is the sheet of a name, hidden or not, or of a number among those that are not hidden.
func findSheet(sheets []xlsx.Sheet, name string) (xlsx.Sheet, error) {
	for _, s := range sheets {
		if strings.EqualFold(strings.TrimSpace(s.Name), strings.TrimSpace(name)) {
			return s, nil
		}
	}
	visible := slices.DeleteFunc(sheets, func(s xlsx.Sheet) bool { return s.IsHidden })
	if n, err := strconv.Atoi(name); err == nil && n >= 1 && n <= len(visible) {
		return visible[n-1], nil
	}
	return xlsx.Sheet{}, &FormatError{fmt.Sprintf("no sheet is called %q; there are %q", name, sheetNames(visible))}
}

// sheetNames is the names of sheets, for sentences and Info.
func sheetNames(sheets []xlsx.Sheet) []string {
	names := make([]string, len(sheets))
	for i, s := range sheets {
		names[i] = s.Name
	}
	return names
}

// openSheet finds the row of names of a sheet. Its width is known then: only the first rows are read in their full width.
func openSheet(wb *xlsx.Workbook, s xlsx.Sheet, o Options) (*File, error) {
	r := &sheetRows{workbook: wb, sheet: s, width: xlsx.MaxColumns, info: &Info{}, filled: -1}
	f, err := openTable(r.yieldRecords, o, Info{Format: XLSX, Sheet: s.Name})
	if err != nil {
		return nil, err
	}
	r.width, r.info = len(f.columns), &f.info
	return f, nil
}

// sheetRows are the rows of a sheet as records.
type sheetRows struct {
	workbook *xlsx.Workbook
	sheet    xlsx.Sheet
	width    int   // columns that are read
	info     *Info // of the file
	filled   int   // rows up to the last one that is not empty; -1 while unknown
}

// yieldRecords yields the rows as records. Each run counts in info what the rows lack: cells beyond the width, hidden
// rows, formulas without a value. The first run that comes to the end learns which row is the last that is not empty, and later ones
// stop there: a sheet may have a million rows that were formatted and never filled.
func (r *sheetRows) yieldRecords(yield func(Record, error) bool) {
	info, n, filled := r.info, 0, 0
	info.UncomputedFormulas, info.CellsBeyondHeader, info.HiddenRows = Count{}, Count{}, Count{}
	for row, err := range r.workbook.Rows(r.sheet, r.width) {
		if err != nil {
			yield(Record{}, asOwnError(err))
			return
		}
		record := Record{Line: row.Number, Values: textValues(row.Cells), Uncomputed: row.Uncomputed}
		isEmpty := isBlank(record.Values)
		if n++; !isEmpty || len(row.Uncomputed)+row.Beyond > 0 || row.IsHidden {
			filled = n
		}
		info.countRow(row)
		if !isEmpty && !yield(record, nil) || n == r.filled {
			return
		}
	}
	r.filled = filled
}

// countRow counts the defects of a row of a sheet.
func (info *Info) countRow(row xlsx.Row) {
	info.UncomputedFormulas.addSeveral(row.Number, len(row.Uncomputed))
	if row.Number > info.HeaderLine {
		info.CellsBeyondHeader.addSeveral(row.Number, row.Beyond)
	}
	if row.IsHidden {
		info.HiddenRows.Add(row.Number)
	}
}

func textValues(cells []string) []Value {
	values := make([]Value, len(cells))
	for i, cell := range cells {
		values[i].Text = cell
	}
	return values
}
