package sitefile_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lieudit/http/sitefile"
	"lieudit/http/sitefile/mapping"
)

// inventedFile is a file whose meaning is known: groups of columns that were drawn together. A group can be taken out, and what the
// others mean stays the same, so a file that is read wrongly can be made smaller.
type inventedFile struct {
	groups        []group
	rows          []int // of the groups, that the file has
	form          fileForm
	repeatsHeader bool
}

// group is some columns and what their cells mean.
type group struct {
	names      []string
	rows       []groupRow
	isGeometry bool // the geometry of a GeoJSON feature, as GeoJSON
}

// groupRow is the cells of one row, what they were before they were damaged, and the fields of the site that they mean. A group
// without a field is an extra column, which belongs into proprietes.
type groupRow struct {
	cells, plain []string
	means        map[mapping.Field]string
}

// TestInventedFilesAreReadAsTheyWereMeantOrItIsSaid: what is stored is what was meant; or the fact stands in proprietes under its
// column's name; or a warning or an error names it. A file that is read otherwise is made as small as it gets before it is shown.
func TestInventedFilesAreReadAsTheyWereMeantOrItIsSaid(t *testing.T) {
	t.Parallel()
	files := uint64(500)
	if testing.Short() {
		files = 60
	}
	d := newDrawer(t)
	var stored, said, refused int
	for seed := range files {
		f := d.drawFile(seed)
		o := f.read()
		if stored, said = stored+o.stored, said+o.said; o.refusal != "" {
			refused++
			t.Logf("seed %d is refused: %s", seed, o.refusal)
		}
		reportFaults(t, seed, f, o)
	}
	if t.Logf("%d facts are fields, %d are said, %d files are refused", stored, said, refused); stored < 9*said || refused*20 > int(files) {
		t.Error("too little is recognized: most columns are called as real ones are, and most files have nothing that needs a refusal")
	}
}

// FuzzInventedFiles tries other seeds than the test: go test -fuzz InventedFiles.
func FuzzInventedFiles(f *testing.F) {
	f.Add(uint64(0))
	d := newDrawer(f)
	f.Fuzz(func(t *testing.T, seed uint64) {
		d := *d // draws one file at a time
		file := d.drawFile(seed)
		reportFaults(t, seed, file, file.read())
	})
}

// reportFaults makes faults errors, unless they are known.
func reportFaults(t *testing.T, seed uint64, f inventedFile, o outcome) {
	t.Helper()
	if len(o.faults) > 0 {
		small := f.shrink()
		t.Errorf("seed %d: %s\n%s\n%s", seed, strings.Join(small.read().faults, "; "), small.form, small.show())
	}
}

// outcome is what became of a file: what is stored wrongly without a word; or the reason why it is refused; and how many facts are
// in their fields, or are not but said.
type outcome struct {
	faults       []string
	refusal      string
	stored, said int
}

// read reads a file, with the id that its refusal proposes, and compares its sites with what was meant.
func (f inventedFile) read() (o outcome) {
	text := f.encode()
	i, err := sitefile.Read(strings.NewReader(text), int64(len(text)), "", sitefile.Options{})
	if err == nil && i.ProposedID != "" {
		i, err = sitefile.Read(strings.NewReader(text), int64(len(text)), "", sitefile.Options{Columns: mapping.Given{ID: i.ProposedID}})
	}
	switch {
	case err != nil:
		return outcome{refusal: err.Error()}
	case len(i.Errors) > 0:
		return outcome{refusal: i.Errors[0].Reason}
	case len(i.Sites) != len(f.rows) && hasWarning(i, "repeats another row"):
		return outcome{} // which one is left out is not said: there is nothing to compare
	case len(i.Sites) != len(f.rows):
		return outcome{faults: []string{fmt.Sprintf("%d sites of %d rows", len(i.Sites), len(f.rows))}}
	}
	columns := f.indexColumns(i.Mapping)
	for n, row := range f.rows {
		r := storedRow{read: i, columns: columns, site: i.Sites[n]}
		if raw := i.Sites[n].Content.Properties; raw != nil {
			if err := json.Unmarshal(raw, &r.properties); err != nil {
				o.faults = append(o.faults, err.Error())
			}
		}
		f.compareRow(r, row, &o)
	}
	return o
}

func hasWarning(i *sitefile.Import, kind string) bool {
	return slices.ContainsFunc(i.Warnings, func(d sitefile.Issue) bool { return strings.Contains(d.Kind, kind) })
}

// storedRow is a site that was read, next to the columns of its file.
type storedRow struct {
	read       *sitefile.Import
	columns    map[columnKey]int // in the mapping
	site       sitefile.Site
	properties map[string]any
}

