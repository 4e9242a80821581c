package sitefile

import (
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"lieudit/http/csvfile"
	"lieudit/schemas/locations"
)

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
