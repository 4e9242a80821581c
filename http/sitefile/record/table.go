package record

import (
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// The row of names is recognized by how people write tables. Names are short texts, never a decimal number, a date, a position or a
// web address. The cells below them are of one kind in each column. So a row that is like those below it is data, a row with
// one or two cells above a wider one is a title, and a row of texts over columns of numbers is a second row of names. If this does
// not decide, the first row holds the names, and Options.HeaderLine overrules.

// table reads the records of rows whose first holds the names of the columns.
type table struct {
	file        *File
	rows        iter.Seq2[Record, error] // those that have text
	names       []string
	secondNames []string // of a second row of names; nil if there is none
}

// openTable finds the row of names among the first rows, and fills info.
func openTable(rows iter.Seq2[Record, error], o Options, info Info) (*File, error) {
	sample, titleRows, err := readSample(rows, o.HeaderLine)
	switch {
	case err != nil:
		return nil, err
	case o.HeaderLine > 0 && (len(sample) == 0 || sample[0].Line != o.HeaderLine):
		return nil, &LineError{o.HeaderLine, "this line holds no names of columns: name the line that does"}
	case len(sample) == 0:
		return nil, errNoNames
	case o.HeaderLine == 0:
		err = checkHeader(sample)
	}
	if err != nil {
		return nil, err
	}
	names := trimmedTexts(sample[0].Values)
	if o.HeaderLine == NoHeader {
		names = numberedNames(sample)
	} else if info.Format == XLSX {
		names = widenNames(names, sample)
	}
	if len(names) > MaxColumns {
		return nil, &LineError{sample[0].Line, fmt.Sprintf("the row of names has more than %d columns: delete those without a name", MaxColumns)}
	}
	f := &File{info: info}
	f.table = &table{file: f, rows: rows, names: names}
	if o.HeaderLine != NoHeader {
		f.info.HeaderLine, f.info.TitleRows = sample[0].Line, titleRows
		f.table.findSecondHeader(sample[1:])
	}
	f.records = f.table.yieldRecords
	for _, name := range names {
		f.columns = append(f.columns, Column{Name: name})
	}
	return f, nil
}

// numberedNames are the names of the columns of a table without a row of names.
func numberedNames(sample []Record) []string {
	var names []string
	for len(names) < len(widenNames(nil, sample)) {
		names = append(names, fmt.Sprintf("colonne_%d", len(names)+1))
	}
	return names
}

// findSecondHeader looks for a second row of names below the first.
func (tb *table) findSecondHeader(below []Record) {
	below = slices.DeleteFunc(below, func(r Record) bool { return repeatsNames(r.Values, tb.names) })
	if hasSecondHeader(tb.names, below) {
		tb.secondNames, tb.file.info.SecondHeaderLine = trimmedTexts(below[0].Values), below[0].Line
	}
}

// errNoNames means that nothing could be a row of names.
var errNoNames = &FormatError{"no row holds names of columns: put one above the rows"}

// readSample reads the first rows from the line of the names on, and counts those above it.
func readSample(rows iter.Seq2[Record, error], headerLine int) (sample []Record, above int, err error) {
	const sampled = 60
	for r, err := range rows {
		switch {
		case err != nil && len(sample) > 0:
			return sample, above, nil // it comes again among the records
		case err != nil:
			return nil, 0, err
		case r.Line < headerLine:
			above++
			continue
		}
		if sample = append(sample, r); len(sample) == sampled {
			break
		}
	}
	return sample, above, nil
}

// widenNames adds empty names for texts of the first rows that stand to the right of the last name. A spreadsheet does not write empty
// cells, so its row of names may be shorter than the others.
func widenNames(names []string, sample []Record) []string {
	for _, r := range sample {
		for len(names) < len(r.Values) {
			names = append(names, "")
		}
	}
	return names
}

// trimmedTexts returns the names in a row.
func trimmedTexts(values []Value) []string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = trimName(v.Text)
	}
	return texts
}