// columnKey is a column of an invented file.
type columnKey struct{ group, column int }

// indexColumns finds the columns of the file in the mapping, by their names. Of two with one name the first comes first.
func (f inventedFile) indexColumns(m mapping.Mapping) map[columnKey]int {
	index := map[columnKey]int{}
	next := map[string]int{}
	for g, group := range f.groups {
		for c, name := range group.names {
			at := slices.Index(m.Columns[next[name]:], name)
			if at < 0 {
				continue
			}
			index[columnKey{g, c}] = next[name] + at
			next[name] += at + 1
		}
	}
	return index
}

// compareRow notes what a site has that was not meant, and what was meant that it has not.
func (f inventedFile) compareRow(r storedRow, row int, o *outcome) {
	addFault := func(format string, args ...any) {
		o.faults = append(o.faults, fmt.Sprintf("line %d: ", r.site.Line)+fmt.Sprintf(format, args...))
	}
	stored := describeContent(r.site)
	if line := stored[mapping.Line1]; line != "" && line == f.meaning(mapping.Line2, row) && f.meaning(mapping.Line1, row) == "" {
		stored[mapping.Line2] = line // a second line that is all there is becomes the first
		delete(stored, mapping.Line1)
	}
	for _, field := range slices.Sorted(maps.Keys(stored)) {
		if !f.means(field, row) && !r.isFallback(field) {
			addFault("%s is %q, and nothing means it", field, stored[field])
		}
	}
	for n, g := range f.groups {
		for _, field := range slices.Sorted(maps.Keys(g.rows[row].means)) {
			switch want, got := g.rows[row].means[field], stored[field]; {
			case sameValue(field, want, got):
				o.stored++
			case r.isSaid(f, n, row, field, got):
				o.said++
			default:
				addFault("%s is %q, meant is %q", field, got, want)
			}
		}
		if len(g.rows[row].means) == 0 && !r.isKept(f, n, row) {
			addFault("%q of the column %q is not stored", g.rows[row].plain, g.names)
		}
	}
}

// means reports whether a group of the file means a field, be it that the field is empty.
func (f inventedFile) means(field mapping.Field, row int) bool {
	return slices.ContainsFunc(f.groups, func(g group) bool {
		_, means := g.rows[row].means[field]
		return means
	})
}

// meaning is what a field of a row is meant to be, "" for nothing.
func (f inventedFile) meaning(field mapping.Field, row int) string {
	for _, g := range f.groups {
		if text, means := g.rows[row].means[field]; means {
			return text
		}
	}
	return ""
}

// isSaid reports whether the user learns that a field is not what was meant: from a warning about a column of the group, or because
// all of its cells stand in proprietes while the field is empty. A cell of several may also be a part of the field's text.
func (r storedRow) isSaid(f inventedFile, n, row int, field mapping.Field, got string) bool {
	g := f.groups[n]
	if slices.ContainsFunc(r.read.Warnings, func(d sitefile.Issue) bool { return slices.Contains(g.names, d.Column) }) {
		return true
	}
	if got != "" && g.rows[row].isEmpty() && r.isFallback(field) {
		return true
	}
	if field == mapping.ExternalID {
		return r.isKept(f, n, row) // another column may be the id
	}
	if field == mapping.Line2 && got == "" {
		return describeContent(r.site)[mapping.Line1] == g.rows[row].means[field] // all that there is
	}
	rest := got
	for c := len(g.names) - 1; c >= 0; c-- { // a number may stand in the name of the street too
		without := strings.Replace(rest, g.rows[row].plain[c], "", 1)
		isPart := len(g.names) > 1 && without != rest
		if !isPart && !r.hasProperty(columnKey{n, c}, g.rows[row], c) {
			return false
		}
		if isPart {
			rest = without
		}
	}
	return strings.TrimSpace(rest) == ""
}

// isFallback reports whether a field may come from a column that also is a property of the row, which the preview says.
func (r storedRow) isFallback(field mapping.Field) bool {
	return slices.ContainsFunc(r.read.Mapping.Targets, func(t mapping.Target) bool {
		_, has := r.properties[t.Property]
		return has && t.Fallback == field
	})
}

func (g groupRow) isEmpty() bool { return strings.Join(g.plain, "") == "" }

// isKept reports whether all cells of a group stand in proprietes, or are the id.
func (r storedRow) isKept(f inventedFile, n, row int) bool {
	for c := range f.groups[n].names {
		if !r.hasProperty(columnKey{n, c}, f.groups[n].rows[row], c) {
			return false
		}
	}
	return true
}

