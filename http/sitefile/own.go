package sitefile

import (
	"encoding/json"
	"fmt"
	"strings"

	"lieudit/http/csvfile"
	"lieudit/http/kit"
	"lieudit/http/sitefile/mapping"
	"lieudit/http/sitefile/record"
	"lieudit/schemas/locations"
)

// ParseExport parses an NDJSON export of a referential. The sites are by their external ids.
func ParseExport(export string) (map[string]Site, error) {
	known := map[string]Site{}
	d := json.NewDecoder(strings.NewReader(export))
	for d.More() {
		var s locations.Site
		if err := d.Decode(&s); err != nil {
			return nil, fmt.Errorf("reading the sites of the referential: %w", err)
		}
		known[s.ExternalID] = Site{ExternalID: s.ExternalID, Content: s.Content, Placed: s.Source == locations.SourceBAN}
	}
	return known, nil
}

// IsAt reports whether a site shows the position that a content has.
func (s Site) IsAt(c locations.Content) bool {
	return equalDegrees(s.Content.Lat, c.Lat) && equalDegrees(s.Content.Lon, c.Lon) && s.Content.IDBan == c.IDBan
}

func equalDegrees(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }

// RemovePosition takes the position from a site that was placed by its address, so that it is placed again. Its id_ban goes too,
// unless it is all that the site can be placed by.
func (s *Site) RemovePosition() {
	s.Content.Lat, s.Content.Lon, s.Placed = nil, nil, false
	if a := s.Content.Address; a != nil && *a != (locations.SiteAddress{}) {
		s.Content.IDBan = ""
	}
}

// CountChangedIDs counts the ids that known sites have and the file has not, while it has others that differ only as a spreadsheet
// changes them, and gives one of them as an example.
func (i *Import) CountChangedIDs(known map[string]Site) (n int, example string) {
	inFile := make(map[string]bool, len(i.Sites))
	for _, s := range i.Sites {
		inFile[s.ExternalID] = true
	}
	gone := map[string]string{}
	for id := range known {
		if !inFile[id] {
			gone[foldID(id)] = id
		}
	}
	for _, s := range i.Sites {
		before, isGone := gone[foldID(s.ExternalID)]
		if _, isKnown := known[s.ExternalID]; isKnown || !isGone {
			continue
		}
		if n++; n == 1 {
			example = before + " became " + s.ExternalID
		}
	}
	return n, example
}

// foldID is an id as a spreadsheet may leave it: without leading noughts and a trailing .0, in lower case.
func foldID(id string) string {
	return strings.TrimLeft(strings.TrimSuffix(strings.ToLower(id), ".0"), "0")
}

// fillOwn puts the values of an exported record into a site, exactly as they are: they are what the service stored.
func (b *builder) fillOwn(s *Site) {
	exact := func(f mapping.Field) string {
		if list := b.columns[f]; len(list) > 0 {
			return b.exact(list[0])
		}
		return ""
	}
	c := &s.Content
	c.Name, c.IDBan, c.Phone, c.Email, c.Website = exact(mapping.Name), exact(mapping.IDBan), exact(mapping.Phone), exact(mapping.Email), exact(mapping.Website)
	a := locations.SiteAddress{
		Line1: exact(mapping.Line1), Line2: exact(mapping.Line2), PostalCode: exact(mapping.PostalCode), City: exact(mapping.City),
		InseeCode: exact(mapping.InseeCode), Country: exact(mapping.Country),
	}
	if a != (locations.SiteAddress{}) {
		c.Address = &a
	}
	b.fillPosition(c)
	s.Placed = exact(mapping.Source) == string(locations.SourceBAN)
	c.Hours, c.Tags = b.ownJSON(mapping.Hours), b.ownTags()
	for column, t := range b.mapping.Targets {
		switch v := b.value(column); {
		case t.Field == mapping.Properties:
			b.properties.merge(record.Value{Text: b.exact(column), JSON: v.JSON})
		case t.Property == "":
		case v.JSON != nil:
			b.properties.setRaw(t.Property, v.JSON)
		case v.Text != "":
			b.properties.set(t.Property, b.exact(column))
		}
	}
	c.Properties = b.properties.marshal()
}

// exact is the text of a column as it was exported: without the apostrophe that keeps a spreadsheet from reading a formula.
func (b *builder) exact(column int) string {
	text := b.value(column).Text
	if !b.isTable() {
		return text
	}
	if isShortened(text) {
		f := b.addFault(column, "a number that a spreadsheet has shortened: its last digits are lost", text)
		f.advice = "export again, and open the file with this column as text"
	}
	return csvfile.UnescapeFormula(text)
}

// isTable reports whether the values of the file are cells, in which JSON is a text.
func (b *builder) isTable() bool { return b.info.Format == record.CSV || b.info.Format == record.XLSX }

func (b *builder) ownJSON(f mapping.Field) json.RawMessage {
	list := b.columns[f]
	if len(list) == 0 {
		return nil
	}
	if v := b.value(list[0]); v.JSON != nil {
		return v.JSON
	}
	if text := b.exact(list[0]); text != "" {
		if b.isTable() && json.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
		quoted, _ := kit.MarshalJSON(text) // a text always encodes
		return quoted
	}
	return nil
}

func (b *builder) ownTags() []string {
	list := b.columns[mapping.Tags]
	if len(list) == 0 {
		return nil
	}
	if v := b.value(list[0]); v.JSON != nil {
		return parseTags(string(v.JSON))
	}
	return parseTags(b.exact(list[0]))
}