// trimName is a name without the spaces around it, and without the mark that begins a file: files that were joined have it inside.
func trimName(name string) string {
	return strings.TrimFunc(name, func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' })
}

// yieldRecords yields the rows below the names, without the rows that repeat the names.
func (tb *table) yieldRecords(yield func(Record, error) bool) {
	info := &tb.file.info
	info.RepeatedHeaders = Count{}
	// Rows after the row of names are recognized by their lines, so that rows above it are skipped with it.
	for r, err := range tb.rows {
		if err == nil && r.Line <= max(info.HeaderLine, info.SecondHeaderLine) {
			continue
		}
		if err == nil && (repeatsNames(r.Values, tb.names) || repeatsNames(r.Values, tb.secondNames)) {
			info.RepeatedHeaders.Add(r.Line)
			continue
		}
		if err == nil {
			r.Values, err = tb.cutToNames(r)
		}
		if err != nil {
			yield(Record{}, err)
			return
		}
		if !isBlank(r.Values) && !yield(r, nil) {
			return
		}
	}
}

// repeatsNames reports whether a row repeats the names. Empty cells at its end may be missing.
func repeatsNames(values []Value, names []string) bool {
	hasName := false
	for i := range max(len(values), len(names)) {
		text, name := "", ""
		if i < len(values) {
			text = trimName(values[i].Text)
		}
		if i < len(names) {
			name = names[i]
		}
		if text != name {
			return false
		}
		hasName = hasName || name != ""
	}
	return hasName
}

// cutToNames are the cells of a row that have a name. A cell with text beyond the names is an error: a separator inside a text shifted
// the cells before it too. A spreadsheet's reader leaves such cells out, because they are notes next to the table.
func (tb *table) cutToNames(r Record) ([]Value, error) {
	if len(r.Values) <= len(tb.names) {
		return r.Values, nil
	}
	if isBlank(r.Values[len(tb.names):]) {
		return r.Values[:len(tb.names)], nil
	}
	return nil, &LineError{r.Line, fmt.Sprintf("%d cells, but the file has %d columns: "+
		"put quotes around a text that holds a %s, or name the other columns too",
		len(r.Values), len(tb.names), separatorName(tb.file.info.Separator))}
}

// separatorName is what a separator is called in a sentence.
func separatorName(separator rune) string {
	switch separator {
	case ',':
		return "comma"
	case ';':
		return "semicolon"
	case '\t':
		return "tab"
	}
	return strconv.QuoteRune(separator)
}

// checkHeader checks that the first row holds the names. Titles above a row of names, and a first row of numbers or positions, which
// is data, are errors. So is a single text above wider rows without a row of names.
func checkHeader(sample []Record) error {
	for i := range min(len(sample), 30) {
		if areTitlesAbove(sample, i) {
			return &TitleRowsError{HeaderLine: sample[i].Line}
		}
	}
	wider := 0
	for _, r := range sample[1:] {
		if countTexts(r.Values) >= 3 {
			wider++
		}
	}
	if countTexts(sample[0].Values) == 1 && 2*wider > len(sample) {
		return &LineError{sample[0].Line, "a single text stands here and no row of names below it: put a row of names above the rows"}
	}
	if isData(sample) {
		return &NoNamesError{&LineError{sample[0].Line, "the first row holds data, not the names of the columns: put a row of names above it"}}
	}
	return nil
}

// areTitlesAbove reports whether a row holds the names, and the first row a title, or headings of groups of names. The row has at
// least twice as many texts as the first row, and only texts. Below a first row of more than two cells, columns of numbers must
// distinguish it from a row of texts.
func areTitlesAbove(sample []Record, row int) bool {
	r, below := sample[row], sample[row+1:]
	first, texts := countTexts(sample[0].Values), countTexts(r.Values)
	if row == 0 || texts < max(3, 2*first) || !looksLikeNames(r.Values) || hasSameTypes(r, below) {
		return false
	}
	return first <= 2 || slices.ContainsFunc(below, hasNumber)
}

// hasNumber reports whether a row has a value that is not a text.
func hasNumber(r Record) bool {
	return slices.ContainsFunc(r.Values, func(v Value) bool { return typeOf(v.Text) != textType })
}

// countTexts is how many cells have text.
func countTexts(values []Value) int {
	n := 0
	for _, v := range values {
		if hasText(v) {
			n++
		}
	}
	return n
}

// isData reports whether the first row is like the others: it has a value that cannot be a name, where the others have such too.
func isData(sample []Record) bool {
	for i, v := range sample[0].Values {
		if t := typeOf(v.Text); t != textType && t != integerType && columnHasType(sample[1:], i, t) {
			return true
		}
	}
	integers := 0
	for i, v := range sample[0].Values {
		if typeOf(v.Text) == integerType && !isYear(v.Text) && (len(sample) == 1 || columnHasType(sample[1:], i, integerType)) {
			integers++
		}
	}
	return 2*integers > countTexts(sample[0].Values)
}

// isYear reports whether an integer may be a year, which is the name of a column of figures.
func isYear(cell string) bool {
	n, err := strconv.Atoi(strings.TrimSpace(cell))
	return err == nil && n >= 1900 && n <= 2100
}

// hasSameTypes reports whether a row has a number or the like in a column in which the rows below have one.
func hasSameTypes(r Record, below []Record) bool {
	for i, v := range r.Values {
		if t := typeOf(v.Text); t != textType && !isYear(v.Text) && columnHasType(below, i, t) {
			return true
		}
	}
	return false
}

// looksLikeNames reports whether a row can hold names: short texts that are not values of another type, and are not repeated often.
func looksLikeNames(values []Value) bool {
	seen := map[string]bool{}
	texts, repeated := 0, 0
	for _, v := range values {
		name := strings.TrimSpace(v.Text)
		if name == "" {
			continue
		}
		if t := typeOf(name); t != textType && t != integerType || len(name) > 100 {
			return false
		}
		if seen[name] {
			repeated++
		}
		seen[name] = true
		texts++
	}
	return texts > 0 && 4*repeated <= texts && 2*texts > len(values)
}

// cellType is the type that the text of a cell looks like.
type cellType int

// The types. A cell without text counts as a text.
const (
	textType cellType = iota
	integerType
	decimalType
	otherType // a date, a position, an e-mail address, a web address, JSON
)

// integerPattern, decimalPattern and otherPattern recognize the types. A name may be a year, but not a decimal number.
var (
	integerPattern = regexp.MustCompile(`^[-+]?[0-9]+$`)
	decimalPattern = regexp.MustCompile(`^[-+]?[0-9]*[.,][0-9]+$`)
	otherPattern   = regexp.MustCompile(`^([0-9]{4}-[0-9]{2}-[0-9]{2}.*|[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}.*|` +
		`[-0-9.]+ ?[,;] ?[-0-9.]+|\S+@\S+\.\S+|https?://.*|POINT ?\(.*)$`)
)

// typeOf is the type of a cell. Long texts are texts, since matching them takes time.
func typeOf(cell string) cellType {
	cell = strings.TrimSpace(cell)
	switch {
	case cell == "" || len(cell) > 10_000:
		return textType
	case integerPattern.MatchString(cell):
		return integerType
	case decimalPattern.MatchString(cell):
		return decimalType
	case otherPattern.MatchString(cell), strings.HasPrefix(cell, `{"`) && json.Valid([]byte(cell)):
		return otherType
	}
	return textType
}

// columnHasType reports whether nearly all cells of a column that have text look alike. An integer counts as a decimal number.
func columnHasType(rows []Record, column int, want cellType) bool {
	texts, alike := 0, 0
	for _, r := range rows {
		if column >= len(r.Values) || !hasText(r.Values[column]) {
			continue
		}
		texts++
		if t := typeOf(r.Values[column].Text); t == want || want == decimalType && t == integerType {
			alike++
		}
	}
	return texts > 0 && 10*alike >= 9*texts
}

// machineName matches the names that programs give columns.
var machineName = regexp.MustCompile(`^[A-Za-z_@][A-Za-z0-9_.:@-]*$`)

// Files of public schemas have two rows of names: one for programs, one for people. Read as a record, the second would be a
// site without an address.

// hasSecondHeader reports whether the first row below the names is a second row of names: nearly all columns have a text in it, and none
// has a value of another type. Also, either columns of numbers, dates and the like have texts in it, or one row has names for programs
// and the other the same names for people.
func hasSecondHeader(names []string, below []Record) bool {
	const fewRows = 3 // too few to conclude that only the first of them has texts there
	named := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "" })
	if len(below) < 2 || !looksLikeNames(below[0].Values) || 5*countTexts(below[0].Values) < 4*len(named) {
		return false
	}
	typed := 0
	for i, v := range below[0].Values {
		if typeOf(v.Text) != textType {
			return false
		}
		if hasText(v) && columnIsTyped(below[1:], i) {
			typed++
		}
	}
	return typed >= 2 && len(below) > fewRows || sayTheSame(names, trimmedTexts(below[0].Values))
}

