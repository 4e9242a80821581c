package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"lieudit/http/csvupload"
	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/queries/address"
	"lieudit/queries/address/live"
	"lieudit/schemas/body"
	"lieudit/schemas/geo"
)

// rowAnswerer answers one row of a file, in which it has found its columns.
type rowAnswerer func(ctx context.Context, e *address.Engine, row []string) (formerResult, error)

// prepareRows finds the columns that a form names in a table. It returns the columns that are added, and who answers the rows.
type prepareRows func(t *csvupload.Table, form body.FormerFileFields) (columns []string, answer rowAnswerer, err error)

// formerFileEndpoint is an endpoint of the former national API whose body is a file. The file is read after the quota was checked,
// by the operation. endpoint is the name under which its rows are counted.
func (h *handler) formerFileEndpoint(endpoint string, prepare prepareRows) kit.Endpoint[caller] {
	decoder := kit.NewDecoder[body.FormerFileFields]()
	return func(r *http.Request) (kit.Operation[caller], error) {
		return func(ctx context.Context, c call) (kit.Response, error) {
			if _, err := queryAddresses(h, func(*live.Engine) (struct{}, error) { return struct{}{}, nil }); err != nil {
				return kit.Response{}, err
			}
			job, err := h.receiveFile(r, c, endpoint)
			if err != nil {
				return kit.Response{}, err
			}
			response, err := job.answerFormer(ctx, decoder, prepare)
			if err != nil {
				job.free()
			}
			return response, err
		}, nil
	}
}

// answerFormer checks the form and counts the rows. Rows are answered while the answer is sent.
func (j *fileJob) answerFormer(ctx context.Context, decoder kit.Decoder[body.FormerFileFields], prepare prepareRows) (kit.Response, error) {
	form, err := decoder.DecodeForm(j.upload.Fields)
	if err != nil {
		return kit.Response{}, err
	}
	columns, answer, err := prepare(j.table, form)
	if err != nil {
		return kit.Response{}, fillFormInputs(err, j.upload)
	}
	if err := j.reserve(ctx); err != nil {
		return kit.Response{}, err
	}
	refused := formerResult{status: statusRefused}
	fill := func(ctx context.Context, rows [][]string) ([]csvupload.Result, error) {
		return j.fillFormerRows(ctx, rows, columns, answer)
	}
	return j.respond(csvupload.Extension{Columns: columns, Fill: fill, Refused: refused.cells(columns)}), nil
}

// fillFormerRows answers some rows from the address base that is served now.
func (j *fileJob) fillFormerRows(ctx context.Context, rows [][]string, columns []string, answer rowAnswerer) ([]csvupload.Result, error) {
	return queryAddresses(j.h, func(e *live.Engine) ([]csvupload.Result, error) {
		results := make([]csvupload.Result, len(rows))
		for i, row := range rows {
			result := formerResult{status: statusRefused}
			if j.isAnswerable(row) {
				var err error
				if result, err = answer(ctx, e.OwnIndex, row); err != nil {
					return nil, err
				}
			}
			results[i] = csvupload.Result{Cells: result.cells(columns), IsAnswered: result.status != statusRefused}
		}
		return results, nil
	})
}

// isAnswerable reports whether a row is text and has most of its cells.
func (j *fileJob) isAnswerable(row []string) bool {
	isText := !slices.ContainsFunc(row, func(cell string) bool { return !utf8.ValidString(cell) })
	return isText && len(j.table.Columns)-len(row) <= csvupload.MaxMissingCells
}

// columnFinder finds the columns that the fields of a form name, and notes each that the table lacks.
type columnFinder struct {
	table      *csvupload.Table
	violations []problem.Violation
}

// find is the place in a row of a column that the work needs.
func (f *columnFinder) find(field, column string) int {
	i := f.table.Column(column)
	if i < 0 {
		f.addMissing(field, "the file has no column "+strconv.Quote(column))
	}
	return i
}

func (f *columnFinder) addMissing(field, msg string) {
	f.violations = append(f.violations, problem.Violation{Type: "value_error", Loc: []any{"body", field}, Msg: "Value error, " + msg})
}

