// Package record reads the files in which companies keep their sites, as records: rows of a table, or objects of JSON. It knows
// cells, but not their meaning: its callers decide which column holds a name or a position.
//
// Memory does not grow with a file. Open finds the format by the bytes. A text passes as UTF-8 from text.open
// to csvReader or jsonScanner; a spreadsheet comes as rows from package xlsx. A table finds the row of names in rows, and a flattener
// makes columns of the members of objects. Records runs this chain anew each time that it is ranged over:
//
//	io.ReaderAt --> text --> csvReader -------> table ------> Record
//	           |       `---> jsonScanner -----> flattener --> Record
//	           `--> xlsx.Workbook.Rows -------> table ------> Record
//
// Files are hostile until read: every part that must be in memory whole (a record, the texts that sheets share, the columns) has a
// bound, and an error says what exceeds it.
//
// encoding/csv does not serve here for the reasons that package csvfile gives, and encoding/json for those at jsonScanner.
package record

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
)

// Value is a cell of a table or a member of a JSON object.
type Value struct {
	Text string          // the unchanged cell, a JSON string's text, or the literal of a JSON number or bool; "" if empty or null
	JSON json.RawMessage // the JSON value if it is not a string: number, bool, list, object; nil for cells, strings and null
}

// Record is a row, or an object of JSON. Values[i] belongs to Columns()[i]; there may be fewer values than columns.
type Record struct {
	Line   int // the line of the file on which it begins, from 1; the number of the row in a spreadsheet
	Values []Value

	Uncomputed []int // of a spreadsheet: the columns of formulas without a value, which are empty here but not for their author
}

// ColumnKind is the kind of the values of a column.
type ColumnKind int

// The kinds. FeatureID is the id of a GeoJSON feature, or the name under which an object of objects holds a record. Geometry is the
// geometry of a GeoJSON feature, as Value.JSON.
const (
	Property ColumnKind = iota // a cell, or a member of an object
	FeatureID
	Geometry
)

// Column is a column of a table, or the members of one name of objects. Two columns may share a name.
type Column struct {
	Name string // as in the file, without the spaces around it; members of members are joined: adresse.ligne_1
	Kind ColumnKind
}

// Options set what Open would otherwise detect. The zero value detects everything.
type Options struct {
	Sheet      string // of a spreadsheet: its name, or its number from 1
	Separator  rune   // of a CSV file; an ASCII character
	Encoding   string // of a text; one of Encodings()
	HeaderLine int    // the line, or the row of the sheet, that holds the names, the lines above it being skipped; or NoHeader
}

// NoHeader is the HeaderLine of a table without a row of names. Its columns are called colonne_1, colonne_2 and so on.
const NoHeader = -1

// Count is how often something was found, and the line of the first.
type Count struct{ Number, Line int }

// Add counts one more on a line.
func (c *Count) Add(line int) { c.addSeveral(line, 1) }

// addSeveral counts n more on a line.
func (c *Count) addSeveral(line, n int) {
	if c.Number == 0 && n > 0 {
		c.Line = line
	}
	c.Number += n
}

// The formats, as Info has them.
const (
	CSV     = "CSV"
	XLSX    = "XLSX"
	JSON    = "JSON"   // a list of objects, or an object that holds one
	NDJSON  = "NDJSON" // objects or features one after the other
	GeoJSON = "GeoJSON"
)

