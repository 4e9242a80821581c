// Package roster writes sites as files and reads them back: CSV, GeoJSON and newline-delimited JSON. What is written
// and read again says of every site what was said before; of what people write, it takes what can be meant.
package roster

import (
	"bytes"
	"encoding/json"
	"io"

	"lieudit/http/grid"
	"lieudit/schemas/body"
	"lieudit/schemas/site"
)

// Format is a way to write sites.
type Format struct {
	Media string
	Begin func(io.Writer) Writer
}

// Writer writes sites, one by one. What is not ended is no file of its format, but for CSV and newline-delimited JSON.
type Writer interface {
	Site(site.Site) error
	End() error
}

// The formats.
var (
	GeoJSON = Format{"application/geo+json", func(w io.Writer) Writer { return &features{out: w} }}
	NDJSON  = Format{"application/x-ndjson", func(w io.Writer) Writer { return lines{w} }}
)

// CSV is the format of a sheet.
func CSV(f grid.Form) Format {
	return Format{"text/csv; charset=utf-8", func(w io.Writer) Writer { return newSheet(f, w) }}
}

// lines are sites as JSON, one a line.
type lines struct{ out io.Writer }

func (l lines) Site(s site.Site) error {
	text, err := encode(s)
	if err == nil {
		_, err = l.out.Write(append(text, '\n'))
	}
	return err
}

func (l lines) End() error { return nil }

// features are sites as a FeatureCollection.
type features struct {
	out   io.Writer
	begun bool
}

func (f *features) lead(then string) string {
	if f.begun {
		return then
	}
	f.begun = true
	return `{"type":"FeatureCollection","features":[`
}

func (f *features) Site(s site.Site) error {
	text, err := encode(body.LocationFeature{Placed: body.PlacedAt(s.Lat, s.Lon), Properties: body.FoundSite{Site: s}})
	if err != nil {
		return err
	}
	_, err = io.WriteString(f.out, f.lead(",")+"\n"+string(text))
	return err
}

func (f *features) End() error {
	_, err := io.WriteString(f.out, f.lead("")+"\n]}\n")
	return err
}

// encode is JSON as answers have it: without what only HTML needs.
func encode(v any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}
