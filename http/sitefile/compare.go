package sitefile

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"lieudit/http/sitefile/mapping"
	"lieudit/http/sitefile/record"
	"lieudit/schemas/locations"
)

// ParseExport parses an NDJSON export of a referential. The sites are by their external ids.
func ParseExport(export string) (map[string]Site, error) {
	known := map[string]Site{}
	d := json.NewDecoder(strings.NewReader(export))
	for d.More() {
		var s locations.Site
		if err := d.Decode(&s); err != nil {
			return nil, fmt.Errorf("reading the sites of the referential: %w", err)
		}
		known[s.ExternalID] = Site{ExternalID: s.ExternalID, Content: s.Content, IsGeocoded: s.Source == locations.SourceBAN}
	}
	return known, nil
}

// IsAt reports whether a site shows the position that a content has.
func (s Site) IsAt(c locations.Content) bool {
	return equalDegrees(s.Content.Lat, c.Lat) && equalDegrees(s.Content.Lon, c.Lon) && s.Content.IDBan == c.IDBan
}

func equalDegrees(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }

// RemovePosition removes the position of a site that was geocoded by its address, so that it is geocoded again. Its id_ban goes too,
// unless nothing else locates the site.
func (s *Site) RemovePosition() {
	s.Content.Lat, s.Content.Lon, s.IsGeocoded = nil, nil, false
	if a := s.Content.Address; a != nil && *a != (locations.SiteAddress{}) {
		s.Content.IDBan = ""
	}
}

// PlaceAgain removes the positions that were found by the address in another referential than the one of the import, so that they
// are found again. A site that the referential has with the same position keeps it.
func (i *Import) PlaceAgain(known map[string]Site) {
	for n := range i.Sites {
		s := &i.Sites[n]
		if stored, ok := known[s.ExternalID]; s.IsGeocoded && !(ok && stored.IsAt(s.Content)) {
			s.RemovePosition()
		}
	}
}

// CountChangedIDs counts the ids of known sites that the file lacks while it has others that differ only as a spreadsheet
// changes them or, in an export, that belong to a site with the same name and address. It returns one of them as an example.
func (i *Import) CountChangedIDs(known map[string]Site) (n int, example string) {
	inFile := make(map[string]bool, len(i.Sites))
	for _, s := range i.Sites {
		inFile[s.ExternalID] = true
	}
	gone := map[string]string{}
	for id, stored := range known {
		if !inFile[id] {
			gone[foldID(id)] = id
			if i.Mapping.IsExport {
				gone[placeKey(stored)] = id
			}
		}
	}
	for _, s := range i.Sites {
		before, isGone := gone[foldID(s.ExternalID)]
		if !isGone && i.Mapping.IsExport {
			before, isGone = gone[placeKey(s)]
		}
		if _, isKnown := known[s.ExternalID]; isKnown || !isGone {
			continue
		}
		if n++; n == 1 {
			example = before + " became " + s.ExternalID
		}
	}
	return n, example
}

// placeKey identifies a site by what and where it is. Its separators occur in no id.
func placeKey(s Site) string {
	a := s.Content.Address
	if a == nil {
		a = &locations.SiteAddress{}
	}
	return "\x00" + s.Content.Name + "\x00" + a.Line1 + "\x00" + a.City
}

// foldID reduces an id to what survives a spreadsheet: numbers to their value, however they are written; others to lower case.
func foldID(id string) string {
	if value, isNumber := numberOf(id); isNumber {
		return value
	}
	return strings.ToLower(id)
}

// numberOf is the value of a text that a spreadsheet reads as a number: 007, 105.0, 1e5, 1,00E+05.
func numberOf(text string) (value string, ok bool) {
	text = strings.TrimSpace(text)
	if text == "" || strings.Trim(text, "0123456789.,eE+-") != "" || strings.Count(text, ",")+strings.Count(text, ".") > 1 {
		return "", false
	}
	x, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
	if err != nil {
		return "", false
	}
	return strconv.FormatFloat(x, 'g', 15, 64), true
}

