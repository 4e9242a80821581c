package mapping

import (
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"lieudit/http/sitefile/clean"
	"lieudit/http/sitefile/geometry"
	"lieudit/http/sitefile/record"
)

// Profile is what is known about the columns of a file after all its records were observed.
type Profile struct {
	Rows    int
	Columns []*Stats

	shortest int // cells of the shortest row: later columns have firstEmpty
}

// Stats describes the content of a column: how often it is filled, a sample of its values, and whether its values are unique.
type Stats struct {
	Column record.Column
	Filled int

	matches []nameMatch // the fields after which Column is named

	samples []sample

	previous   int  // the last value, while the column counts its rows
	isCounting bool // every value is a whole number and one more than the one before
	isRising   bool // every value is a whole number and more than the one before

	quoted     int // values that begin with an apostrophe and a digit or a sign, as shops and spreadsheets export numbers
	isIDLike   bool
	isTooLong  bool           // for an id
	firstLine  map[string]int // of each value, where isIDLike
	repeated   []Repeated
	firstEmpty int // the line of the first empty cell; 0 if there is none
	random     *rand.Rand
}

// sample is a value of a column, and whether it was JSON that is not a text.
type sample struct {
	text   string
	isJSON bool
}

// newSample makes a sample of a value, without the stray characters of a text that an import removes.
func newSample(text string, v record.Value) sample {
	if cleaned, _ := clean.Text(text, false); v.JSON == nil && cleaned != "" {
		text = cleaned
	}
	return sample{text, v.JSON != nil}
}

// Repeated is a value that occurs in two rows of a column.
type Repeated struct {
	Value        string
	First, Again int // lines
}

// Bounds of a profile: how many values of a column are sampled, how many repeated values are kept, and how long an id can be.
const (
	maxSamples  = 400
	maxRepeated = 20
	maxIDLength = 128
)

// Observe adds a record to the profile. Columns are those of the file at that moment; a file of JSON may have more later.
func (p *Profile) Observe(columns []record.Column, r record.Record) {
	for i := len(p.Columns); i < len(columns); i++ {
		s := &Stats{Column: columns[i], matches: matchName(columns[i].Name), random: rand.New(rand.NewPCG(1, uint64(i)))}
		if _, s.isIDLike = s.rankFor(ExternalID); s.isIDLike {
			s.firstLine = map[string]int{}
		}
		p.Columns = append(p.Columns, s)
		p.shortest = len(p.Columns)
	}
	p.Rows++
	n := min(len(r.Values), len(p.Columns))
	for i, v := range r.Values[:n] {
		p.Columns[i].observe(v, r.Line)
	}
	if n < p.shortest {
		for _, c := range p.Columns[n:p.shortest] {
			c.observe(record.Value{}, r.Line)
		}
		p.shortest = n
	}
}

func (s *Stats) observe(v record.Value, line int) {
	text := strings.TrimSpace(v.Text)
	if text == "" {
		text = string(v.JSON)
	}
	if text == "" || clean.IsEmptySign(text) || text == "[]" || text == "{}" {
		if s.firstEmpty == 0 {
			s.firstEmpty = line
		}
		return
	}
	s.Filled++
	if bare, ok := Unquote(text); ok {
		s.quoted++
		text = bare
	}
	switch {
	case len(s.samples) < maxSamples:
		s.samples = append(s.samples, newSample(text, v))
	default: // each value so far is kept with the same chance; the generator is seeded, so that a file always gives the same mapping
		if n := s.random.IntN(s.Filled); n < maxSamples {
			s.samples[n] = newSample(text, v)
		}
	}
	n, err := strconv.Atoi(strings.TrimSuffix(text, ".0"))
	s.isCounting = err == nil && (s.Filled == 1 || s.isCounting && n == s.previous+1)
	s.isRising = err == nil && (s.Filled == 1 || s.isRising && n > s.previous)
	s.previous = n
	if !s.isIDLike {
		return
	}
	s.isTooLong = s.isTooLong || len(text) > maxIDLength
	if first, known := s.firstLine[text]; !known {
		s.firstLine[text] = line
	} else if len(s.repeated) < maxRepeated {
		s.repeated = append(s.repeated, Repeated{text, first, line})
	}
}

// Unquote removes the apostrophe that keeps a spreadsheet from reading a text as a number: '01000, '+33466651234.
func Unquote(text string) (bare string, ok bool) {
	if len(text) > 1 && text[0] == '\'' && (text[1] == '+' || '0' <= text[1] && text[1] <= '9') {
		return text[1:], true
	}
	return text, false
}

// Examples returns a value of each column, "" if it is empty.
func (p *Profile) Examples() []string {
	list := make([]string, len(p.Columns))
	for i, c := range p.Columns {
		if len(c.samples) > 0 {
			list[i] = c.samples[0].text
		}
	}
	return list
}

// rankFor is how well the name of a column fits a field; the lower the better. The geometry of a feature is a shape whatever it is
// called, and the id of a feature is an id.
func (s *Stats) rankFor(f Field) (rank int, ok bool) {
	switch s.Column.Kind {
	case record.Geometry:
		return 0, f == Shape
	case record.FeatureID:
		return patternRank, f == ExternalID
	}
	for _, m := range s.matches {
		if m.field == f {
			return m.rank, true
		}
	}
	return 0, false
}

