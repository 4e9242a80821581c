package sitefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// geoJSONFeature is a site of a FeatureCollection.
type geoJSONFeature struct {
	ID         json.RawMessage            `json:"id"`
	Properties map[string]json.RawMessage `json:"properties"`
	Geometry   *struct {
		Type        string            `json:"type"`
		Coordinates []json.RawMessage `json:"coordinates"`
	} `json:"geometry"`
}

// readGeoJSON reads a FeatureCollection, one feature after the other.
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
	if _, err := d.Token(); err != nil { // the closing one: a file that was cut short has none
		return nil, jsonLineError(line(), err)
	}
	return rows, nil
}

func jsonLineError(line int, err error) error {
	if _, ok := errors.AsType[*LineError](err); ok {
		return err
	}
	return &LineError{line, fmt.Sprintf("the JSON breaks off or is wrong here: %v", err)}
}

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

// parseRow is the site of a feature. Its geometry says where it is: that is what is moved on a map. Geographic programs write
// null for what was not said.
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
	text, err := marshalJSON(fields)
	return Row{line, text}, err
}

// idAsString is the id of a feature, which may be a number there.
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