// hasProperty reports whether a cell stands in proprietes under its column's name, or nothing is to be kept of it.
func (r storedRow) hasProperty(key columnKey, g groupRow, c int) bool {
	column, ok := r.columns[key]
	if !ok || g.plain[c] == "" {
		return g.plain[c] == ""
	}
	t := r.read.Mapping.Targets[column]
	name := r.read.Mapping.Columns[column]
	for _, k := range []string{t.Property, name, name + "_2"} {
		if v, has := r.properties[k]; has && (describeProperty(v) == g.plain[c] || sameNumber(fmt.Sprint(v), g.plain[c])) {
			return true
		}
	}
	return t.Field == mapping.ExternalID && (r.site.ExternalID == g.plain[c] || sameNumber(r.site.ExternalID, g.plain[c]))
}

// describeProperty is a value of proprietes as a text of one line. Properties keep the lines of texts.
func describeProperty(v any) string { return strings.Join(strings.Fields(fmt.Sprint(v)), " ") }

// sameNumber reports whether two texts are one number.
func sameNumber(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err == nil && err2 == nil && x == y
}

// describeContent is the fields that a site has, as texts.
func describeContent(s sitefile.Site) map[mapping.Field]string {
	c := s.Content
	all := map[mapping.Field]string{
		mapping.ExternalID: s.ExternalID, mapping.Name: c.Name, mapping.Phone: c.Phone, mapping.Email: c.Email, mapping.Website: c.Website,
		mapping.Tags: strings.Join(c.Tags, "|"), mapping.Hours: describeHours(c.Hours), mapping.IDBan: c.IDBan,
	}
	if a := c.Address; a != nil {
		all[mapping.Line1], all[mapping.Line2], all[mapping.PostalCode], all[mapping.City] = a.Line1, a.Line2, a.PostalCode, a.City
		all[mapping.InseeCode], all[mapping.Country] = a.InseeCode, a.Country
	}
	if c.Lat != nil && c.Lon != nil {
		all[mapping.Lat], all[mapping.Lon] = fmt.Sprint(*c.Lat), fmt.Sprint(*c.Lon)
	}
	for field, text := range all {
		if text == "" || field == mapping.ExternalID && len(text) == 20 { // an id that was made of other fields
			delete(all, field)
		}
	}
	return all
}

// describeHours is the hours of a week, a span a day, or their text.
func describeHours(raw json.RawMessage) string {
	var h struct {
		Weekly []struct {
			Days     []string `json:"jours"`
			From, To string
			De, A    string
		} `json:"hebdo"`
		Text string `json:"texte"`
	}
	if raw == nil || json.Unmarshal(raw, &h) != nil {
		return string(raw)
	}
	var spans []string
	for _, w := range h.Weekly {
		for _, day := range w.Days {
			spans = append(spans, day+" "+w.De+"-"+w.A)
		}
	}
	if slices.Sort(spans); len(spans) == 0 {
		return h.Text
	}
	return strings.Join(spans, ", ")
}

// sameValue compares a field; degrees to a metre, since a projection is one to a centimetre.
func sameValue(field mapping.Field, want, got string) bool {
	if want == got || field != mapping.Lat && field != mapping.Lon {
		return want == got
	}
	x, err := strconv.ParseFloat(want, 64)
	y, err2 := strconv.ParseFloat(got, 64)
	return err == nil && err2 == nil && math.Abs(x-y) < 1e-5
}

// shrink takes rows and groups out of a file while it still has a fault.
func (f inventedFile) shrink() inventedFile {
	isFaulty := func(g inventedFile) bool {
		return len(g.rows) > 0 && len(g.groups) > 0 && len(g.read().faults) > 0
	}
	for isSmaller := true; isSmaller; {
		isSmaller = false
		for n := len(f.rows) - 1; n >= 0; n-- {
			if g := f; isFaulty(g.withoutRow(n)) {
				f, isSmaller = g.withoutRow(n), true
			}
		}
		for n := len(f.groups) - 1; n >= 0; n-- {
			if g := f; n < len(f.groups) && isFaulty(g.withoutGroup(n)) {
				f, isSmaller = g.withoutGroup(n), true
			}
		}
	}
	return f
}

func (f inventedFile) withoutRow(n int) inventedFile {
	f.rows = slices.Delete(slices.Clone(f.rows), n, n+1)
	return f
}

// withoutGroup takes a group out, and others whose columns have its names: which of two alike means the field, the first says.
func (f inventedFile) withoutGroup(n int) inventedFile {
	out := f.groups[n]
	f.groups = slices.DeleteFunc(slices.Clone(f.groups), func(g group) bool { return slices.Equal(g.names, out.names) })
	return f
}
