package sitefile

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"lieudit/http/csvfile"
	"lieudit/http/kit"
)

// readCSV reads a CSV file by the names of its columns, which its first row holds. A row may have fewer cells than there are
// columns, but no more. The first line that cannot be read ends the reading with a *LineError or a *csvfile.UnclosedQuoteError.
func readCSV(text string, ignored []string) ([]Row, error) {
	var header []column
	var rows []Row
	for r, err := range csvfile.ReadRecords(text, detectSeparator(text)) {
		if err != nil {
			return nil, err
		}
		if header == nil {
			if header, err = parseHeader(r.Cells, ignored); err != nil {
				return nil, &LineError{r.Line, err.Error()}
			}
			continue
		}
		if len(r.Cells) > len(header) {
			return nil, &LineError{r.Line, fmt.Sprintf("%d cells, but the file has %d columns", len(r.Cells), len(header))}
		}
		row, err := parseRow(r, header)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// detectSeparator is the character of comma, semicolon and tab that the first line has most of. The first line holds names of
// columns, which rarely contain one. A file of one column has none, and is read with a comma.
func detectSeparator(text string) byte {
	line, _, _ := strings.Cut(text, "\n")
	best, mostCount := byte(','), 0
	for _, c := range []byte(",;\t") {
		if n := strings.Count(line, string(rune(c))); n > mostCount {
			best, mostCount = c, n
		}
	}
	return best
}

// parseRow is the site of a row, as JSON. An empty cell is left out: a site of a sync or an upsert is sent whole, so
// that clears the member.
func parseRow(r csvfile.Record, header []column) (Row, error) {
	fields, address := map[string]any{}, map[string]any{}
	for i, cell := range r.Cells {
		col := header[i]
		switch {
		case cell == "" || col.field == "":
		case col.isInAddress:
			address[col.field] = csvfile.UnescapeFormula(cell)
		default:
			fields[col.field] = parseCell(col.field, cell)
		}
	}
	if len(address) > 0 {
		fields["adresse"] = address
	}
	text, err := kit.MarshalJSON(fields)
	return Row{r.Line, text}, err
}

// parseCell is the value of a cell as its member's type. A cell that is no such value stays a text, which the service refuses
// with the rule that it breaks. So this package needs no messages of its own for single cells.
func parseCell(field, cell string) any {
	if field == "lat" || field == "lon" {
		return parseDegrees(cell)
	}
	cell = csvfile.UnescapeFormula(cell)
	switch field {
	case "tags":
		return parseTags(cell)
	case "horaires", "proprietes":
		if json.Valid([]byte(cell)) {
			return json.RawMessage(cell)
		}
	}
	return cell
}

// parseDegrees parses a number with a decimal point or comma. The result is a float64, or the text where it is no finite number.
func parseDegrees(cell string) any {
	if strings.Count(cell, ",") == 1 && !strings.Contains(cell, ".") {
		cell = strings.Replace(cell, ",", ".", 1)
	}
	n, err := strconv.ParseFloat(cell, 64)
	if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
		return cell
	}
	return n
}

// parseTags parses a JSON list, or texts separated by commas or bars. Spaces around a text and empty texts are dropped, except
// in a JSON list.
func parseTags(cell string) []string {
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

// column is which member the cells of a column hold; a field "": they are skipped.
type column struct {
	field       string
	isInAddress bool
}

// parseHeader finds the member of each column. ignored names columns as they are written in the file. A column called id is the
// external_id of a file that has no other; where another column is called after external_id, id is skipped as the id of some
// other program. Two columns of one member, a column of none, or no external_id are errors.
func parseHeader(names, ignored []string) ([]column, error) {
	header, columnOf := make([]column, len(names)), map[string]string{}
	var unknown []string
	hasOtherIDColumn := slices.ContainsFunc(names, func(n string) bool { return normalizeName(n) != "id" && isExternalID(n) })
	for i, name := range names {
		field, known := resolveField(name)
		switch {
		case slices.Contains(ignored, name), strings.TrimSpace(name) == "", hasOtherIDColumn && normalizeName(name) == "id":
			continue
		case !known:
			unknown = append(unknown, name)
		case field != "" && columnOf[field] != "":
			return nil, fmt.Errorf("the columns %q and %q both say %s", columnOf[field], name, field)
		}
		columnOf[field] = name
		header[i] = column{field, slices.Contains(addressFields, field)}
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("no fact of a site is called %q; the columns can be %s", unknown, strings.Join(csvColumns, ", "))
	}
	if columnOf["external_id"] == "" {
		return nil, fmt.Errorf("no column says external_id, what you call each site")
	}
	return header, nil
}

// isExternalID reports whether a column is called after external_id.
func isExternalID(name string) bool {
	field, _ := resolveField(name)
	return field == "external_id"
}

// addressFields are the members of adresse, an object inside a site. In a file they are columns like the others.
var addressFields = []string{"ligne_1", "ligne_2", "code_postal", "commune", "code_insee", "pays"}

// fieldAliases are other names of each member, in French and English, in the form of normalizeName.
var fieldAliases = map[string]string{
	"external_id": "id id_externe identifiant reference ref code code_magasin store_id storeid store_code site_id externalid",
	"nom":         "name libelle enseigne label title titre",
	"ligne_1":     "adresse address ligne1 adresse_1 adresse1 address_1 address1 line_1 line1 address_line_1 rue voie street",
	"ligne_2":     "complement complement_adresse complement_d_adresse ligne2 adresse_2 adresse2 address_2 address2 line_2 line2 address_line_2",
	"code_postal": "cp codepostal postcode postal_code postalcode zip zipcode zip_code",
	"commune":     "ville city town localite nom_commune",
	"code_insee":  "insee code_commune citycode city_code insee_code code_insee_commune",
	"pays":        "country country_code code_pays",
	"id_ban":      "ban_id banid id_ban_adresse",
	"lat":         "latitude",
	"lon":         "lng long longitude",
	"horaires":    "hours opening_hours horaires_d_ouverture horaires_ouverture",
	"telephone":   "tel phone phone_number numero_de_telephone",
	"email":       "mail e_mail courriel adresse_email",
	"site_web":    "siteweb website web url site_internet site",
	"tags":        "tag etiquettes mots_cles keywords categories",
	"proprietes":  "properties",
}

// readOnlyFields are the members that the service sets. Their columns are skipped.
const readOnlyFields = "referentiel geocode_score geocode_precision position_source actif version cree_le modifie_le desactive_le"

// resolveField is the member that a column is called after, by its own name or an alias; "" for a column to skip; false: it is
// called after none. Accents, case and punctuation do not matter.
func resolveField(column string) (field string, known bool) {
	name := normalizeName(column)
	if _, ok := fieldAliases[name]; ok {
		return name, true
	}
	if containsWord(readOnlyFields, name) {
		return "", true
	}
	for field, aliases := range fieldAliases {
		if containsWord(aliases, name) {
			return field, true
		}
	}
	return "", false
}

// containsWord reports whether a name is one of some words, which spaces separate. A normalized name has no spaces, so it cannot
// match across two words.
func containsWord(words, name string) bool { return strings.Contains(" "+words+" ", " "+name+" ") }

// normalizeName is a name in lower case, without accents and surrounding spaces, with _ for every character that is neither a
// letter nor a digit. NFD separates accents from their letters.
func normalizeName(name string) string {
	var out strings.Builder
	for _, r := range norm.NFD.String(strings.ToLower(strings.TrimSpace(name))) {
		switch {
		case unicode.Is(unicode.Mn, r):
		case unicode.IsLetter(r), unicode.IsDigit(r):
			out.WriteRune(r)
		default:
			out.WriteByte('_')
		}
	}
	return out.String()
}
