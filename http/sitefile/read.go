package sitefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"lieudit/http/kit"
)

// Row is a site of a file, as the JSON that a sync takes, and the line that it begins on.
type Row struct {
	Line int // the first is 1
	JSON json.RawMessage
}

// LineError is a line of a file that cannot be read, and why. The first line is 1.
type LineError struct {
	Line   int
	Reason string
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// ErrEmpty: the file has no content.
var ErrEmpty = errors.New("the file is empty")

// Read reads the sites of a file, in the order of the file. It detects the format from the content: CSV, GeoJSON or NDJSON, with
// or without a byte order mark. Columns of a CSV file that ignored names are skipped; any other column that is no member of a
// site is an error. Whether a site keeps the rules of its members is not checked here: the service does that. The whole file is
// in memory, and rows may refer to file. Errors are ErrEmpty, *LineError or *csvfile.UnclosedQuoteError.
func Read(file []byte, ignored ...string) ([]Row, error) {
	text := bytes.TrimPrefix(file, []byte("\ufeff"))
	if reason := detectUnsupported(text); reason != "" {
		return nil, &LineError{1, reason}
	}
	switch first := bytes.TrimSpace(text); {
	case len(first) == 0:
		return nil, ErrEmpty
	case first[0] == '[':
		return nil, &LineError{1, "this is a list of JSON; write one object a line, or a FeatureCollection"}
	case first[0] != '{':
		return readCSV(decodeToUTF8(text), ignored)
	case !utf8.Valid(text):
		return nil, &LineError{1, "JSON is UTF-8, this is not"}
	case isFeatureCollection(first):
		return readGeoJSON(text)
	}
	return readNDJSON(text)
}

// detectUnsupported recognizes files of other formats by their first bytes. It returns what the file is and what its user can do;
// "": it may be in a format that Read reads.
func detectUnsupported(text []byte) string {
	switch {
	case bytes.HasPrefix(text, []byte("\x1f\x8b")):
		return "it is compressed with gzip; unpack it first"
	case bytes.HasPrefix(text, []byte("PK\x03\x04")):
		return "it is a spreadsheet or a zip archive; save it as CSV"
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		return "it is UTF-16; save it as UTF-8"
	}
	return ""
}

// decodeToUTF8 is the text of a CSV file: UTF-8, else Windows-1252, which a French Excel writes. Text in Windows-1252 with any
// accent is almost never valid UTF-8, so the guess is safe.
func decodeToUTF8(text []byte) string {
	if utf8.Valid(text) {
		return string(text)
	}
	utf8Text, err := charmap.Windows1252.NewDecoder().Bytes(text)
	if err != nil {
		return strings.ToValidUTF8(string(text), "\ufffd")
	}
	return string(utf8Text)
}

// isFeatureCollection reports whether an object is a FeatureCollection: by its type, or because it has features. If not, the file
// is NDJSON. The object may be cut short; readGeoJSON reports where.
func isFeatureCollection(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return false
	}
	for d.More() {
		name, err := d.Token()
		if err != nil || name == "features" {
			return err == nil
		}
		var value json.RawMessage
		if d.Decode(&value) != nil || name == "type" {
			return string(value) == `"FeatureCollection"`
		}
	}
	return false
}

// readNDJSON reads one object a line. Empty lines are skipped, but counted. The JSON of a row is the line itself, not a copy.
func readNDJSON(text []byte) ([]Row, error) {
	var rows []Row
	n := 0
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0:
		case line[0] != '{' || !json.Valid(line):
			return nil, &LineError{n, "this is no JSON object"}
		default:
			rows = append(rows, Row{n, line})
		}
	}
	return rows, nil
}

// geoJSONFeature is a feature of a FeatureCollection. Its parts stay JSON as far as they go into a Row unchanged. Coordinates are
// longitude, latitude, and perhaps an altitude, which is dropped.
type geoJSONFeature struct {
	ID         json.RawMessage            `json:"id"`
	Properties map[string]json.RawMessage `json:"properties"`
	Geometry   *struct {
		Type        string            `json:"type"`
		Coordinates []json.RawMessage `json:"coordinates"`
	} `json:"geometry"`
}

// readGeoJSON reads a FeatureCollection, one feature after the other. Members other than features are skipped.
func readGeoJSON(text []byte) ([]Row, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	line := func() int { return 1 + bytes.Count(text[:d.InputOffset()], []byte("\n")) }
	var rows []Row
	if _, err := d.Token(); err != nil { // the opening brace
		return nil, &LineError{line(), err.Error()}
	}
	for d.More() {
		name, err := d.Token()
		switch {
		case err != nil:
		case name == "features":
			rows, err = readFeatureList(d, text)
		default:
			var other json.RawMessage
			err = d.Decode(&other)
		}
		if err != nil {
			return nil, jsonLineError(line(), err)
		}
	}
	if _, err := d.Token(); err != nil { // the closing brace; a file that was cut short has none
		return nil, jsonLineError(line(), err)
	}
	return rows, nil
}

// jsonLineError is err as a *LineError for the line where JSON ends or is wrong. A *LineError is returned as it is.
func jsonLineError(line int, err error) error {
	if _, ok := errors.AsType[*LineError](err); ok {
		return err
	}
	return &LineError{line, fmt.Sprintf("the JSON breaks off or is wrong here: %v", err)}
}

// readFeatureList reads the features one by one, and counts lines as it goes: a file may have one feature a line, or all in
// one line.
func readFeatureList(d *json.Decoder, text []byte) ([]Row, error) {
	var rows []Row
	if opening, err := d.Token(); err != nil || opening != json.Delim('[') {
		return nil, fmt.Errorf("features is no list (%w)", err)
	}
	line, countedTo := 1, 0
	for d.More() {
		start := int(d.InputOffset())
		start += len(text[start:]) - len(bytes.TrimLeft(text[start:], ", \t\r\n"))
		line, countedTo = line+bytes.Count(text[countedTo:start], []byte("\n")), start
		var f geoJSONFeature
		if err := d.Decode(&f); err != nil {
			return nil, err
		}
		row, err := f.parseRow(line)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	_, err := d.Token()
	return rows, err
}

// parseRow is the site of a feature that begins on a line. Its geometry wins over members lat and lon, because a user who moves a
// site on a map changes the geometry. A feature without a geometry keeps these members. A null is left out: geographic programs
// write it for every member without a value. The id of the feature is the external_id of a site whose members have none.
func (f geoJSONFeature) parseRow(line int) (Row, error) {
	fields := make(map[string]json.RawMessage, len(f.Properties)+2)
	for name, value := range f.Properties {
		if string(value) != "null" {
			fields[name] = value
		}
	}
	if _, ok := fields["external_id"]; !ok && f.ID != nil {
		fields["external_id"] = idAsString(f.ID)
	}
	if g := f.Geometry; g != nil {
		if g.Type != "Point" || len(g.Coordinates) < 2 {
			return Row{}, &LineError{line, "a site is a Point, not a " + g.Type}
		}
		fields["lon"], fields["lat"] = g.Coordinates[0], g.Coordinates[1]
	}
	text, err := kit.MarshalJSON(fields)
	return Row{line, text}, err
}

// idAsString is the id of a feature as a string. GeoJSON allows a number.
func idAsString(id json.RawMessage) json.RawMessage {
	if strings.HasPrefix(string(id), `"`) {
		return id
	}
	text, err := json.Marshal(string(id))
	if err != nil {
		return id
	}
	return text
}