// err is the refusal of a form that names columns which the table lacks.
func (f *columnFinder) err() error {
	if len(f.violations) == 0 {
		return nil
	}
	return problem.Violations(f.violations...)
}

// filterColumns are the places of the columns with the filters of a row; -1: there is none.
type filterColumns struct{ types, postcode, cityCode int }

// findFilters finds the columns of filters. As in the former API, one that the file lacks filters nothing: its own client names a
// column of filters although no row of the file has any.
func findFilters(t *csvupload.Table, form body.FormerFileFields) filterColumns {
	return filterColumns{findNamed(t, form.Type), findNamed(t, form.Postcode), findNamed(t, form.CityCode)}
}

// findNamed is the place of a column; -1 where it is not named, or the file lacks it.
func findNamed(t *csvupload.Table, column string) int {
	if column == "" {
		return -1
	}
	return t.Column(column)
}

// filter is the filter of a row. An empty cell filters nothing.
func (c filterColumns) filter(row []string) address.Filter {
	return address.Filter{
		Types: toAddressTypes(oneOrNone(cellAt(row, c.types))), Postcodes: oneOrNone(cellAt(row, c.postcode)), CityCodes: oneOrNone(cellAt(row, c.cityCode)),
	}
}

// cellAt is a cell without the spaces around it; "" for the place -1, and for a cell that the row lacks.
func cellAt(row []string, place int) string {
	if place < 0 || place >= len(row) {
		return ""
	}
	return strings.TrimSpace(row[place])
}

// maxCellText is the most characters that a row is searched by, as GET /search has it for q.
const maxCellText = 200

// isTooLong reports whether a text has more than maxCellText characters. Reading a long one would take much time.
func isTooLong(text string) bool {
	return len(text) > maxCellText && utf8.RuneCountInString(text) > maxCellText
}

// hasLongCell reports whether any of the cells at some places is too long.
func hasLongCell(row []string, places ...int) bool {
	return slices.ContainsFunc(places, func(place int) bool { return isTooLong(cellAt(row, place)) })
}

// positionAt is the position in two cells of a row; nil where they hold none. The decimal sign may be a comma, as a French
// spreadsheet writes it.
func positionAt(row []string, lat, lon int) *geo.Point {
	p := geo.Point{}
	for _, part := range []struct {
		into  *float64
		place int
		most  float64
	}{{&p.Lat, lat, 90}, {&p.Lon, lon, 180}} {
		n, err := strconv.ParseFloat(strings.Replace(cellAt(row, part.place), ",", ".", 1), 64)
		if err != nil || !(n >= -part.most && n <= part.most) { // NaN is not within the bounds either
			return nil
		}
		*part.into = n
	}
	return &p
}

// findParts finds the columns that the form names, each once; all columns if it names none.
func (f *columnFinder) findParts(names []string) []int {
	var parts []int
	for _, name := range names {
		if i := f.find("columns", name); !slices.Contains(parts, i) {
			parts = append(parts, i)
		}
	}
	for i := range f.table.Columns {
		if len(names) == 0 {
			parts = append(parts, i)
		}
	}
	return parts
}

