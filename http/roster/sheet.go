package roster

import (
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"lieudit/http/grid"
	"lieudit/schemas/site"
)

// columns are the facts of a site, in the order they are written.
var columns = []string{
	"external_id", "nom", "ligne_1", "ligne_2", "code_postal", "commune", "code_insee", "pays", "id_ban", "lat", "lon",
	"position_source", "geocode_score", "horaires", "telephone", "email", "site_web", "tags", "proprietes",
}

// sheet are sites as the rows of a sheet.
type sheet struct {
	grid *grid.Exact
	form grid.Form
}

func newSheet(f grid.Form, out io.Writer) sheet {
	s := sheet{f.Exact(out), f}
	s.grid.Row(columns...) // should it fail, so will Flush
	return s
}

func (t sheet) Site(s site.Site) error {
	a := s.Address
	if a == nil {
		a = &site.Address{}
	}
	return t.grid.Row(
		s.ExternalID, s.Name, a.Line1, a.Line2, a.PostalCode, a.City, a.InseeCode, a.Country, s.IDBan, t.degrees(s.Lat), t.degrees(s.Lon),
		string(s.Source), t.score(s.Score), free(s.Hours), s.Phone, s.Email, s.Website, tagged(s.Tags), free(s.Properties),
	)
}

func (t sheet) End() error { return t.grid.Flush() }

func (t sheet) degrees(x *float64) string {
	if x == nil {
		return ""
	}
	return t.form.Decimal(strconv.FormatFloat(*x, 'f', -1, 64))
}

func (t sheet) score(x float64) string {
	if x == 0 {
		return ""
	}
	return t.degrees(&x)
}

// free is JSON in a cell.
func free(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	text, err := encode(raw)
	if err != nil { // it was JSON when it came in
		return string(raw)
	}
	return string(text)
}

// tagged is tags in a cell: with commas between them, or as JSON where that would be read otherwise.
func tagged(tags []string) string {
	if slices.ContainsFunc(tags, func(t string) bool {
		return strings.ContainsAny(t, ",|") || strings.HasPrefix(t, "[") || strings.TrimSpace(t) != t
	}) {
		text, _ := encode(tags) // strings always encode
		return string(text)
	}
	return strings.Join(tags, ",")
}
