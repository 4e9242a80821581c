package record

import (
	"bytes"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/encoding"
)

// isZip reports whether a file is a zip archive, as spreadsheets are.
func isZip(start []byte) bool { return bytes.HasPrefix(start, []byte("PK\x03\x04")) }

// binaryFormats are other formats that the first bytes identify, with advice for the user. XLS has the same bytes as a
// spreadsheet with a password, because both are written as small file systems.
var binaryFormats = []struct{ prefix, reason string }{
	{"PK\x05\x06", "this is an empty zip archive"},
	{"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "this is an XLS file, or a spreadsheet with a password: save it as XLSX without a password"},
	{"\x1f\x8b", "this is compressed with gzip: unpack it first"},
	{"BZh", "this is compressed with bzip2: unpack it first"},
	{"\xfd7zXZ\x00", "this is compressed with xz: unpack it first"},
	{"\x28\xb5\x2f\xfd", "this is compressed with zstd: unpack it first"},
	{"7z\xbc\xaf\x27\x1c", "this is a 7z archive: unpack it first"},
	{"Rar!", "this is a RAR archive: unpack it first"},
	{"%PDF", "this is a PDF: ask for the table itself, as CSV or XLSX"},
	{"SQLite format 3\x00", "this is a GeoPackage or another SQLite database: export it as GeoJSON"},
	{"\x00\x00\x27\x0a", "this is a shapefile: export it as GeoJSON"},
	{"PAR1", "this is a Parquet file: export it as CSV or GeoJSON"},
	{"fgb\x03", "this is a FlatGeobuf file: export it as GeoJSON"},
	{"ARROW1", "this is an Arrow file: export it as CSV"},
	{"\x89PNG", "this is a picture: ask for the table itself, as CSV or XLSX"},
	{"\xff\xd8\xff", "this is a picture: ask for the table itself, as CSV or XLSX"},
	{"{\\rtf", "this is an RTF text: save its table as CSV or XLSX"},
	{"BEGIN:VCARD", "these are vCards: save them as CSV"},
	{"ID;P", "this is a SYLK file: save it as CSV or XLSX"},
}

// markupFormats are the formats that begin with a tag, each with a word that identifies it. The last is any other.
var markupFormats = []struct{ word, reason string }{
	{"<kml", "this is KML: export it as GeoJSON"},
	{"<gpx", "this is GPX: export it as GeoJSON"},
	{"<osm", "this is OpenStreetMap's XML: export it as GeoJSON"},
	{"<rss", "this is a news feed: export it as CSV or GeoJSON"},
	{"<gml", "this is GML: export it as GeoJSON"},
	{"featurecollection", "this is GML: export it as GeoJSON"},
	{"urn:schemas-microsoft-com:office:spreadsheet", "this is a spreadsheet in XML of 2003: save it as XLSX"},
	{"<html", "this is a web page, whatever its name ends in: save its table as CSV or XLSX"},
	{"<!doctype html", "this is a web page, whatever its name ends in: save its table as CSV or XLSX"},
	{"<table", "this is a table of a web page, whatever its name ends in: save it as CSV or XLSX"},
	{"<?xml", "this is XML: save it as CSV, XLSX or GeoJSON"},
}

// javaScript begins with an assignment to a name.
var javaScript = regexp.MustCompile(`^((var|let|const|export const)\s+[\w$]+|(window|module)\.[\w.]+|export default)\s*(=|[\[{])`)

// detectUnsupported describes a file of an unsupported format, with advice; "" if the format may be supported.
func detectUnsupported(start []byte) string {
	for _, f := range binaryFormats {
		if bytes.HasPrefix(start, []byte(f.prefix)) {
			return f.reason
		}
	}
	// Zeros and marks are dropped, not decoded: the words to find are ASCII in any encoding.
	plain := strings.ToLower(strings.ReplaceAll(string(start), "\x00", "")) // UTF-16 too
	plain = strings.TrimLeft(plain, "\ufeff\ufffd \t\r\n")
	if javaScript.MatchString(plain) {
		return "this is JavaScript: save what stands behind the sign = as JSON"
	}
	if !strings.HasPrefix(plain, "<") {
		return ""
	}
	for _, f := range markupFormats {
		if strings.Contains(plain, f.word) && (isOpening(f.word) || strings.HasPrefix(plain, "<?xml")) {
			return f.reason
		}
	}
	return ""
}

// isOpening reports whether a word is a tag, unlike the first cell of a table that happens to begin with "<".
func isOpening(word string) bool { return strings.HasPrefix(word, "<") }

// isJSON reports whether a text is JSON, by its first characters. The first cell of a table may begin with a bracket too, so a file that is
// called a table must begin with an object.
func isJSON(beginning []byte, name string) bool {
	first := bytes.TrimLeft(beginning, "\x1e \t\r\n\ufeff")
	if len(first) < 2 {
		return false
	}
	second := bytes.TrimLeft(first[1:], " \t\r\n")
	begins := func(signs string) bool { return len(second) > 0 && strings.IndexByte(signs, second[0]) >= 0 }
	switch ext := strings.ToLower(path.Ext(name)); {
	case ext == ".csv" || ext == ".tsv" || ext == ".tab":
		return first[0] == '{' && begins(`"`) && bytes.Contains(first, []byte(`":`)) || first[0] == '[' && begins("{")
	case first[0] == '{':
		return true
	case first[0] != '[':
		return false
	}
	isLiteral := func(literal string) bool { return bytes.HasPrefix(second, []byte(literal)) }
	return begins(`{[]"-0123456789`) || slices.ContainsFunc([]string{"null", "true", "false", "NaN"}, isLiteral)
}

// Separators are the possible separators of a CSV file.
const Separators = ",;\t|"

// Text is the form of a file of text.
type Text struct {
	Format    string            // CSV or JSON, which stands for NDJSON and GeoJSON too
	Encoding  string            // one of Encodings()
	Codec     encoding.Encoding // of Encoding; it reads a byte order mark as a character; nil means UTF-8
	Separator rune              // of CSV; 0 if the file has one column
	// NamesSeparator reports whether the first line names the separator, as in "sep=;".
	NamesSeparator bool
}

// DetectText detects the form of a file for callers that read its rows themselves. Like Open it reads the bytes once
// from end to end. encodingName is one of Encodings(), or empty: the encoding is detected. A spreadsheet, a binary file and an empty
// file are a *FormatError.
func DetectText(file io.ReaderAt, size int64, name, encodingName string) (Text, error) {
	start := make([]byte, min(size, detectBytes))
	if _, err := file.ReadAt(start, 0); err != nil && err != io.EOF {
		return Text{}, err
	}
	reason := detectUnsupported(start)
	if isZip(start) {
		reason = "this is a spreadsheet or another zip archive: save it as CSV"
	}
	if reason != "" {
		return Text{}, &FormatError{reason}
	}
	text, err := openText(io.NewSectionReader(file, 0, size), encodingName)
	if err != nil {
		return Text{}, err
	}
	beginning, err := text.beginning()
	if err != nil {
		return Text{}, err
	}
	found := Text{Format: CSV, Encoding: text.coding.name, Codec: text.coding.codec}
	if isJSON(beginning, name) {
		found.Format = JSON
		return found, nil
	}
	separator, namesSeparator := detectDialect(beginning)
	found.Separator, found.NamesSeparator = rune(separator), namesSeparator
	return found, nil
}