// keptDegrees is how far a position may be from the stored one and still be the same: programs keep 15 digits or less. It is a centimetre.
const keptDegrees = 1e-7

// KeepPositions gives the sites of an export the positions that the referential has for them, if they differ only in digits that
// a program cut off.
func (i *Import) KeepPositions(known map[string]Site) {
	for n := range i.Sites {
		s := &i.Sites[n]
		stored, ok := known[s.ExternalID]
		a, z := s.Content, stored.Content
		if !ok || a.Lat == nil || a.Lon == nil || z.Lat == nil || z.Lon == nil {
			continue
		}
		if math.Abs(*a.Lat-*z.Lat) < keptDegrees && math.Abs(*a.Lon-*z.Lon) < keptDegrees {
			s.Content.Lat, s.Content.Lon = z.Lat, z.Lon
		}
	}
}

// FindLosses compares an export that comes back with the sites of the referential, and reports what a spreadsheet or another program
// changed on the way: values that are the same number or a date now, letters that became question marks, a decimal comma that is
// gone, columns that are gone. It reports nothing for a file that is not an export.
func (i *Import) FindLosses(known map[string]Site) []string {
	if !i.Mapping.IsExport {
		return nil
	}
	found := issues{}
	for _, s := range i.Sites {
		if stored, ok := known[s.ExternalID]; ok {
			i.compareSite(found, s, stored)
		}
	}
	var losses []string
	for _, f := range found.list() {
		example := fmt.Sprintf("%q that was %q", f.After, f.Before)
		if f.After == "" {
			example = fmt.Sprintf("%q", f.Before)
		}
		losses = append(losses, fmt.Sprintf("%s: %s, such as %s", f.DescribeLines(), f.Kind, example))
	}
	return losses
}

func (i *Import) compareSite(found issues, s, stored Site) {
	before, after := fieldTexts(stored), fieldTexts(s)
	i.compareProperties(found, s, stored)
	for _, f := range comparedFields {
		if kind := describeLoss(before[f], after[f]); kind != "" && !(f == mapping.Phone && isDigitsAndSigns(after[f])) { // a telephone number is rewritten anyway
			found.add(kind, s.Line, string(f), before[f], after[f])
		} else if before[f] != "" && after[f] == "" && !i.hasField(f) {
			found.add("the column "+string(f)+" is gone", s.Line, string(f), before[f], "")
		}
	}
	a, z := s.Content, stored.Content
	if a.Lat != nil && a.Lon != nil && z.Lat != nil && z.Lon != nil && before[mapping.Line1] == after[mapping.Line1] {
		if isScaled(*z.Lat, *a.Lat) || isScaled(*z.Lon, *a.Lon) {
			found.add("a position without its decimal comma", s.Line, "lat, lon", formatPosition(z), formatPosition(a))
		}
	}
}

// compareProperties compares the members of proprietes one by one.
func (i *Import) compareProperties(found issues, s, stored Site) {
	var before, after map[string]any
	if json.Unmarshal(stored.Content.Properties, &before) != nil || json.Unmarshal(s.Content.Properties, &after) != nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if value, ok := after[key]; ok {
			was, is := fmt.Sprint(before[key]), fmt.Sprint(value)
			if kind := describeLoss(was, is); kind != "" {
				found.add(kind, s.Line, "proprietes."+key, was, is)
			}
		}
	}
}

// hasField reports whether the file has a column that a field of an exported site can come from. JSON leaves empty members out.
func (i *Import) hasField(f mapping.Field) bool {
	if i.Info.Format != record.CSV && i.Info.Format != record.XLSX {
		return true
	}
	_, ok := i.Mapping.Find(f)
	return ok
}

// isScaled reports whether a coordinate is a hundred times or more the stored one, with the same digits.
func isScaled(before, after float64) bool {
	if before == 0 || after/before < 100 {
		return false
	}
	exponent := math.Log10(after / before)
	return math.Abs(exponent-math.Round(exponent)) < 1e-9
}

