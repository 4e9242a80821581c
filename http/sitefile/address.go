package sitefile

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"lieudit/http/sitefile/clean"
	"lieudit/http/sitefile/mapping"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/text"
	"lieudit/queries/locations/geocode"
	"lieudit/schemas/locations"
)

// buildAddress builds a site's address from the columns of the record; nil if all are empty.
func (b *builder) buildAddress() *locations.SiteAddress {
	country := b.truncate(mapping.Country, b.cleanField(mapping.Country), 60)
	a := locations.SiteAddress{PostalCode: b.readPostcode(country), City: b.truncate(mapping.City, b.cleanField(mapping.City), 100), InseeCode: b.readInseeCode(), Country: country}
	b.readPostalTown(&a)
	line1, line2 := b.buildLines(&a)
	b.splitCity(&a)
	line1 = b.splitLine(line1, &a)
	a.Line1, a.Line2 = b.truncate(mapping.Line1, line1, 200), b.truncate(mapping.Line2, line2, 200)
	if a == (locations.SiteAddress{}) {
		return nil
	}
	return &a
}

// readPostcode reads the column of the postcode. Foreign postcodes are stored verbatim.
func (b *builder) readPostcode(country string) string {
	text := b.cleanField(mapping.PostalCode)
	if text == "" {
		return ""
	}
	column := b.columnOf(mapping.PostalCode)
	if !geocode.IsFrenchCountry(country) && utf8.RuneCountInString(text) <= 10 {
		return text
	}
	code, ok := clean.Postcode(text)
	b.postcodeShift.observe(b.record.Line, ok, b.mapping.Columns[column])
	switch {
	case !ok && utf8.RuneCountInString(text) > 10:
		b.recordWarning(warningLongPostcode, column, text)
		b.keepInProperties(column, text)
		return ""
	case !ok:
		b.recordWarning(warningPostcode, column, text)
		return text
	case code != text:
		return b.restorePostcode(column, text, code)
	}
	return code
}

// restorePostcode returns the postcode behind four digits. A spreadsheet drops a leading zero, which is put back unless the commune
// of the row contradicts it: then the zero at the end is missing, if the commune has such a postcode. Otherwise it is unknown.
func (b *builder) restorePostcode(column int, text, code string) string {
	digits, _ := clean.Number(text)
	if named := b.communesNamed(b.cleanField(mapping.City)); len(digits) == 4 && len(named) > 0 && !haveSuchPostcode(named, code) {
		switch other := digits + "0"; {
		case haveSuchPostcode(named, other):
			code = other
		case !isOfDepartment(named, code):
			b.recordWarning(warningShortCode, column, text)
			return text
		}
	}
	b.recordFix(clean.PostcodeZero, column, text, code)
	return code
}

// communesNamed returns the communes that have a name. The name of a city also stands for its arrondissements.
func (b *builder) communesNamed(name string) []*commune.Commune {
	table, err := commune.Load()
	if err != nil || name == "" {
		return nil
	}
	var all []*commune.Commune
	for _, c := range table.Named(text.Terms(townSuffix.ReplaceAllString(name, ""))) {
		all = append(append(all, c), table.Children(c.Code)...)
	}
	return all
}

func haveSuchPostcode(communes []*commune.Commune, code string) bool {
	return slices.ContainsFunc(communes, func(c *commune.Commune) bool { return c.HasPostcode(code) })
}

// isOfDepartment reports whether a postcode begins with the department of one of some communes: a CEDEX postcode is not a commune's.
func isOfDepartment(communes []*commune.Commune, code string) bool {
	return slices.ContainsFunc(communes, func(c *commune.Commune) bool { return c.Department() == commune.DepartmentOf(code) })
}

