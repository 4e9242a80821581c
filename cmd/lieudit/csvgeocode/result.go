package csvgeocode

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"lieudit/http/csvfile"
	"lieudit/queries/address"
)

// resultColumns are the names of the columns written next to each row, without their prefix. With DefaultPrefix they are those of the
// CSV service of the former national address API, which customers' programs read.
var resultColumns = []string{"latitude", "longitude", "label", "score", "score_next", "type", "id",
	"housenumber", "name", "street", "postcode", "city", "context", "citycode",
	"oldcitycode", "oldcity", "district", "ban_id", "verdict", "resout", "motif", "number_found", "status"}

// reasonColumn is the index of motif among the resultColumns.
var reasonColumn = slices.Index(resultColumns, "motif")

// Values of the column status.
const (
	statusFound    = "ok"
	statusNotFound = "not-found"
	statusSkipped  = "skipped" // the row holds no address
	statusNotText  = "error"   // the row is not text in the file's encoding
)

// result is the outcome of verifying one row, which is written behind it.
type result struct {
	status string
	match  address.Match  // valid with statusFound
	reason address.Reason // why nothing was found, if the job asks for it
}

// verifyRow verifies the address of a row. A row that cannot be verified is a result, not an error: an error is one of the
// engine and ends the run.
func (j Job) verifyRow(ctx context.Context, h *header, r csvfile.Row) (result, error) {
	if !h.IsText(r) {
		return result{status: statusNotText}, nil
	}
	queries := h.queries(r)
	if len(queries) == 0 {
		return result{status: statusSkipped}, nil
	}
	best := result{status: statusNotFound}
	for i, query := range queries {
		query.Limit, query.CommuneFallback = 1, j.Fallback && i == len(queries)-1 && best.status == statusNotFound
		m, found, err := j.verifyQuery(ctx, query)
		if err != nil {
			return result{}, err
		}
		if found && (i == 0 || isBetter(&m, &best, query.CommuneFallback)) {
			best = result{status: statusFound, match: m}
		}
		if best.match.Verdict == address.Exact {
			break
		}
	}
	if j.Explain && best.status == statusNotFound {
		return j.explainRow(ctx, queries)
	}
	return best, nil
}

// explainRow is the result of a row for which nothing was found, with the reason of the query that came furthest.
func (j Job) explainRow(ctx context.Context, queries []address.Query) (result, error) {
	none := result{status: statusNotFound}
	for _, query := range queries {
		reason, err := j.Engine.ExplainUnresolved(ctx, query)
		if err != nil {
			return result{}, err
		}
		if reason.Rank() > none.reason.Rank() {
			none.reason = reason
		}
	}
	return none, nil
}

// verifyQuery is the best match of a query. With an INSEE code the engine takes the commune for a street that it does not have. Only a
// job with Fallback asks for that, so the query is then asked again without the code.
func (j Job) verifyQuery(ctx context.Context, query address.Query) (m address.Match, found bool, err error) {
	matches, err := j.Engine.Verify(ctx, query)
	if err != nil && !errors.Is(err, address.ErrUnparsable) {
		return m, false, err
	}
	if len(matches) == 0 {
		return m, false, nil
	}
	m = matches[0]
	if query.CityCode != "" && !query.CommuneFallback && m.Type == address.Municipality && m.Components.Street.Typed != "" {
		query.CityCode = ""
		return j.verifyQuery(ctx, query)
	}
	return m, true, nil
}

// isBetter reports whether the match of a further line of a row replaces the best one so far: if that found nothing,
// or if the line is an exact house number, such as a street below the name of a building. A locality that a line names next to the
// street says less than the street, and a commune answers only on request.
func isBetter(m *address.Match, best *result, admitsCommune bool) bool {
	if best.status == statusNotFound {
		return m.Type != address.Municipality || admitsCommune
	}
	return m.Verdict == address.Exact && m.Type == address.HouseNumber
}

// countResult counts one row by its result.
func (c *Counts) countResult(r result) {
	c.Rows++
	switch {
	case r.status == statusNotFound:
		c.NotFound++
	case r.status == statusSkipped:
		c.Skipped++
	case r.status == statusNotText:
		c.Errors++
	case r.match.Verdict == address.Exact:
		c.Exact++
	case r.match.Verdict == address.CommuneOnly:
		c.CommuneOnly++
	default:
		c.Probable++
	}
}

// values are the result's fields, in the order of resultColumns.
func (r result) values() []string {
	if r.status != statusFound {
		out := make([]string, len(resultColumns))
		out[len(out)-1], out[reasonColumn] = r.status, string(r.reason)
		return out
	}
	m := &r.match
	numberFound := "" // empty if the row has no house number
	if m.NumberTyped {
		numberFound = strconv.FormatBool(m.NumberFound)
	}
	number := m.HouseNumber()
	name := strings.TrimSpace(number + " " + m.Street)
	if m.Type == address.Municipality {
		name = m.City
	}
	return []string{formatDecimal(m.Lat), formatDecimal(m.Lon), m.Label, formatDecimal(m.Score), formatDecimal(m.Next), string(m.Type), m.ID,
		number, name, m.Street, m.Postcode, m.City, m.Context(), m.CityCode,
		m.OldCityCode, m.OldCity, m.District, m.BanID, string(m.Verdict), strconv.FormatBool(m.IsResolved), string(m.Reason), numberFound, r.status}
}

// formatDecimal writes the shortest decimal that reads back as the same number.
func formatDecimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// resultNames are the names of the added columns.
func (h *header) resultNames() []string {
	names := make([]string, len(resultColumns))
	for i, c := range resultColumns {
		names[i] = h.prefix + c
	}
	return names
}
