package sitefile

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"lieudit/http/sitefile/clean"
	"lieudit/http/sitefile/mapping"
	"lieudit/http/sitefile/record"
)

// builder builds the sites of one file. It counts fixes and warnings.
type builder struct {
	imported      *Import
	mapping       *mapping.Mapping
	info          record.Info
	shapes        Shapes
	columns       map[mapping.Field][]int
	fallbacks     map[mapping.Field][]int
	fixed         issues
	warnings      issues
	faults        issues // warnings that are errors, each with its advice
	ids           *identifier
	oversized     *oversizedProperties
	postcodeShift shiftDetector
	hasName       bool

	hoursCache map[string]parsedHours

	// of the current record
	row               int   // its number
	countedAt         []int // by column: the row whose cell was counted last
	positionFaults    []positionFault
	record            record.Record
	properties        properties
	hasOwnAddressPart bool // its own columns hold a part of its address
}

func newBuilder(i *Import, info record.Info, o Options) *builder {
	b := &builder{
		imported: i, mapping: &i.Mapping, info: info, shapes: o.Shapes,
		columns: map[mapping.Field][]int{}, fallbacks: map[mapping.Field][]int{}, hoursCache: map[string]parsedHours{},
		fixed: issues{}, warnings: issues{}, faults: issues{}, countedAt: make([]int, len(i.Mapping.Targets)),
	}
	for column, t := range i.Mapping.Targets {
		if t.Field != "" {
			b.columns[t.Field] = append(b.columns[t.Field], column)
		}
		if t.Fallback != "" {
			b.fallbacks[t.Fallback] = append(b.fallbacks[t.Fallback], column)
		}
	}
	_, b.hasName = i.Mapping.Find(mapping.Name)
	b.ids, b.oversized = newIdentifier(b), &oversizedProperties{sizes: map[string]int{}}
	return b
}

// build builds the site of a record, or returns false if it leaves the record out, which it counts.
func (b *builder) build(r record.Record) (Site, bool) {
	b.record, b.properties, b.positionFaults = r, properties{}, nil
	b.row++
	b.hasOwnAddressPart = slices.ContainsFunc(addressFields, func(f mapping.Field) bool {
		list := b.columns[f]
		return len(list) > 0 && !b.isEmpty(list[0])
	})
	s := Site{Line: r.Line, unknown: r.Uncomputed}
	if b.mapping.IsExport {
		b.fillExported(&s)
	} else if !b.isInBusiness() || !b.fill(&s) {
		return s, false
	}
	return s, b.ids.identify(&s)
}

// isInBusiness reports whether the site of the record is in business, as all are without a column for it. A closed one is left out:
// a sync makes it inactive or does not create it.
func (b *builder) isInBusiness() bool {
	text := b.cleanField(mapping.Active)
	if text == "" {
		return true
	}
	column := b.columnOf(mapping.Active)
	switch isOpen, known := clean.IsOpen(text, mapping.ActiveFlag(b.mapping.Columns[column])); {
	case !known:
		b.recordWarning(warningActive, column, text)
		b.keepInProperties(column, text)
	case !isOpen:
		b.recordWarning(warningClosed, column, text)
		return false
	}
	return true
}

// fill fixes the values of a record and puts them into a site; false means that the site is left out.
func (b *builder) fill(s *Site) bool {
	c := &s.Content
	c.Name = b.truncate(mapping.Name, b.cleanField(mapping.Name), 200)
	if c.Name == "" && b.hasName {
		b.warnings.add(warningNoName, s.Line, "", "", "")
	}
	c.Address = b.buildAddress()
	c.IDBan = b.truncate(mapping.IDBan, b.cleanField(mapping.IDBan), 64)
	if !b.fillPosition(c) {
		return false
	}
	c.Hours = b.buildHours()
	c.Phone, c.Email, c.Website = b.readPhone(), b.readEmail(), b.readWebsite()
	c.Tags = b.readTags()
	b.keepProperties()
	c.Properties = b.properties.marshal()
	b.oversized.check(s.Line, &b.properties, c.Properties)
	return true
}