// readPostalTown takes postcode and commune from their common column, unless they have columns of their own.
func (b *builder) readPostalTown(a *locations.SiteAddress) {
	whole := b.cleanField(mapping.PostalTown)
	if whole == "" {
		return
	}
	column := b.columnOf(mapping.PostalTown)
	code, town, ok := clean.PostalTown(whole)
	if postcode, isCode := clean.Postcode(whole); !ok && isCode {
		code, ok = postcode, true
	} else if !ok && isTown(whole) {
		town, ok = whole, true
	}
	switch {
	case !ok || utf8.RuneCountInString(town) > 100:
		b.recordWarning(warningPostalTown, column, whole)
		b.keepInProperties(column, whole)
	case a.PostalCode != "" && code != "" && a.PostalCode != code:
		b.keepInProperties(column, whole)
	default:
		b.recordFix(fixTownSplit, column, whole, joinWords(code, "|", town))
		a.PostalCode, a.City = cmp.Or(a.PostalCode, code), cmp.Or(a.City, town)
	}
}

func (b *builder) readInseeCode() string {
	text := b.cleanField(mapping.InseeCode)
	if text == "" {
		return ""
	}
	code, ok := clean.InseeCode(text)
	if !ok {
		column := b.columnOf(mapping.InseeCode)
		b.recordWarning(warningInsee, column, text)
		b.keepInProperties(column, text)
	}
	return code
}

// buildLines returns the two lines of an address. A number with its own column goes before the street. If a file has both a street in parts
// and a whole line that says something else, the street is the first line.
func (b *builder) buildLines(a *locations.SiteAddress) (line1, line2 string) {
	whole := b.cleanField(mapping.Line1)
	street := joinWords(b.cleanField(mapping.StreetType), b.cleanField(mapping.StreetName))
	if street != "" && strings.HasPrefix(text.Fold(b.cleanField(mapping.StreetName))+" ", text.Fold(b.cleanField(mapping.StreetType))+" ") {
		street = b.cleanField(mapping.StreetName) // "rue" and "rue de la Paix"
	}
	line1 = whole
	var further []string
	if street != "" && !strings.Contains(text.Fold(whole), text.Fold(street)) {
		line1 = street
		further = append(further, whole)
	}
	line1 = b.prependNumber(line1)
	for _, column := range b.columns[mapping.Line2] {
		further = append(further, b.cleanCell(column, false))
	}
	return b.joinFurther(line1, further, a)
}

// joinFurther makes the second line of everything outside the first. A part that only repeats postcode and town, or the first line,
// is left out; if it is the only part it becomes the first line.
func (b *builder) joinFurther(line1 string, parts []string, a *locations.SiteAddress) (string, string) {
	var kept []string
	for _, p := range parts {
		if p == "" || text.Fold(p) == text.Fold(line1) {
			continue
		}
		if rest, code, city, ok := splitTown(p); ok && rest == "" && (a.PostalCode == "" || a.PostalCode == code) &&
			(a.City == "" || isSameTown(a.City, city)) {
			a.PostalCode, a.City = code, cmp.Or(a.City, city)
			b.fixed.add(string(fixTownSplit), b.record.Line, string(mapping.Line2), p, joinWords(code, a.City))
			continue
		}
		kept = append(kept, p)
	}
	if line1 == "" && len(kept) > 0 {
		line1, kept = kept[0], kept[1:]
	}
	return line1, strings.Join(kept, ", ")
}

// prependNumber puts the house number and its suffix before a street that does not begin with a number.
func (b *builder) prependNumber(street string) string {
	number, _ := clean.Number(b.cleanField(mapping.HouseNumber))
	if suffix := b.cleanField(mapping.Suffix); suffix != "" && number == "" {
		b.keepInProperties(b.columnOf(mapping.Suffix), suffix)
	}
	if number == "" || number == "0" || beginsWithNumber(street, number) {
		return street
	}
	if street == "" {
		b.keepInProperties(b.columnOf(mapping.HouseNumber), number)
		return ""
	}
	line := joinWords(number, b.cleanField(mapping.Suffix), street)
	b.recordFix(fixNumberPrepended, b.columnOf(mapping.HouseNumber), street, line)
	return line
}

// beginsWithNumber reports whether a street has its number already: the same, or another one that is not an ordinal (1ère Avenue).
func beginsWithNumber(street, number string) bool {
	digits := strings.IndexFunc(street, func(r rune) bool { return r < '0' || r > '9' })
	if digits <= 0 {
		return false
	}
	return strings.HasPrefix(street, number) || !ordinal.MatchString(street)
}

