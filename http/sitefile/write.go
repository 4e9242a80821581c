package sitefile

import (
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"lieudit/http/csvfile"
	"lieudit/http/kit"
	"lieudit/schemas/body"
	"lieudit/schemas/locations"
)

// Format is a way to write sites as a file.
type Format = kit.Format[locations.Site]

// Writer writes sites, one by one. A GeoJSON file is complete only after Finish.
type Writer = kit.RowWriter[locations.Site]

// The formats that are JSON: a FeatureCollection, and one object a line.
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

// encodeFeature is a site as a line of a FeatureCollection. The line begins with its newline, so that separators end lines.
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
// takes off what that adds. Its numbers are as they are.
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

// formatDegrees writes the shortest decimal that reads back as the same float64; "" for none.
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

// formatJSON is JSON in a cell, without spaces; "" for none.
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

// formatTags is tags in a cell: separated by commas, which people read best, or as a JSON list where parseTags would read that
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