// value is the value of a column of the record; empty if the record is shorter.
func (b *builder) value(column int) record.Value {
	if column >= len(b.record.Values) {
		return record.Value{}
	}
	v := b.record.Values[column]
	if b.mapping.IsQuoted[column] && !b.mapping.IsExport {
		v.Text, _ = mapping.Unquote(strings.TrimSpace(v.Text))
	}
	return v
}

// addressFields are the fields that come from the same columns: a row whose own columns hold a part of its address takes none from fallbacks.
var addressFields = []mapping.Field{mapping.HouseNumber, mapping.StreetName, mapping.Line1, mapping.PostalCode, mapping.City}

// columnOf is the column of a field in a record: the field's own, otherwise the first fallback that is filled; -1 if the file has neither.
func (b *builder) columnOf(f mapping.Field) int {
	list := b.columns[f]
	if len(list) == 0 {
		list = b.fallbacks[f]
	}
	if len(list) == 0 {
		return -1
	}
	if !b.isEmpty(list[0]) || b.hasOwnAddressPart && slices.Contains(addressFields, f) {
		return list[0]
	}
	for _, column := range b.fallbacks[f] {
		if !b.isEmpty(column) {
			return column
		}
	}
	return list[0]
}

func (b *builder) isEmpty(column int) bool {
	v := b.value(column)
	return v.JSON == nil && (strings.TrimSpace(v.Text) == "" || clean.IsEmptySign(v.Text))
}

// cleanField is the fixed text of a field, "" if the file or the record does not have it.
func (b *builder) cleanField(f mapping.Field) string {
	if column := b.columnOf(f); column >= 0 {
		return b.cleanCell(column, false)
	}
	return ""
}

// cleanCell is the fixed text of a column.
func (b *builder) cleanCell(column int, keepLines bool) string {
	raw := b.value(column).Text
	text, fixes := clean.Text(raw, keepLines)
	isEmpty := text != "" && clean.IsEmptySign(text)
	if b.countedAt[column] != b.row { // a column may be read more than once
		b.countedAt[column] = b.row
		b.countCell(column, raw, text, fixes, isEmpty)
	}
	if isEmpty {
		return ""
	}
	return text
}

func (b *builder) countCell(column int, raw, text string, fixes []clean.Fix, isEmpty bool) {
	for _, m := range fixes {
		b.recordFix(m, column, raw, text)
	}
	switch {
	case isEmpty:
		b.recordFix(clean.EmptySign, column, raw, "")
	case isShortened(text):
		b.recordWarning(warningScientific, column, text)
	}
}

func (b *builder) recordFix(kind clean.Fix, column int, before, after string) {
	b.fixed.add(string(kind), b.record.Line, b.mapping.Columns[column], before, after)
}

func (b *builder) recordWarning(kind string, column int, value string) {
	b.warnings.add(kind, b.record.Line, b.mapping.Columns[column], value, "")
}

// keepInProperties stores the text of a column in proprietes too, under the column's own name, because its field took only a part of it.
func (b *builder) keepInProperties(column int, text string) {
	b.properties.set(b.mapping.Columns[column], text)
}

// truncate cuts a text at a number of characters, between words if possible, and keeps the whole in proprietes.
func (b *builder) truncate(f mapping.Field, text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	cut := string([]rune(text)[:limit])
	if at := strings.LastIndexByte(cut, ' '); at > len(cut)/2 {
		cut = cut[:at]
	}
	b.properties.set(string(f), text)
	b.fixed.add(string(fixCut), b.record.Line, string(f), text, cut)
	return cut
}

// finish turns the counts into the report.
func (b *builder) finish() {
	b.ids.finish()
	b.oversized.addError(b.imported)
	b.postcodeShift.addError(b.imported)
	for _, f := range b.faults.list() {
		if few := b.imported.Rows / 50; f.isTolerable && f.Count <= few {
			b.warnings[f.Kind] = &f
			continue
		}
		example := ""
		if f.Before != "" {
			example = fmt.Sprintf(", such as %q", f.Before)
		}
		b.imported.addError(f.advice, "%s: %s%s", f.DescribeLines(), f.Kind, example)
	}
	b.imported.Fixed, b.imported.Warnings = b.fixed.list(), b.warnings.list()
}
