// Package sitefile writes sites as files and reads them back: CSV, GeoJSON and newline-delimited JSON. What is written
// and read again says of every site what was said before; of what people write, it takes what can be meant.
package sitefile

import (
	"bytes"
	"encoding/json"
	"io"

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
