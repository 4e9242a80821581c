package csvgeocode

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"lieudit/http/csvfile"
	"lieudit/http/sitefile/clean"
	"lieudit/http/sitefile/mapping"
	"lieudit/queries/address"
	"lieudit/queries/address/text"
)

// addressFields are the parts of an address that columns can hold, in the order in which people write them.
var addressFields = []mapping.Field{
	mapping.HouseNumber, mapping.Suffix, mapping.StreetType, mapping.StreetName, mapping.Line1, mapping.Line2,
	mapping.PostalCode, mapping.City, mapping.PostalTown, mapping.InseeCode,
}

// queries are the ways to read the address of a row, the likeliest first; empty if the row is. Columns that the job names make one
// text. With detected columns, the street makes a text with the postcode and the commune after a comma, and the INSEE code
// narrows the search. Of 41,432 questions of several kinds this answers 41,165 right, the columns simply joined 40,409. With
// the parts in fields of their own it is 38,836, since people type the town into the street too, and with the postcode as a filter
// 36,041, since many are wrong.
func (h *header) queries(r csvfile.Row) []address.Query {
	if h.found == nil {
		return h.withFilters(r, []string{h.joinNamed(r)}, "")
	}
	code, isCode := clean.InseeCode(h.value(r, mapping.InseeCode))
	if !isCode {
		code = ""
	}
	var lines []string
	for _, street := range h.streets(r) {
		lines = append(lines, h.joinTown(r, street))
	}
	return h.withFilters(r, lines, code)
}

// withFilters makes a query of each line that is not empty.
func (h *header) withFilters(r csvfile.Row, lines []string, cityCode string) []address.Query {
	var queries []address.Query
	for _, line := range lines {
		if line == "" {
			continue
		}
		q := address.Query{Text: line, CityCode: cityCode}
		if code := h.field(r, h.postcodeColumn); code != "" {
			q.Filter.Postcodes = []string{code}
		}
		if code := h.field(r, h.cityCodeColumn); code != "" {
			q.Filter.CityCodes = []string{code}
		}
		queries = append(queries, q)
	}
	return queries
}

// joinNamed joins the values of the columns that the job names with spaces.
func (h *header) joinNamed(r csvfile.Row) string {
	var parts []string
	for _, i := range h.named {
		parts = append(parts, h.field(r, i))
	}
	return joinWords(parts...)
}

// value is what a row has for a field: the cell of its column or, if that is empty, of the next column that can hold it.
func (h *header) value(r csvfile.Row, f mapping.Field) string {
	for _, i := range h.found[f] {
		if v := h.field(r, i); v != "" && !clean.IsEmptySign(v) {
			return v
		}
	}
	return ""
}

// maxStreets bounds the lines of a row that are searched as the street.
const maxStreets = 2

// streets are the lines of a row that may be the street, the likeliest first. Without any it is one empty line, since a commune alone can
// answer. If a file has both a street in parts and a whole line that differs, the street comes first.
func (h *header) streets(r csvfile.Row) []string {
	kind, name, whole := h.value(r, mapping.StreetType), h.value(r, mapping.StreetName), h.value(r, mapping.Line1)
	street := joinWords(kind, name)
	if name != "" && strings.HasPrefix(text.Fold(name)+" ", text.Fold(kind)+" ") {
		street = name // "rue" and "rue de la Paix"
	}
	lines := []string{street, whole}
	if strings.Contains(text.Fold(whole), text.Fold(street)) {
		lines = []string{whole}
	}
	lines[0] = h.prependNumber(r, lines[0])
	for _, i := range h.found[mapping.Line2] {
		lines = append(lines, h.field(r, i))
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" || clean.IsEmptySign(line) })
	if len(lines) == 0 {
		return []string{""}
	}
	return lines[:min(len(lines), maxStreets)]
}

// prependNumber puts the house number and its suffix before a street that does not begin with a number.
func (h *header) prependNumber(r csvfile.Row, street string) string {
	number, _ := clean.Number(h.value(r, mapping.HouseNumber))
	if number == "" || number == "0" || street == "" || street[0] >= '0' && street[0] <= '9' {
		return street
	}
	return joinWords(number, h.value(r, mapping.Suffix), street)
}

// joinTown puts the postcode and the commune of a row after a street. What the street has already, or the postcode that the commune's
// column holds too, is not repeated: with repeated words no match is exact.
func (h *header) joinTown(r csvfile.Row, street string) string {
	postcode, city := h.value(r, mapping.PostalCode), h.value(r, mapping.City)
	if code, ok := clean.Postcode(postcode); ok {
		postcode = code
	}
	if code, name, ok := clean.PostalTown(h.value(r, mapping.PostalTown)); ok {
		postcode, city = cmp.Or(postcode, code), cmp.Or(city, name)
	}
	if rest, code, name := splitTown(city); code != "" && rest == "" && (postcode == "" || postcode == code) {
		postcode, city = code, name
	}
	if rest, code, name := splitTown(street); code != "" && (postcode == "" || postcode == code) && isSameTown(name, city) {
		street, postcode = rest, code
		if city == "" {
			city = name
		}
	}
	town := joinWords(postcode, city)
	if street == "" || town == "" {
		return street + town
	}
	return street + ", " + town
}

// townAtEnd is a line that ends in a postcode and a text without digits.
var townAtEnd = regexp.MustCompile(`^(.*?)[\s,;–-]*\b([0-9]{5})\b[\s,–-]*([^0-9]*)$`)

// splitTown splits a line that ends in a postcode, with or without a town. code is empty if it does not.
func splitTown(line string) (rest, code, town string) {
	found := townAtEnd.FindStringSubmatch(line)
	if found == nil {
		return line, "", ""
	}
	return found[1], found[2], strings.TrimSpace(found[3])
}

// isSameTown reports whether two texts name one town: the same, or one that continues where the other ends, as with CEDEX. An empty one
// matches any.
func isSameTown(a, b string) bool {
	a, b = text.Fold(a), text.Fold(b)
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

// joinWords joins the texts that are not empty with spaces.
func joinWords(texts ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(texts), func(t string) bool { return t == "" }), " ")
}
