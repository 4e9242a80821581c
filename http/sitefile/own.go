package sitefile

import (
	"encoding/json"
	"strings"

	"lieudit/http/csvfile"
	"lieudit/http/kit"
	"lieudit/http/sitefile/clean"
	"lieudit/http/sitefile/mapping"
	"lieudit/http/sitefile/record"
	"lieudit/queries/locations/geocode"
	"lieudit/schemas/locations"
)

// fillExported puts the values of an exported record into a site, exactly as they are: they are what the service stored.
func (b *builder) fillExported(s *Site) {
	exact := func(f mapping.Field) string {
		if list := b.columns[f]; len(list) > 0 {
			return b.unescapeCell(list[0])
		}
		return ""
	}
	c := &s.Content
	c.Name, c.IDBan, c.Phone, c.Email, c.Website = exact(mapping.Name), exact(mapping.IDBan), exact(mapping.Phone), exact(mapping.Email), exact(mapping.Website)
	c.Address = b.exportedAddress(exact)
	b.fillPosition(c)
	s.IsGeocoded = exact(mapping.PositionSource) == string(locations.SourceBAN)
	c.Hours, c.Tags = b.exportedJSON(mapping.Hours), b.exportedTags()
	for column, t := range b.filledTargets() {
		switch v := b.value(column); {
		case t.Field == mapping.Properties:
			text := b.unescapeCell(column)
			if v.JSON == nil && text != "" && !json.Valid([]byte(text)) {
				b.addFault(column, "proprietes that are no JSON any more", text).advice = exportAgain
			}
			b.properties.merge(record.Value{Text: text, JSON: v.JSON})
		case t.Property == "":
		case v.JSON != nil:
			b.properties.setRaw(t.Property, v.JSON)
		case v.Text != "":
			b.properties.set(t.Property, b.unescapeCell(column))
		}
	}
	c.Properties = b.properties.marshal()
}

// exportedAddress is the address of an exported record. Some programs write an object of JSON as a text. A spreadsheet takes the zero
// from the codes, and pandas puts .0 behind them.
func (b *builder) exportedAddress(exact func(mapping.Field) string) *locations.SiteAddress {
	a := locations.SiteAddress{
		Line1: exact(mapping.Line1), Line2: exact(mapping.Line2), PostalCode: exact(mapping.PostalCode), City: exact(mapping.City),
		InseeCode: exact(mapping.InseeCode), Country: exact(mapping.Country),
	}
	if text := exact(mapping.Address); text != "" && json.Unmarshal([]byte(text), &a) != nil {
		b.addFault(b.columns[mapping.Address][0], "an address that is no object of JSON any more", text).advice = exportAgain
	}
	if a == (locations.SiteAddress{}) {
		return nil
	}
	if b.isTable() && geocode.IsFrenchCountry(a.Country) {
		b.restoreCode(&a.PostalCode, mapping.PostalCode, clean.Postcode)
		b.restoreCode(&a.InseeCode, mapping.InseeCode, clean.InseeCode)
	}
	return &a
}

// exportAgain is what to do about a file whose values a program has changed.
const exportAgain = "export again, and open the file with all columns as text"

func (b *builder) restoreCode(code *string, f mapping.Field, parse func(string) (string, bool)) {
	if restored, ok := parse(*code); ok && restored != *code && len(*code) != len(restored) {
		b.recordMend(clean.PostcodeZero, b.columns[f][0], *code, restored)
		*code = restored
	}
}

// unescapeCell is the text of a column as it was exported: without the apostrophe that keeps a spreadsheet from reading a formula. A file of
// JSON has it too where it was made of an exported table.
func (b *builder) unescapeCell(column int) string {
	text := b.value(column).Text
	if !b.isTable() && !b.mapping.IsFlatExport {
		return text
	}
	return csvfile.UnescapeFormula(text)
}

// isTable reports whether the values of the file are cells, in which JSON is a text.
func (b *builder) isTable() bool { return isTable(b.info) }

func isTable(info record.Info) bool { return info.Format == record.CSV || info.Format == record.XLSX }

func (b *builder) exportedJSON(f mapping.Field) json.RawMessage {
	list := b.columns[f]
	if len(list) == 0 {
		return nil
	}
	if v := b.value(list[0]); v.JSON != nil {
		return v.JSON
	}
	if text := b.unescapeCell(list[0]); text != "" {
		if (b.isTable() || text[0] == '{') && json.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
		quoted, _ := kit.MarshalJSON(text) // a text always encodes
		return quoted
	}
	return nil
}

func (b *builder) exportedTags() []string {
	list := b.columns[mapping.Tags]
	if len(list) == 0 {
		return nil
	}
	text := b.unescapeCell(list[0])
	if v := b.value(list[0]); v.JSON != nil {
		text = string(v.JSON)
	}
	if strings.HasPrefix(text, "['") || strings.HasPrefix(text, `["['`) {
		b.addFault(list[0], "tags that Python has written as one text", text).advice = exportAgain
	}
	return parseTags(text)
}
