package sitefile

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"lieudit/http/sitefile/clean"
	"lieudit/http/sitefile/mapping"
	"lieudit/http/sitefile/record"
)

// readPhone is the first telephone number of a site. Others go to proprietes.telephones, and other text goes under the column's name.
func (b *builder) readPhone() string {
	text := b.cleanField(mapping.Phone)
	if text == "" {
		return ""
	}
	column := b.columnOf(mapping.Phone)
	if clean.IsEmptyWord(text) {
		b.recordFix(clean.EmptySign, column, text, "")
		return ""
	}
	numbers, rest := clean.Phones(text, "FR")
	switch {
	case rest == "":
	case len(numbers) > 0:
		b.recordFix(fixBesidePhone, column, text, numbers[0])
		b.keepInProperties(column, text)
	default:
		b.recordWarning(warningPhone, column, text)
		b.keepInProperties(column, text)
	}
	if len(numbers) == 0 {
		return ""
	}
	if len(numbers) > 1 {
		b.properties.set("telephones", numbers[1:])
	}
	if numbers[0] != text {
		b.recordFix(clean.Phone, column, text, numbers[0])
	}
	return numbers[0]
}

func (b *builder) readEmail() string {
	return b.readContact(mapping.Email, clean.Email, clean.EmailForm, warningEmail, 254)
}

func (b *builder) readWebsite() string {
	return b.readContact(mapping.Website, clean.Website, clean.WebsiteScheme, warningWebsite, 2048)
}

// readContact is the first address in a column; a text without one goes to proprietes.
func (b *builder) readContact(f mapping.Field, parse func(string) (string, bool), kind clean.Fix, warning string, limit int) string {
	text := b.cleanField(f)
	if text == "" {
		return ""
	}
	column := b.columnOf(f)
	if clean.IsEmptyWord(text) {
		b.recordFix(clean.EmptySign, column, text, "")
		return ""
	}
	address, ok := parse(b.value(column).Text) // unfixed: a link of HTML is not a text
	if !ok || len(address) > limit {
		b.recordWarning(warning, column, text)
		b.keepInProperties(column, text)
		return ""
	}
	if address != text {
		if hasOtherWords(text, address) {
			kind = fixFirstOfSeveral
			b.keepInProperties(column, text)
		}
		b.recordFix(kind, column, text, address)
	}
	return address
}

// hasOtherWords reports whether a text says more than an address of the web or of mail.
func hasOtherWords(text, address string) bool {
	_, bare, _ := strings.Cut(address, "://")
	if bare == "" {
		bare = address
	}
	rest := strings.Replace(text, strings.TrimSuffix(bare, "/"), "", 1)
	for _, scheme := range []string{"https", "http", "mailto"} {
		rest = strings.ReplaceAll(rest, scheme, "")
	}
	return strings.ContainsFunc(rest, unicode.IsLetter)
}

// buildHours builds the opening hours from one column, or from one column for each day.
func (b *builder) buildHours() json.RawMessage {
	if days, ok := b.readWeekdays(); ok {
		if hours, ok := clean.WeekdayHours(days); ok {
			if column := b.columnOf(mapping.Hours); column >= 0 && !b.isEmpty(column) {
				b.keepInProperties(column, b.cleanCell(column, true)) // the days say more
			}
			b.fixed.add(string(clean.OpeningHours), b.record.Line, "lundi … dimanche", strings.Join(days[:], " | "), string(hours))
			return hours
		}
		for n, f := range mapping.Weekdays {
			if list := b.columns[f]; len(list) > 0 && days[n] != "" {
				b.keepInProperties(list[0], days[n])
			}
		}
		b.warnings.add(warningDayHours, b.record.Line, "lundi … dimanche", strings.Join(days[:], " | "), "")
	}
	column := b.columnOf(mapping.Hours)
	if column < 0 {
		return nil
	}
	v := b.value(column)
	if v.JSON == nil {
		v.Text = b.cleanCell(column, true)
	}
	if v.Text == "" && v.JSON == nil {
		return nil
	}
	hours, isRead := b.readHours(v)
	switch {
	case isRead:
		b.recordFix(clean.OpeningHours, column, v.Text, string(hours))
	case hours != nil:
		b.recordWarning(warningHours, column, cmp.Or(v.Text, string(v.JSON)))
	}
	return hours
}

// readHours reads opening hours. Sites of one company often share them, so results are cached.
func (b *builder) readHours(v record.Value) (hours json.RawMessage, isRead bool) {
	key := v.Text + string(v.JSON)
	if known, ok := b.hoursCache[key]; ok {
		return known.hours, known.isRead
	}
	hours, isRead = clean.Hours(v.Text, v.JSON)
	if len(b.hoursCache) < maxCachedHours {
		b.hoursCache[key] = parsedHours{hours, isRead}
	}
	return hours, isRead
}

// parsedHours is the result of reading a text of opening hours.
type parsedHours struct {
	hours  json.RawMessage
	isRead bool
}

// maxCachedHours bounds the cached texts of opening hours.
const maxCachedHours = 1000

// readWeekdays returns the texts of the columns of days; false if the file or the record has none.
func (b *builder) readWeekdays() (days [7]string, ok bool) {
	for n, f := range mapping.Weekdays {
		if days[n] = b.cleanField(f); days[n] != "" {
			ok = true
		}
	}
	return days, ok
}

// readTags returns the tags of a column, each once. If one is too long all of them go to proprietes.
func (b *builder) readTags() []string {
	list := b.columns[mapping.Tags]
	if len(list) == 0 {
		return nil
	}
	v := b.value(list[0])
	text := string(v.JSON)
	if v.JSON == nil {
		text = b.cleanCell(list[0], false)
	}
	var tags []string
	for _, t := range parseTags(text) {
		if t, _ = clean.Text(t, false); t != "" && !slices.Contains(tags, t) {
			tags = append(tags, t)
		}
	}
	if len(tags) > 50 {
		b.recordWarning(warningManyTags, list[0], text)
		b.keepInProperties(list[0], text)
		return nil
	}
	if slices.ContainsFunc(tags, func(t string) bool { return utf8.RuneCountInString(t) > 64 }) {
		b.recordWarning(warningTagsTooLong, list[0], text)
		b.keepInProperties(list[0], text)
		return nil
	}
	return tags
}

// parseTags parses a JSON list, or texts separated by commas or bars. Spaces around a text and empty texts are dropped,
// except in a JSON list.
func parseTags(cell string) []string {
	var tags []string
	if strings.HasPrefix(cell, "[") && json.Unmarshal([]byte(cell), &tags) == nil {
		return tags
	}
	tags = nil
	for t := range strings.FieldsFuncSeq(cell, func(r rune) bool { return r == ',' || r == '|' }) {
		if t = strings.TrimSpace(t); t != "" {
			tags = append(tags, t)
		}
	}
	return tags
}