// ordinal is a name that begins with an ordinal or counts something: 1ère Avenue, 8 mai 1945.
var ordinal = regexp.MustCompile(`(?i)^\d+\s?(er|ère|ere|e|ème|eme|nde?|janv|févr|mars|avril|mai|juin|juil|août|aout|sept|oct|nov|déc|dec)`)

// townAtEnd is an address that ends in a postcode and perhaps a town and the country.
var townAtEnd = regexp.MustCompile(`(?i)^(.*?)[\s,;|/–-]*\b(?:F-?\s?)?(\d{2}\s?\d{3})(?:[\s,–-]+([\pL][\pL\s'’.\-/()]*?(?:\s+cedex(?:\s+\d{1,2})?|\s+\d{1,2}(?:e|er|ème|eme))?))?(?:[\s,]+france)?[\s,.]*$`)

// splitTown splits a line that ends in a postcode that exists in France, with or without a town.
func splitTown(line string) (rest, code, city string, ok bool) {
	found := townAtEnd.FindStringSubmatch(line)
	if found == nil {
		return line, "", "", false
	}
	code, ok = clean.Postcode(found[2])
	if !ok {
		return line, "", "", false
	}
	rest, city = strings.Trim(found[1], " ,;-–"), strings.TrimSpace(found[3])
	if postalBox.MatchString(rest) {
		return line, "", "", false
	}
	if rest == "" && !isTown(city) {
		return line, "", "", false // a house number of five digits and its street
	}
	return rest, code, city, true
}

// postalBox is the end of a line whose number is that of a postal box or a road: BP 40000.
var postalBox = regexp.MustCompile(`(?i)\b(bp|b\.p\.|cs|tsa|box|n°|no|rn|rd|route)$`)

// townSuffix may follow a town without being part of its name.
var townSuffix = regexp.MustCompile(`(?i)\s+(cedex.*|\d+\S*)$`)

// isTown reports whether a text is the name of a French commune.
func isTown(name string) bool {
	table, err := commune.Load()
	return err == nil && table.IsName(townSuffix.ReplaceAllString(name, ""), false)
}

// splitLine takes postcode and town from the end of a line if their fields are empty or agree.
func (b *builder) splitLine(line string, a *locations.SiteAddress) string {
	rest, code, city, ok := splitTown(line)
	if !ok || a.PostalCode != "" && a.PostalCode != code || city == "" && rest == "" {
		return line
	}
	a.PostalCode = code
	if a.City == "" && utf8.RuneCountInString(city) <= 100 {
		a.City = city
	} else if city != "" && !isSameTown(a.City, city) {
		rest = strings.TrimSpace(rest + ", " + city) // a town that differs from the field's stays in the line
	}
	b.fixed.add(string(fixTownSplit), b.record.Line, string(mapping.Line1), line, joinWords(rest, "|", code, a.City))
	return rest
}

// isSameTown reports whether two texts name one town: the same, or one that continues where the other ends (CEDEX, a number, a name
// that was cut).
func isSameTown(a, b string) bool {
	a, b = text.Fold(townSuffix.ReplaceAllString(a, "")), text.Fold(townSuffix.ReplaceAllString(b, ""))
	isWhole := strings.HasPrefix(a+" ", b+" ") || strings.HasPrefix(b+" ", a+" ")
	return isWhole || len(b) < len(a) && strings.HasPrefix(a, b) && !isTown(b) // a name that was cut
}

// splitCity splits a commune that holds its postcode too: "75014 PARIS", "Paris (75014)".
func (b *builder) splitCity(a *locations.SiteAddress) {
	rest, code, city, ok := splitTown(a.City)
	if !ok || rest != "" {
		code, city, ok = clean.PostalTown(a.City)
		rest = ""
	}
	if ok && rest == "" && city != "" && (a.PostalCode == "" || a.PostalCode == code) {
		b.fixed.add(string(fixTownSplit), b.record.Line, string(mapping.City), a.City, joinWords(code, city))
		a.PostalCode, a.City = code, city
	}
}

// joinWords joins the texts that are not empty.
func joinWords(texts ...string) string {
	var words []string
	for _, t := range texts {
		if t != "" {
			words = append(words, t)
		}
	}
	return strings.Join(words, " ")
}