// prepareFormerSearch searches the address in the columns that the form names, joined with spaces. A row is refused if its address or
// a cell of its filters is longer than GET /search allows.
func prepareFormerSearch(t *csvupload.Table, form body.FormerFileFields) ([]string, rowAnswerer, error) {
	f := &columnFinder{table: t}
	parts := f.findParts(form.Columns)
	filters, lat, lon := findFilters(t, form), findNamed(t, form.Lat), findNamed(t, form.Lon)
	columns := chooseColumns(form.ResultColumns, formerSearchColumns)
	if form.Explain && !slices.Contains(columns, reasonColumn) {
		columns = append(slices.Clone(columns), reasonColumn)
	}
	return columns, func(ctx context.Context, e *address.Engine, row []string) (formerResult, error) {
		if hasLongCell(row, filters.types, filters.postcode, filters.cityCode, lat, lon) {
			return formerResult{status: statusRefused}, nil
		}
		query := address.Query{Text: joinCells(row, parts), Limit: 1, Filter: filters.filter(row), Bias: positionAt(row, lat, lon), CommuneFallback: isCommuneFallback(form.Fallback)}
		switch {
		case query.Text == "":
			return formerResult{status: statusSkipped}, nil
		case isTooLong(query.Text):
			return formerResult{status: statusRefused}, nil
		}
		found, reason, err := verifyExplained(ctx, e, query, form.Explain)
		if err != nil && !errors.Is(err, address.ErrUnparsable) {
			return formerResult{}, err
		}
		if len(found) == 0 {
			return formerResult{status: statusNotFound, reason: reason}, nil
		}
		m := &found[0]
		return formerResult{status: statusFound, feature: toFeature(&m.Record, m.Score), next: m.Next, verdict: m.Verdict, isResolved: m.IsResolved, reason: m.Reason}, nil
	}, f.err()
}

// joinCells joins cells with spaces, without those that are empty.
func joinCells(row []string, places []int) string {
	var parts []string
	for _, place := range places {
		if cell := cellAt(row, place); cell != "" {
			parts = append(parts, cell)
		}
	}
	return strings.Join(parts, " ")
}

// prepareFormerReverse finds the address nearest to the point in two columns: those that the form names, otherwise those of the names
// that the former API knows.
func prepareFormerReverse(t *csvupload.Table, form body.FormerFileFields) ([]string, rowAnswerer, error) {
	f := &columnFinder{table: t}
	lat := f.findCoordinate("lat", form.Lat, "latitude", "lat")
	lon := f.findCoordinate("lon", form.Lon, "longitude", "lon", "lng", "long")
	filters := findFilters(t, form)
	return chooseColumns(form.ResultColumns, formerReverseColumns), func(_ context.Context, e *address.Engine, row []string) (formerResult, error) {
		if hasLongCell(row, filters.types, filters.postcode, filters.cityCode, lat, lon) {
			return formerResult{status: statusRefused}, nil
		}
		at := positionAt(row, lat, lon)
		if at == nil {
			return formerResult{status: statusSkipped}, nil
		}
		found := nearestAddresses(e, *at, 1, filters.filter(row))
		if len(found) == 0 {
			return formerResult{status: statusNotFound}, nil
		}
		return formerResult{status: statusFound, feature: toNeighbourFeature(found[0])}, nil
	}, f.err()
}

// findCoordinate is the place of the column that a field names, otherwise of the first of some names that the table has.
func (f *columnFinder) findCoordinate(field, column string, names ...string) int {
	if column != "" {
		return f.find(field, column)
	}
	for _, name := range names {
		if i := f.table.Column(name); i >= 0 {
			return i
		}
	}
	f.addMissing(field, "the file has no column "+strings.Join(names, ", "))
	return -1
}

// Values of result_status.
const (
	statusFound    = "ok"
	statusNotFound = "not-found"
	statusSkipped  = "skipped" // the row holds no address, or no point
	statusRefused  = "error"   // the row is not text in the file's encoding, is too long, or lacks too many cells
)

// formerResult is what one row of a file is answered.
type formerResult struct {
	status  string
	feature body.Feature // valid with statusFound
	next    float64      // the score of the best other address

	verdict    address.Verdict // of a search, and whether its match resolves
	isResolved bool
	reason     address.Reason // why it does not, or why nothing was found
}

// cells are the cells of some columns; all but the status and the reason are empty where nothing was found.
func (r *formerResult) cells(columns []string) []string {
	cells := make([]string, len(columns))
	for i, name := range columns {
		if r.status == statusFound || name == statusColumn || name == reasonColumn {
			cells[i] = formerCells[name](r)
		}
	}
	return cells
}

const (
	statusColumn = "result_status"
	reasonColumn = "result_motif"
)

