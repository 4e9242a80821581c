package sitefile

import (
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"lieudit/http/csvfile"
	"lieudit/http/kit"
	"lieudit/http/sitefile/clean"
	"lieudit/http/sitefile/mapping"
	"lieudit/http/sitefile/record"
	"lieudit/queries/locations/geocode"
	"lieudit/schemas/body"
	"lieudit/schemas/locations"
)

// Format is a file format for sites.
type Format = kit.Format[locations.Site]

// Writer writes sites, one by one. A GeoJSON file is complete only after Finish.
type Writer = kit.RowWriter[locations.Site]

// The formats that are JSON: a FeatureCollection, and one object per line.
var (
	GeoJSON = Format{MediaType: "application/geo+json", NewWriter: newGeoJSONWriter}
	NDJSON  = Format{MediaType: "application/x-ndjson", NewWriter: func(w io.Writer) Writer {
		return &kit.JSONRows[locations.Site]{Out: w, Encode: kit.EncodeLine[locations.Site]}
	}}
)

func newGeoJSONWriter(w io.Writer) Writer {
	return &kit.JSONRows[locations.Site]{
		Out: w, Prefix: `{"type":"FeatureCollection","features":[`, Separator: ",", Suffix: "\n]}\n", Encode: encodeFeature,
	}
}

// encodeFeature encodes a site as a line of a FeatureCollection. The line begins with its newline, so that separators end lines.
func encodeFeature(s locations.Site) ([]byte, error) {
	text, err := kit.MarshalJSON(body.LocationFeature{FeatureGeometry: body.NewFeatureGeometry(s.Lat, s.Lon), Properties: body.FoundSite{Site: s}})
	return append([]byte("\n"), text...), err
}

// CSV is the format of a CSV file in a dialect.
func CSV(d csvfile.Dialect) Format {
	return Format{MediaType: csvfile.MediaType, NewWriter: func(w io.Writer) Writer { return newCSVWriter(d, w) }}
}

// csvColumns are the members of a site that a file holds, in the order in which they are written: all that a customer sets, and
// how the position was found. an import does not read the latter.
var csvColumns = []string{
	"external_id", "nom", "ligne_1", "ligne_2", "code_postal", "commune", "code_insee", "pays", "id_ban", "lat", "lon",
	"position_source", "geocode_score", "geocode_precision", "horaires", "telephone", "email", "site_web", "tags", "proprietes",
}

// csvWriter is a Writer of a CSV file. Its texts are those of csvfile.EscapeFormula, so that no spreadsheet runs one, and Read
// removes what that adds. Its numbers are unchanged.
type csvWriter struct {
	out     *csvfile.ExactWriter
	dialect csvfile.Dialect
}

// newCSVWriter begins with the row of column names.
func newCSVWriter(d csvfile.Dialect, out io.Writer) csvWriter {
	w := csvWriter{d.NewExactWriter(out), d}
	w.out.WriteRow(csvColumns...) // an error of it comes back from Flush
	return w
}

// WriteRow implements Writer. Its cells are in the order of csvColumns.
func (w csvWriter) WriteRow(s locations.Site) error {
	a := s.Address
	if a == nil {
		a = &locations.SiteAddress{}
	}
	text := csvfile.EscapeFormula
	return w.out.WriteRow(
		text(s.ExternalID), text(s.Name), text(a.Line1), text(a.Line2), text(a.PostalCode), text(a.City), text(a.InseeCode), text(a.Country), text(s.IDBan),
		w.formatDegrees(s.Lat), w.formatDegrees(s.Lon), string(s.Source), w.formatScore(s.Score), string(s.Precision),
		text(formatJSON(s.Hours)), text(s.Phone), text(s.Email), text(s.Website), text(formatTags(s.Tags)), text(formatJSON(s.Properties)),
	)
}

// Finish implements Writer.
func (w csvWriter) Finish() error { return w.out.Flush() }

// formatDegrees writes the shortest decimal that reads back as the same float64; "" for nil.
func (w csvWriter) formatDegrees(x *float64) string {
	if x == nil {
		return ""
	}
	return w.dialect.FormatDecimal(strconv.FormatFloat(*x, 'f', -1, 64))
}

// formatScore leaves out the score of a site that was not geocoded, which is 0.
func (w csvWriter) formatScore(x float64) string {
	if x == 0 {
		return ""
	}
	return w.formatDegrees(&x)
}

// formatJSON is JSON in a cell, without spaces; "" if there is no JSON.
func formatJSON(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	text, err := kit.MarshalJSON(raw)
	if err != nil { // cannot happen: the API checked that it is JSON when it was sent
		return string(raw)
	}
	return string(text)
}

// formatTags writes tags in a cell: separated by commas, which people read best, or as a JSON list if parseTags would read that
// differently.
func formatTags(tags []string) string {
	if slices.ContainsFunc(tags, func(t string) bool {
		return strings.ContainsAny(t, ",|") || strings.HasPrefix(t, "[") || strings.TrimSpace(t) != t
	}) {
		text, _ := kit.MarshalJSON(tags) // strings always encode
		return string(text)
	}
	return strings.Join(tags, ",")
}

// fillExported puts the values of an exported record into a site unchanged, since the service stored them.
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

// exportedAddress is the address of an exported record. Some programs write an object of JSON as a text. A spreadsheet drops the zeros
// of codes, and pandas appends .0 to them.
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

// exportAgain advises what to do about a file whose values a program has changed.
const exportAgain = "export again, and open the file with all columns as text"

func (b *builder) restoreCode(code *string, f mapping.Field, parse func(string) (string, bool)) {
	if restored, ok := parse(*code); ok && restored != *code && len(*code) != len(restored) {
		b.recordFix(clean.PostcodeZero, b.columns[f][0], *code, restored)
		*code = restored
	}
}

// unescapeCell is the text of a column as it was exported: without the apostrophe that keeps a spreadsheet from reading a formula. A file of
// JSON has it too if it was made from an exported table.
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