func formatPosition(c locations.Content) string {
	return formatDegrees(c.Lat) + ", " + formatDegrees(c.Lon)
}

// comparedFields are the fields of texts that programs change.
var comparedFields = []mapping.Field{
	mapping.Name, mapping.Line1, mapping.Line2, mapping.PostalCode, mapping.City, mapping.InseeCode, mapping.Country, mapping.Phone, mapping.Email,
	mapping.Website, mapping.Hours, mapping.Tags, mapping.Properties, mapping.Lat, mapping.Lon,
}

// fieldTexts are the texts of a site's fields.
func fieldTexts(s Site) map[mapping.Field]string {
	c := s.Content
	a := c.Address
	if a == nil {
		a = &locations.SiteAddress{}
	}
	return map[mapping.Field]string{
		mapping.Name: c.Name, mapping.Line1: a.Line1, mapping.Line2: a.Line2, mapping.PostalCode: a.PostalCode, mapping.City: a.City,
		mapping.InseeCode: a.InseeCode, mapping.Country: a.Country, mapping.Phone: c.Phone, mapping.Email: c.Email, mapping.Website: c.Website,
		mapping.Hours: string(c.Hours), mapping.Tags: strings.Join(c.Tags, ","), mapping.Properties: string(c.Properties),
		mapping.Lat: formatDegrees(c.Lat), mapping.Lon: formatDegrees(c.Lon),
	}
}

// programDate is a date or a time as spreadsheets write them, in French or English.
var programDate = regexp.MustCompile(`(?i)^(\d{1,2}/\d{1,2}/\d{2,4}|\d{4}-\d{2}-\d{2}.*|\d{1,2}:\d{2}:\d{2}.*|` +
	`\d{1,2}-` + monthNames + `\.?(-\d{2,4})?|` + monthNames + `\.?-\d{2,4})$`)

const monthNames = `(janv|jan|févr|feb|mars|mar|avr|apr|mai|may|juin|jun|juil|jul|août|aug|sept|sep|oct|nov|déc|dec)`

// nullWords are texts that programs read as no value.
var nullWords = []string{"na", "nan", "n/a", "#n/a", "null", "none", "nil", "<na>"}

// isDigitsAndSigns reports whether a text is digits with the signs of prices, shares and thousands next to and between them.
func isDigitsAndSigns(text string) bool {
	return strings.Trim(text, "0123456789 \u00a0\u202f.,€$%()+-") == "" && digitsOf(text) != ""
}

// digitsOf is the digits of a text, without leading zeros.
func digitsOf(text string) string {
	digits := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, text)
	return strings.TrimLeft(digits, "0")
}

// describeLoss describes what a program did to a text; "" if the change may be intended.
func describeLoss(before, after string) string {
	switch {
	case before == after || before == "":
		return ""
	case after == "" && containsFold(nullWords, before):
		return "a text that a program takes for no value"
	case after == "":
		return ""
	}
	beforeValue, wasNumber := numberOf(before)
	afterValue, isNumber := numberOf(after)
	switch {
	case strings.EqualFold(before, after) && containsFold([]string{"true", "false"}, before):
		return "a text that a program takes for yes or no"
	case wasNumber && isNumber && (beforeValue == afterValue || isShortened(after)),
		isDigitsAndSigns(before) && isDigitsAndSigns(after) && digitsOf(before) == digitsOf(after):
		return "a text that a program takes for a number"
	case programDate.MatchString(after) && strings.ContainsAny(before, "0123456789"):
		return "a text that a program takes for a date"
	case strings.Count(after, "?") > strings.Count(before, "?") && utf8.RuneCountInString(before) == utf8.RuneCountInString(after):
		return "letters that the file's encoding does not have"
	}
	return ""
}

func containsFold(list []string, text string) bool {
	return slices.ContainsFunc(list, func(t string) bool { return strings.EqualFold(t, text) })
}