// columnIsTyped reports whether a column holds values that cannot be names.
func columnIsTyped(rows []Record, column int) bool {
	return columnHasType(rows, column, integerType) || columnHasType(rows, column, decimalType) || columnHasType(rows, column, otherType)
}

// sayTheSame reports whether two rows name the same things, one for programs and one for people: most pairs share a word.
func sayTheSame(a, b []string) bool {
	if slices.ContainsFunc(a, isNoMachineName) == slices.ContainsFunc(b, isNoMachineName) {
		return false
	}
	shared, pairs := 0, 0
	for i := range min(len(a), len(b)) {
		if a[i] == "" || b[i] == "" {
			continue
		}
		pairs++
		if shareWord(a[i], b[i]) {
			shared++
		}
	}
	return pairs >= 2 && 2*shared > pairs
}

// isNoMachineName reports whether a name is written for people, with spaces or accents.
func isNoMachineName(name string) bool { return name != "" && !machineName.MatchString(name) }

// shareWord reports whether two names have a word in common, without regard to case.
func shareWord(a, b string) bool {
	wordsOfB := splitWords(b)
	return slices.ContainsFunc(splitWords(a), func(w string) bool { return slices.Contains(wordsOfB, w) })
}

// splitWords returns the words of a name, separated by any sign: nom_du_site has three.
func splitWords(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
