package roster

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"lieudit/http/grid"
)

// readSheet reads a sheet by the names of its columns.
func readSheet(text string, ignored []string) ([]Row, error) {
	var heads []head
	var rows []Row
	for r, err := range grid.Read(text, separator(text)) {
		if err != nil {
			return nil, err
		}
		if heads == nil {
			if heads, err = headsOf(r.Cells, ignored); err != nil {
				return nil, &LineError{r.Line, err.Error()}
			}
			continue
		}
		if len(r.Cells) > len(heads) {
			return nil, &LineError{r.Line, fmt.Sprintf("%d cells, but the file has %d columns", len(r.Cells), len(heads))}
		}
		row, err := rowOf(r, heads)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// separator is what the header has most of.
func separator(text string) byte {
	line, _, _ := strings.Cut(text, "\n")
	best, most := byte(','), 0
	for _, c := range []byte(",;\t") {
		if n := strings.Count(line, string(rune(c))); n > most {
			best, most = c, n
		}
	}
	return best
}

// rowOf is the site of a row. An empty cell says nothing.
func rowOf(r grid.Record, heads []head) (Row, error) {
	facts, address := map[string]any{}, map[string]any{}
	for i, cell := range r.Cells {
		h := heads[i]
		switch {
		case cell == "" || h.fact == "":
		case h.inAddress:
			address[h.fact] = cell
		default:
			facts[h.fact] = valueOf(h.fact, cell)
		}
	}
	if len(address) > 0 {
		facts["adresse"] = address
	}
	text, err := encode(facts)
	return Row{r.Line, text}, err
}

// valueOf is what a cell says of a fact. What cannot be meant is left to the service to refuse.
func valueOf(fact, cell string) any {
	switch fact {
	case "lat", "lon":
		return degreesOf(cell)
	case "tags":
		return tagsOf(cell)
	case "horaires", "proprietes":
		if json.Valid([]byte(cell)) {
			return json.RawMessage(cell)
		}
	}
	return cell
}

// degreesOf is a number, with a decimal point or comma.
func degreesOf(cell string) any {
	if strings.Count(cell, ",") == 1 && !strings.Contains(cell, ".") {
		cell = strings.Replace(cell, ",", ".", 1)
	}
	n, err := strconv.ParseFloat(cell, 64)
	if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
		return cell
	}
	return n
}

// tagsOf is a list as JSON, or words between commas or bars.
func tagsOf(cell string) []string {
	var tags []string
	if strings.HasPrefix(cell, "[") && json.Unmarshal([]byte(cell), &tags) == nil {
		return tags
	}
	tags = nil
	for _, t := range strings.FieldsFunc(cell, func(r rune) bool { return r == ',' || r == '|' }) {
		if t = strings.TrimSpace(t); t != "" {
			tags = append(tags, t)
		}
	}
	return tags
}

// head is a column: the fact its cells say, "" where they are passed over.
type head struct {
	fact      string
	inAddress bool
}

// headsOf is what the columns of a file say.
func headsOf(names, ignored []string) ([]head, error) {
	heads, from := make([]head, len(names)), map[string]string{}
	var strange []string
	named := slices.ContainsFunc(names, func(n string) bool { return plain(n) != "id" && callsSites(n) })
	for i, name := range names {
		fact, known := factOf(name)
		switch {
		case slices.Contains(ignored, name), strings.TrimSpace(name) == "", named && plain(name) == "id":
			continue
		case !known:
			strange = append(strange, name)
		case fact != "" && from[fact] != "":
			return nil, fmt.Errorf("the columns %q and %q both say %s", from[fact], name, fact)
		}
		from[fact] = name
		heads[i] = head{fact, slices.Contains(inAddress, fact)}
	}
	if len(strange) > 0 {
		return nil, fmt.Errorf("no fact of a site is called %q; the columns can be %s", strange, strings.Join(columns, ", "))
	}
	if from["external_id"] == "" {
		return nil, fmt.Errorf("no column says external_id, what you call each site")
	}
	return heads, nil
}

// callsSites says whether a column is called after external_id.
func callsSites(name string) bool {
	fact, _ := factOf(name)
	return fact == "external_id"
}
