// Package sitefile writes sites as files and reads them back: CSV, GeoJSON and newline-delimited JSON. What is written
// and read again says of every site what was said before; of what people write, it takes what can be meant.
package sitefile

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"lieudit/http/csvfile"
	"lieudit/schemas/body"
	"lieudit/schemas/locations"
)

// Format is a way to write sites.
type Format struct {
	MediaType string
	NewWriter func(io.Writer) Writer
}

// Writer writes sites, one by one. What is not ended is no file of its format, but for CSV and newline-delimited JSON.
type Writer interface {
	WriteSite(locations.Site) error
	Finish() error
}

// The formats.
var (
	GeoJSON = Format{"application/geo+json", func(w io.Writer) Writer { return &geoJSONWriter{out: w} }}
	NDJSON  = Format{"application/x-ndjson", func(w io.Writer) Writer { return ndjsonWriter{w} }}
)

// CSV is the format of a sheet.
func CSV(f csvfile.Dialect) Format {
	return Format{"text/csv; charset=utf-8", func(w io.Writer) Writer { return newCSVWriter(f, w) }}
}

// ndjsonWriter are sites as JSON, one a line.
type ndjsonWriter struct{ out io.Writer }

func (l ndjsonWriter) WriteSite(s locations.Site) error {
	text, err := marshalJSON(s)
	if err == nil {
		_, err = l.out.Write(append(text, '\n'))
	}
	return err
}

func (l ndjsonWriter) Finish() error { return nil }

// geoJSONWriter are sites as a FeatureCollection.
type geoJSONWriter struct {
	out      io.Writer
	hasSites bool
}

func (f *geoJSONWriter) prefix(separator string) string {
	if f.hasSites {
		return separator
	}
	f.hasSites = true
	return `{"type":"FeatureCollection","features":[`
}

func (f *geoJSONWriter) WriteSite(s locations.Site) error {
	text, err := marshalJSON(body.LocationFeature{FeatureGeometry: body.NewFeatureGeometry(s.Lat, s.Lon), Properties: body.FoundSite{Site: s}})
	if err != nil {
		return err
	}
	_, err = io.WriteString(f.out, f.prefix(",")+"\n"+string(text))
	return err
}

func (f *geoJSONWriter) Finish() error {
	_, err := io.WriteString(f.out, f.prefix("")+"\n]}\n")
	return err
}

// marshalJSON is JSON as answers have it: without what only HTML needs.
func marshalJSON(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

// csvColumns are the facts of a site, in the order they are written.
var csvColumns = []string{
	"external_id", "nom", "ligne_1", "ligne_2", "code_postal", "commune", "code_insee", "pays", "id_ban", "lat", "lon",
	"position_source", "geocode_score", "horaires", "telephone", "email", "site_web", "tags", "proprietes",
}

// csvWriter are sites as the rows of a csvWriter.
type csvWriter struct {
	out     *csvfile.ExactWriter
	dialect csvfile.Dialect
}

func newCSVWriter(f csvfile.Dialect, out io.Writer) csvWriter {
	s := csvWriter{f.NewExactWriter(out), f}
	s.out.WriteRow(csvColumns...) // should it fail, so will Flush
	return s
}

func (t csvWriter) WriteSite(s locations.Site) error {
	a := s.Address
	if a == nil {
		a = &locations.SiteAddress{}
	}
	return t.out.WriteRow(
		s.ExternalID, s.Name, a.Line1, a.Line2, a.PostalCode, a.City, a.InseeCode, a.Country, s.IDBan, t.formatDegrees(s.Lat), t.formatDegrees(s.Lon),
		string(s.Source), t.formatScore(s.Score), formatJSON(s.Hours), s.Phone, s.Email, s.Website, formatTags(s.Tags), formatJSON(s.Properties),
	)
}

func (t csvWriter) Finish() error { return t.out.Flush() }

func (t csvWriter) formatDegrees(x *float64) string {
	if x == nil {
		return ""
	}
	return t.dialect.FormatDecimal(strconv.FormatFloat(*x, 'f', -1, 64))
}

func (t csvWriter) formatScore(x float64) string {
	if x == 0 {
		return ""
	}
	return t.formatDegrees(&x)
}

// formatJSON is JSON in a cell.
func formatJSON(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	text, err := marshalJSON(raw)
	if err != nil { // it was JSON when it came in
		return string(raw)
	}
	return string(text)
}

// formatTags is tags in a cell: with commas between them, or as JSON where that would be read otherwise.
func formatTags(tags []string) string {
	if slices.ContainsFunc(tags, func(t string) bool {
		return strings.ContainsAny(t, ",|") || strings.HasPrefix(t, "[") || strings.TrimSpace(t) != t
	}) {
		text, _ := marshalJSON(tags) // strings always encode
		return string(text)
	}
	return strings.Join(tags, ",")
}