// isUnique reports whether each row of the file has a value in the column that no other row has, and that can be an id. A few rows may lack
// one.
func (s *Stats) isUnique(rows int) bool {
	return s.Filled > 0 && rows-s.Filled <= fewRows(rows) && len(s.repeated) == 0 && !s.isTooLong
}

// fewRows is how many rows of a file may lack an id: one in a hundred.
func fewRows(rows int) int { return rows / 100 }

// distinctShare is the share of different values among the samples, from 0 to 1.
func (s *Stats) distinctShare() float64 {
	seen := map[string]bool{}
	for _, v := range s.samples {
		seen[v.text] = true
	}
	return float64(len(seen)) / float64(max(1, len(s.samples)))
}

// share is the share of the samples in a class, from 0 to 1.
func (s *Stats) share(is func(sample) bool) float64 {
	n := 0
	for _, v := range s.samples {
		if is(v) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(s.samples)))
}

func isText(v sample) bool { return !v.isJSON && strings.ContainsFunc(v.text, unicode.IsLetter) }

// isFlag reports whether a value only says yes or no.
func isFlag(v sample) bool {
	return containsWord("0 1 0.0 1.0 oui non o n true false vrai faux yes no x", strings.ToLower(v.text))
}

func isDecimalWithin(low, high float64) func(sample) bool {
	return func(v sample) bool {
		x, ok := clean.Decimal(v.text)
		return ok && x >= low && x <= high
	}
}

// isProjected reports whether a value is metres of a projection, or a number that no degree can be.
func isProjected(v sample) bool {
	x, ok := clean.Decimal(v.text)
	return ok && (x > 1000 || x < -1000)
}

func isPair(v sample) bool {
	if _, _, ok := geometry.ParsePair(v.text); ok {
		return true
	}
	_, ok := geometry.ParseJSONPoint(v.text)
	return ok
}

// isPairInFrance reports whether a value is a pair that lies in France in one of the two orders.
func isPairInFrance(v sample) bool {
	if p, ok := geometry.ParseJSONPoint(v.text); ok {
		return geometry.IsInFrance(p)
	}
	a, b, ok := geometry.ParsePair(v.text)
	return ok && (geometry.IsInFrance(geometry.LatLon.Point(a, b)) || geometry.IsInFrance(geometry.LonLat.Point(a, b)))
}

func isShape(v sample) bool {
	_, err := geometry.ParseShape(v.text)
	return err == nil
}

func isPostcode(v sample) bool { _, ok := clean.Postcode(v.text); return ok }

// isPostcodeAsWritten reports whether a value is just five digits.
func isPostcodeAsWritten(v sample) bool {
	return len(v.text) == 5 && strings.Trim(v.text, "0123456789") == ""
}

func isInseeCode(v sample) bool { _, ok := clean.InseeCode(v.text); return ok }

func isPhone(v sample) bool {
	if n := countDigits(v.text); n < 2 || v.isJSON && n < 9 {
		return false
	}
	numbers, _ := clean.Phones(v.text, "FR")
	return len(numbers) > 0
}

// isPhoneAsWritten reports whether a value can only be a telephone number: ten digits from 0 on, or + and a number.
func isPhoneAsWritten(v sample) bool {
	n := countDigits(v.text)
	return isPhone(v) && (strings.HasPrefix(v.text, "+") && n >= 11 || strings.HasPrefix(v.text, "0") && n == 10)
}

func isEmail(v sample) bool { return strings.Count(v.text, "@") > 0 && strings.Contains(v.text, ".") }

func isWebsite(v sample) bool {
	_, ok := clean.Website(v.text)
	return ok && !isEmail(v)
}

// isWebsiteAsWritten reports whether a value begins like a web address.
func isWebsiteAsWritten(v sample) bool {
	lower := strings.ToLower(v.text)
	return strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://") || strings.HasPrefix(lower, "www.")
}

// isHours reports whether a value can be opening hours: JSON that is not a number, or a text with words, times or 24/7.
func isHours(v sample) bool {
	if v.isJSON {
		return v.text[0] == '{' || v.text[0] == '['
	}
	return !isFlag(v) && (isText(v) || strings.ContainsAny(v.text, ":/"))
}

// isDayHours reports whether a value can be the hours of one day.
func isDayHours(v sample) bool {
	lower := strings.ToLower(v.text)
	return !isFlag(v) && (strings.ContainsAny(v.text, "0123456789") || strings.Contains(lower, "ferm") || strings.Contains(lower, "clos"))
}

// houseNumber is a house number, perhaps with a suffix or a second one: 12, 12 bis, 3-5, 7B.
var houseNumber = regexp.MustCompile(`^\d{1,5}(\.0)?\s?[A-Za-z]{0,6}(\s?[-/,;&]\s?\d{1,5}\s?[A-Za-z]{0,6})*$`)

func isHouseNumber(v sample) bool { return houseNumber.MatchString(v.text) }

func isShort(limit int) func(sample) bool {
	return func(v sample) bool { return utf8.RuneCountInString(v.text) <= limit }
}

func countDigits(s string) int {
	n := 0
	for _, c := range []byte(s) {
		if c >= '0' && c <= '9' {
			n++
		}
	}
	return n
}
