package record

import (
	"io"

	"golang.org/x/text/encoding"
)

// Separators are the characters that are tried as the separator of a CSV file.
const Separators = ",;\t|"

// Text is the form of a file of text.
type Text struct {
	Format    string            // CSV or JSON, which stands for NDJSON and GeoJSON too
	Encoding  string            // one of Encodings()
	Codec     encoding.Encoding // of Encoding; it reads a byte order mark as a character; nil: UTF-8
	Separator rune              // of CSV; 0: the file has one column
	// NamesSeparator reports whether the first line names the separator, as in "sep=;".
	NamesSeparator bool
}

// DetectText detects the form of a file for callers that read its rows themselves. It looks at the bytes as Open does, once
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