// Info describes a file. Counts are complete after the first whole run of Records.
type Info struct {
	Format    string
	Encoding  string // of a text: one of Encodings()
	Separator rune   // of CSV; 0 if the file has one column

	Sheet         string   // of XLSX: the sheet that is read
	OtherSheets   []string // the other sheets that are not hidden
	SkippedSheets []string // the sheets before Sheet that have no row of names

	HeaderLine       int // of a table: the line of the names
	TitleRows        int // rows above it, skipped because Options name HeaderLine
	SecondHeaderLine int // a second row of names below it, skipped; 0 if there is none

	List       string   // of JSON: the members that lead to the list that is read: data.results; "" for the outermost
	OtherLists []string // the other lists of objects, which are not read
	CRS        string   // GeoJSON's crs member: urn:ogc:def:crs:EPSG::2154; "" without one

	BrokenCharacters    Count // bytes that are not UTF-8 in a file of UTF-8; they are read as Windows-1252, or as U+FFFD if cut
	WrongDecoding       Count // characters such as Ã© that stand for another, because UTF-8 was once read as Windows-1252
	WrongDecodingUndone bool  // the whole file was decoded wrongly, and this is undone
	RepeatedHeaders     Count // rows that repeat the names, skipped
	CellsBeyondHeader   Count // cells of a spreadsheet far below the first rows and to the right of all columns, skipped
	HiddenRows          Count // rows of a spreadsheet that are hidden, as by a filter; they are read
	UncomputedFormulas  Count // formulas without a value: the program that wrote the spreadsheet did not compute them
	NullGeometries      Count // features without a geometry
}

// LineError is a line of a file that cannot be read, with the reason and advice for the user. The first line is 1.
type LineError struct {
	Line   int
	Reason string
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// NoNamesError is a table whose first line does not hold the names of columns. NoHeader makes it readable.
type NoNamesError struct{ *LineError }

func (e *NoNamesError) Unwrap() error { return e.LineError }

// FormatError is why this package cannot read a file, with advice for the user.
type FormatError struct{ Reason string }

func (e *FormatError) Error() string { return e.Reason }

// TitleRowsError is a table whose row of names has other rows above it. Options.HeaderLine would skip them.
type TitleRowsError struct {
	HeaderLine int
	Sheet      string // of a spreadsheet of several; "" for the only one, or the one that Options name
}

func (e *TitleRowsError) Error() string {
	return fmt.Sprintf("titles stand above the row of names, which seems to be line %d: "+
		"take the lines above it out, or say which line holds the names", e.HeaderLine)
}

// File is a file whose format is known. It is not safe for concurrent use.
type File struct {
	info    Info
	columns []Column
	records iter.Seq2[Record, error]
	table   *table // of CSV and spreadsheets
}

// Open detects the format of a file. It reads a text once from end to end, because one byte can decide the encoding. name is the
// file's name, which decides if the bytes do not; it may be empty. Errors are *FormatError, *LineError, *TitleRowsError and those of
// file. A file with names but without rows is valid.
func Open(file io.ReaderAt, size int64, name string, o Options) (*File, error) {
	start := make([]byte, min(size, detectBytes))
	if _, err := file.ReadAt(start, 0); err != nil && err != io.EOF {
		return nil, err
	}
	// The first bytes identify spreadsheets and other binary files; only a text has an encoding.
	if isZip(start) {
		return openXLSX(file, size, o)
	}
	if reason := detectUnsupported(start); reason != "" {
		return nil, &FormatError{reason}
	}
	if o.Sheet != "" {
		return nil, &FormatError{fmt.Sprintf("this file has no sheets, so there is no sheet %q: leave it out", o.Sheet)}
	}
	text, err := openText(io.NewSectionReader(file, 0, size), o.Encoding)
	if err != nil {
		return nil, err
	}
	switch beginning, err := text.beginning(); {
	case err != nil:
		return nil, err
	case isJSON(beginning, name):
		return openJSON(text, name)
	default:
		return openCSV(text, beginning, o)
	}
}

// Columns are the columns of the file. Those of CSV and XLSX are complete at once. Those of JSON grow while Records runs, and are
// complete after the first whole run; a column keeps its index.
func (f *File) Columns() []Column { return slices.Clone(f.columns) }

// Info is what was found in the file so far.
func (f *File) Info() Info { return f.info }

// Records are the records of the file, in its order. An error is the last element: *LineError, *FormatError or an error of the file.
// Each run reads the file again and yields the same. Rows without any text are skipped. The caller may keep the records.
func (f *File) Records() iter.Seq2[Record, error] { return f.records }
