package roster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// feature is a site of a FeatureCollection.
type feature struct {
	ID         json.RawMessage            `json:"id"`
	Properties map[string]json.RawMessage `json:"properties"`
	Geometry   *struct {
		Type        string            `json:"type"`
		Coordinates []json.RawMessage `json:"coordinates"`
	} `json:"geometry"`
}

// readFeatures reads a FeatureCollection, one feature after the other.
func readFeatures(text []byte) ([]Row, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	at := func() int { return 1 + bytes.Count(text[:d.InputOffset()], []byte("\n")) }
	var rows []Row
	if _, err := d.Token(); err != nil { // the opening brace
		return nil, &LineError{at(), err.Error()}
	}
	for d.More() {
		name, err := d.Token()
		switch {
		case err != nil:
		case name == "features":
			rows, err = eachFeature(d, text)
		default:
			var other json.RawMessage
			err = d.Decode(&other)
		}
		if err != nil {
			return nil, unread(at(), err)
		}
	}
	if _, err := d.Token(); err != nil { // the closing one: a file that was cut short has none
		return nil, unread(at(), err)
	}
	return rows, nil
}

func unread(line int, err error) error {
	if _, ok := errors.AsType[*LineError](err); ok {
		return err
	}
	return &LineError{line, fmt.Sprintf("the JSON breaks off or is wrong here: %v", err)}
}

func eachFeature(d *json.Decoder, text []byte) ([]Row, error) {
	var rows []Row
	if opening, err := d.Token(); err != nil || opening != json.Delim('[') {
		return nil, fmt.Errorf("features is no list (%w)", err)
	}
	line, counted := 1, 0
	for d.More() {
		from := int(d.InputOffset())
		from += len(text[from:]) - len(bytes.TrimLeft(text[from:], ", \t\r\n"))
		line, counted = line+bytes.Count(text[counted:from], []byte("\n")), from
		var f feature
		if err := d.Decode(&f); err != nil {
			return nil, err
		}
		row, err := f.row(line)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	_, err := d.Token()
	return rows, err
}

// row is the site of a feature. Its geometry says where it is: that is what is moved on a map. Geographic programs write
// null for what was not said.
func (f feature) row(line int) (Row, error) {
	facts := make(map[string]json.RawMessage, len(f.Properties)+2)
	for name, value := range f.Properties {
		if string(value) != "null" {
			facts[name] = value
		}
	}
	if _, ok := facts["external_id"]; !ok && f.ID != nil {
		facts["external_id"] = named(f.ID)
	}
	if g := f.Geometry; g != nil {
		if g.Type != "Point" || len(g.Coordinates) < 2 {
			return Row{}, &LineError{line, "a site is a Point, not a " + g.Type}
		}
		facts["lon"], facts["lat"] = g.Coordinates[0], g.Coordinates[1]
	}
	text, err := encode(facts)
	return Row{line, text}, err
}

// named is the id of a feature, which may be a number there.
func named(id json.RawMessage) json.RawMessage {
	if strings.HasPrefix(string(id), `"`) {
		return id
	}
	text, err := json.Marshal(string(id))
	if err != nil {
		return id
	}
	return text
}