// The columns that the former API adds, in its order. A search adds latitude and longitude without result_ before them.
var (
	formerSearchColumns = append([]string{"latitude", "longitude", "result_label", "result_score", "result_score_next"}, formerRecordColumns...)

	formerReverseColumns = append([]string{"result_latitude", "result_longitude", "result_distance", "result_label"}, formerRecordColumns...)

	formerRecordColumns = []string{"result_type", "result_id", "result_housenumber", "result_name", "result_street", "result_postcode", "result_city",
		"result_context", "result_citycode", "result_oldcitycode", "result_oldcity", "result_district", statusColumn}
)

// chooseColumns are the columns that a form asks for, in its order and each once; the usual ones where it asks for none that is
// known. The former API ignores the others, and its documentation named one for years.
func chooseColumns(asked, usual []string) []string {
	var chosen []string
	seen := map[string]bool{}
	for _, name := range asked {
		if formerCells[name] != nil && !seen[name] {
			chosen = append(chosen, name)
		}
		seen[name] = true
	}
	if chosen == nil {
		return usual
	}
	return chosen
}

// formerCells is the cell of every column that a form can ask for.
var formerCells = map[string]func(*formerResult) string{
	"latitude":           func(r *formerResult) string { return formatCell(r.feature.Geometry.Coordinates[1]) },
	"longitude":          func(r *formerResult) string { return formatCell(r.feature.Geometry.Coordinates[0]) },
	"result_latitude":    func(r *formerResult) string { return formatCell(r.feature.Geometry.Coordinates[1]) },
	"result_longitude":   func(r *formerResult) string { return formatCell(r.feature.Geometry.Coordinates[0]) },
	"result_distance":    func(r *formerResult) string { return formatDistance(r.feature.Properties.Distance) },
	"result_label":       func(r *formerResult) string { return r.feature.Properties.Label },
	"result_score":       func(r *formerResult) string { return formatCell(r.feature.Properties.Score) },
	"result_score_next":  func(r *formerResult) string { return formatNext(r.next) },
	"result_type":        func(r *formerResult) string { return r.feature.Properties.Type },
	"result_id":          func(r *formerResult) string { return r.feature.Properties.ID },
	"result_banId":       func(r *formerResult) string { return r.feature.Properties.BanID },
	"result_housenumber": func(r *formerResult) string { return r.feature.Properties.HouseNumber },
	"result_name":        func(r *formerResult) string { return r.feature.Properties.Name },
	"result_street":      func(r *formerResult) string { return r.feature.Properties.Street },
	"result_postcode":    func(r *formerResult) string { return r.feature.Properties.PostCode },
	"result_city":        func(r *formerResult) string { return r.feature.Properties.City },
	"result_context":     func(r *formerResult) string { return r.feature.Properties.Context },
	"result_citycode":    func(r *formerResult) string { return r.feature.Properties.CityCode },
	"result_oldcitycode": func(r *formerResult) string { return r.feature.Properties.OldCityCode },
	"result_oldcity":     func(r *formerResult) string { return r.feature.Properties.OldCity },
	"result_district":    func(r *formerResult) string { return r.feature.Properties.District },
	"result_x":           func(r *formerResult) string { return formatCell(r.feature.Properties.X) },
	"result_y":           func(r *formerResult) string { return formatCell(r.feature.Properties.Y) },
	"result_verdict":     func(r *formerResult) string { return string(r.verdict) },
	"result_resout":      func(r *formerResult) string { return formatResolved(r) },
	reasonColumn:         func(r *formerResult) string { return string(r.reason) },
	statusColumn:         func(r *formerResult) string { return r.status },
}

// formatResolved is whether the match of a search resolves; "" for a reverse search, which has none.
func formatResolved(r *formerResult) string {
	if r.verdict == "" {
		return ""
	}
	return strconv.FormatBool(r.isResolved)
}

// formatCell is the shortest decimal that reads back as the same number.
func formatCell(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// formatNext is the score of the best other address, "" where there is none.
func formatNext(score float64) string {
	if score == 0 {
		return ""
	}
	return formatCell(score)
}

func formatDistance(metres *int) string {
	if metres == nil {
		return ""
	}
	return strconv.Itoa(*metres)
}
