package sheet

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"lieudit/queries/address"
)

// resultColumns are what is written beside each row, with the names that the former national API gave them.
func resultColumns() []string {
	return []string{"result_latitude", "result_longitude", "result_label", "result_score", "result_score_next", "result_type", "result_id",
		"result_housenumber", "result_name", "result_street", "result_postcode", "result_city", "result_context", "result_citycode",
		"result_oldcitycode", "result_oldcity", "result_district", "result_ban_id", "result_verdict", "result_number_found", "result_status"}
}

// What result_status says.
const (
	found    = "ok"
	notFound = "not-found"
	skipped  = "skipped" // the row holds no address
	notText  = "error"   // the row is not text in the file's encoding
)

// result is what is written beside a row.
type result struct {
	status string
	match  address.Match // when found
}

// verify asks the engine about a row.
func (j Job) verify(ctx context.Context, h *head, r row) (result, error) {
	ask := address.Query{Text: h.address(r), Limit: 1}
	if code := r.at(h.postcode); code != "" {
		ask.Filter.Postcodes = []string{code}
	}
	if code := r.at(h.cityCode); code != "" {
		ask.Filter.CityCodes = []string{code}
	}
	switch {
	case !utf8.ValidString(r.raw):
		return result{status: notText}, nil
	case ask.Text == "":
		return result{status: skipped}, nil
	}
	matches, err := j.Engine.Verify(ctx, ask)
	if errors.Is(err, address.ErrUnparsable) || err == nil && len(matches) == 0 {
		return result{status: notFound}, nil
	}
	if err != nil {
		return result{}, err
	}
	return result{found, matches[0]}, nil
}

// at is a field without the spaces around it.
func (r row) at(i int) string {
	if i < 0 || i >= len(r.fields) {
		return ""
	}
	return strings.TrimSpace(r.fields[i])
}

// address is a row's address in one line.
func (h *head) address(r row) string {
	var parts []string
	for _, i := range h.text {
		if part := r.at(i); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " ")
}

// count counts a result.
func (t *Tally) count(r result) {
	t.Rows++
	switch {
	case r.status == notFound:
		t.NotFound++
	case r.status == skipped:
		t.Skipped++
	case r.status == notText:
		t.Errors++
	case r.match.Verdict == address.Exact:
		t.Exact++
	default:
		t.Probable++
	}
}

// columns are the result's fields, in the order of resultColumns.
func (r result) columns() []string {
	if r.status != found {
		out := make([]string, len(resultColumns()))
		out[len(out)-1] = r.status
		return out
	}
	m := &r.match
	missing := ""
	if m.NumberTyped {
		missing = strconv.FormatBool(m.NumberFound)
	}
	number := m.Number + m.Rep
	name := strings.TrimSpace(number + " " + m.Street)
	if m.Type == address.Municipality {
		name = m.City
	}
	return []string{decimal(m.Lat), decimal(m.Lon), m.Label, decimal(m.Score), decimal(m.Next), string(m.Type), m.ID,
		number, name, m.Street, m.Postcode, m.City, m.Context(), m.CityCode,
		m.OldCityCode, m.OldCity, m.District, m.BanID, string(m.Verdict), missing, r.status}
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// line is a row with more columns. A row that has too few fields gets empty ones; of one that has too many the last
// are put together, so that the results stand in their columns.
func (h *head) line(r row, more []string) string {
	var out strings.Builder
	missing := len(h.columns) - len(r.fields)
	if missing < 0 {
		rest := strings.Join(r.fields[len(h.columns)-1:], string(h.separator))
		for _, f := range r.fields[:len(h.columns)-1] {
			out.WriteString(h.quoted(f))
			out.WriteRune(h.separator)
		}
		out.WriteString(h.quoted(rest))
	} else {
		out.WriteString(r.raw)
		out.WriteString(strings.Repeat(string(h.separator), missing))
	}
	for _, f := range more {
		out.WriteRune(h.separator)
		out.WriteString(h.quoted(f))
	}
	out.WriteString(h.end)
	return out.String()
}

// quoted is a field as CSV has it.
func (h *head) quoted(field string) string {
	if !strings.ContainsAny(field, "\"\r\n"+string(h.separator)) {
		return field
	}
	return `"` + strings.ReplaceAll(field, `"`, `""`) + `"`
}
