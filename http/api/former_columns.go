package api

import (
	"strconv"

	"lieudit/schemas/body"
)

// Values of result_status.
const (
	statusFound    = "ok"
	statusNotFound = "not-found"
	statusSkipped  = "skipped" // the row holds no address, or no point
	statusNotText  = "error"   // the row is not text in the file's encoding
)

// formerResult is what one row of a file is answered.
type formerResult struct {
	status  string
	feature body.Feature // valid with statusFound
	next    float64      // the score of the best other address
}

// cells are the cells of some columns; all but the status are empty where nothing was found.
func (r *formerResult) cells(columns []string) []string {
	cells := make([]string, len(columns))
	for i, name := range columns {
		if r.status == statusFound || name == statusColumn {
			cells[i] = formerCells[name](r)
		}
	}
	return cells
}

const statusColumn = "result_status"

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
	statusColumn:         func(r *formerResult) string { return r.status },
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
