// Package parse reads typed text as an address: which words may name a street, which may name a commune, which numbers
// may be the house number, which parts belong to a complement (building, staircase, floor, post box) and not to a street.
// It knows words and signs, not the address base; questions that only the base can decide stay open, as several readings
// in their order.
//
// How a question passes through it:
//
//	Line or Fields ──> clean ──> text.Terms ──> reader
//	    ──> postcodeReader ──> postalReader ──> complementReader ──> numberReader ──> Question
//
// Each reader adds its sets of terms to the question. A Question is not changed
// afterwards. The search compares streets with it, and calls Question.HouseNumber for each street to find
// which of the numbers is the house's: the one next to the street.
package parse

import (
	"math/bits"
	"slices"
	"strings"

	"lieudit/queries/address/text"
)

// MaxTerms bounds the words that are read; a longer question is cut. It is the number of bits of a Mask.
const MaxTerms = 32

// Mask is a set of terms of a question.
type Mask uint32

// Bit is the set of one term.
func Bit(i int) Mask { return 1 << i }

// Span is the set of the terms [from, to).
func Span(from, to int) Mask { return Mask(uint64(1)<<to - uint64(1)<<from) }

// Has reports whether a term is in the set.
func (m Mask) Has(i int) bool { return m&Bit(i) != 0 }

// Count is how many terms are in the set.
func (m Mask) Count() int { return bits.OnesCount32(uint32(m)) }

// First is the first term of a set that is not empty.
func (m Mask) First() int { return bits.TrailingZeros32(uint32(m)) }

// Last is the last term of a set that is not empty.
func (m Mask) Last() int { return 31 - bits.LeadingZeros32(uint32(m)) }

// Parts are the fields of an address that was typed into a form.
type Parts struct{ Number, Street, Postcode, Commune string }

// Question is an address that was read. No term is in two of Postal, Complement and the terms of the postcode. The
// other sets may share terms with each other and with these.
type Question struct {
	Terms       []text.Term
	IsCut       bool // more words were typed than are read
	IsRewritten bool // other words were typed
	Completing  bool // the user may still be typing
	Unfinished  int  // the term that the user may still be typing, or -1

	All        Mask // every term
	Postal     Mask // post boxes and CEDEX with their numbers, the country
	CodeSign   Mask // of these, words that only announce the postcode: CP
	HasCedex   bool
	Complement Mask // words such as "bâtiment", each with the numbers and letters it owns
	Given      Mask // of these numbers and letters, those that a word gives to a part of a building
	Phrases    Mask // words that may name a residence, a company or a person
	InParens   Mask
	PlaceOnly  Mask // may name a place but not a street
	StreetOnly Mask // may name a street but not a commune
	Corner     Mask // the words for a street that crosses the one that is meant, and what follows them: they do not name the street
	Dotted     Mask // a full stop follows, as after a word that is cut short
	Reps       Mask // repetition indexes, which are never words of a street

	Postcode Postcode

	digits, stopWords, streetTypes, distinctive Mask // by the class of the terms

	floors Mask // the numbers of floors, which are not house numbers

	numberGroups []numberGroup
	fields       []field
	isForm       bool
}

// field is a text that was typed separately, and its terms.
type field struct {
	text     string
	from, to int
}

// reader reads the terms of a question and the possible roles of each.
type reader struct{ *Question }

// Line reads an address in one line. If completing, its last word may be unfinished.
func Line(line string, completing bool) *Question {
	q := &Question{Completing: completing, Unfinished: -1}
	r := reader{q}
	r.add(clean(line))
	r.read()
	return q
}

// Fields reads an address typed into a form: each field keeps its role.
func Fields(p Parts) *Question {
	q := &Question{Unfinished: -1, isForm: true}
	r := reader{q}
	for _, text := range [...]string{p.Number, p.Street, p.Postcode, p.Commune} {
		r.add(clean(text))
	}
	r.read()
	return q
}

// add appends the terms of one field. A field begins a new part of the address, as a comma does.
func (r reader) add(line string) {
	from := len(r.Terms)
	r.Terms = append(r.Terms, withoutNumberSign(text.Terms(line))...)
	if from > 0 && from < len(r.Terms) {
		r.Terms[from].Before |= text.Break
	}
	r.fields = append(r.fields, field{line, from, len(r.Terms)})
	if strings.Contains(line, ".") {
		r.readStops([]rune(line), from)
	}
}

// withoutNumberSign leaves out an n before a number after the name of a street if it is the sign of the house number and not a road:
// rue des Fleurs n 24. After a kind or a link it is the national road.
func withoutNumberSign(terms []text.Term) []text.Term {
	hasType := false
	for i := 0; i+2 < len(terms); i++ {
		before := text.Content
		if i > 0 {
			before = text.ClassOf(terms[i-1].Text)
		}
		if hasType && before == text.Content && !isRoadClass(terms[i-1].Text) && terms[i].Typed == "n" && terms[i+1].Part && terms[i+2].Digits {
			return slices.Delete(terms, i, i+2)
		}
		hasType = hasType || text.ClassOf(terms[i].Text) == text.StreetType
	}
	return terms
}

// isRoadClass reports whether a word is the class of a road that its number follows: chemin rural N 34.
func isRoadClass(term string) bool {
	switch term {
	case "rural", "communal", "communale", "vicinal", "forestier", "forestiere", "departementale", "nationale":
		return true
	}
	return false
}

// readStops finds the terms from one on that a full stop follows.
func (r reader) readStops(line []rune, from int) {
	for i := from; i < min(len(r.Terms), MaxTerms); i++ {
		if end := r.Terms[i].End; end < len(line) && line[end] == '.' {
			r.Dotted |= Bit(i)
		}
	}
}

// Rewrite reads the question again with other text instead of the terms [from, to). It returns false if no
// single field holds all these terms.
func (q *Question) Rewrite(from, to int, with string) (*Question, bool) {
	other := &Question{IsRewritten: true, Completing: q.Completing, Unfinished: -1, isForm: q.isForm}
	isFound := false
	for _, f := range q.fields {
		line := f.text
		if f.from <= from && to <= f.to && to <= len(q.Terms) {
			runes := []rune(line)
			line = string(runes[:q.Terms[from].Start]) + with + string(runes[q.Terms[to-1].End:])
			isFound = true
		}
		reader{other}.add(line)
	}
	reader{other}.read()
	return other, isFound
}

// WithoutBegunComplement reads the question again without its last word, if that is unfinished, stands behind others and begins a word
// that names a part of a building. Otherwise it returns false.
func (q *Question) WithoutBegunComplement() (*Question, bool) {
	i := q.Unfinished
	if i < 2 || q.Terms[i].Part || q.IsStopWord(i-1) || !BeginsComplement(q.Terms[i].Typed) {
		return nil, false
	}
	return q.Rewrite(i, i+1, "")
}

// readFields gives the terms of a form their roles: the street field names a street only, the commune field a
// place only. In a form without a commune the street field may hold both, since people type the commune there.
func (r reader) readFields() {
	if !r.isForm || r.fields[3].from >= len(r.Terms) {
		return
	}
	r.StreetOnly = Span(r.fields[1].from, min(r.fields[1].to, MaxTerms))
	r.PlaceOnly = Span(min(r.fields[3].from, MaxTerms), min(r.fields[3].to, MaxTerms))
}

// read finds the sets of terms. The order matters: a postcode is found before the numbers that post boxes and
// complements own, and house numbers are among the rest.
func (r reader) read() {
	if len(r.Terms) > MaxTerms {
		r.Terms, r.IsCut = r.Terms[:MaxTerms], true
	}
	r.All = Span(0, len(r.Terms))
	if r.Completing {
		r.Unfinished = len(r.Terms) - 1
	}
	r.spellBehindNumbers()
	r.classify()
	r.readFields()
	r.readParens()
	postcodeReader(r).readPostcode()
	postalReader(r).readPostal()
	complementReader(r).readComplements()
	r.readRoles()
	r.readCorner()
	if r.Unfinished >= 0 && (r.Postal | r.Postcode.At).Has(r.Unfinished) {
		r.Unfinished = -1
	}
	numberReader(r).readNumbers()
}

// spellBehindNumbers expands words that are shortened after a number and mean something else elsewhere: the
// arrondissement, and the months of streets that are named after a date.
func (r reader) spellBehindNumbers() {
	for i := 1; i < len(r.Terms); i++ {
		if before := r.Terms[i-1]; !before.Digits || len(before.Typed) > 2 || r.Terms[i].Before&text.Join != 0 {
			continue
		}
		switch r.Terms[i].Typed {
		case "arr", "ard", "ardt", "arrt", "arrd", "arrdt", "arrond", "arrondt", "arrondis", "arrondissemt":
			r.Terms[i].Text = "arrondissement"
		case "janv":
			r.Terms[i].Text = "janvier"
		case "fev", "fevr":
			r.Terms[i].Text = "fevrier"
		case "juil":
			r.Terms[i].Text = "juillet"
		case "sept":
			r.Terms[i].Text = "septembre"
		case "oct":
			r.Terms[i].Text = "octobre"
		case "nov":
			r.Terms[i].Text = "novembre"
		case "dec":
			r.Terms[i].Text = "decembre"
		}
	}
}

// Words are the terms that may name a street or a commune. Those of a complement are among them, because its words
// also occur in names.
func (q *Question) Words() Mask { return q.All &^ q.Postal &^ q.Postcode.At }

// Distinctive are the words that tell streets apart: no stop words, no kinds of streets, no numbers, no single letters.
func (q *Question) Distinctive(words Mask) Mask { return words & q.distinctive }

// StreetTypes are the words that are a kind of street.
func (q *Question) StreetTypes(words Mask) Mask { return words & q.streetTypes }

// HasStreetType reports whether a word of the set is a kind of street.
func (q *Question) HasStreetType(words Mask) bool { return words&q.streetTypes != 0 }

// IsStreetType reports whether a term is a kind of street.
func (q *Question) IsStreetType(i int) bool { return q.streetTypes.Has(i) }

// readCorner finds the street that only crosses the one before it. A commune may follow it.
func (r reader) readCorner() {
	for i := range r.Terms {
		if r.isCorner(i) && r.HasStreetType(r.Words()&Span(0, i)) {
			r.Corner = Span(i, len(r.Terms))
			return
		}
	}
}

// isCorner reports whether a term shows that the street after it crosses the one before: angle rue X, au coin de la rue X.
func (r reader) isCorner(i int) bool {
	switch r.Terms[i].Typed {
	case "angle", "coin", "croisement", "intersection":
	default:
		return false
	}
	for i++; i < len(r.Terms) && r.IsStopWord(i); i++ {
	}
	return i < len(r.Terms) && r.IsStreetType(i)
}

// IsStopWord reports whether a term only joins others.
func (q *Question) IsStopWord(i int) bool { return q.stopWords.Has(i) }

// Digits are the terms that were typed in digits.
func (q *Question) Digits() Mask { return q.digits }

// classify sorts the terms by how much they say about a place.
func (r reader) classify() {
	for i, t := range r.Terms {
		switch class := text.ClassOf(t.Text); {
		case class == text.StopWord:
			r.stopWords |= Bit(i)
		case class == text.StreetType:
			r.streetTypes |= Bit(i)
		case !t.Digits && (len(t.Typed) > 1 || i == r.Unfinished):
			r.distinctive |= Bit(i)
		}
		if t.Digits {
			r.digits |= Bit(i)
		}
	}
}

// IsLink reports whether a term is a stop word of two letters or more, which joins others and may be missing.
func (q *Question) IsLink(i int) bool {
	return text.ClassOf(q.Terms[i].Text) == text.StopWord && len(q.Terms[i].Typed) > 1
}

// Typed is the text of a set of terms, in small letters without accents. A word of two terms is written once.
func (q *Question) Typed(at Mask) string {
	var words []string
	for i := range q.Terms {
		if at.Has(i) && !q.Terms[i].Part {
			words = append(words, q.Terms[i].Typed)
		}
	}
	return strings.Join(words, " ")
}

// AroundPostcode is the text before the postcode of a line and the text after it, cleaned.
func (q *Question) AroundPostcode() (before, after string) {
	line := []rune(q.fields[0].text)
	if q.Postcode.At == 0 {
		return string(line), ""
	}
	return string(line[:q.Terms[q.Postcode.At.First()].Start]), string(line[q.Terms[q.Postcode.At.Last()].End:])
}

// readParens finds the terms in parentheses. A parenthesis that is not closed ends with the line.
func (r reader) readParens() {
	isOpen := false
	for i, t := range r.Terms {
		if t.Before&text.Close != 0 {
			isOpen = false
		}
		if t.Before&text.Open != 0 {
			isOpen = true
		}
		if isOpen {
			r.InParens |= Bit(i)
		}
	}
}

// readRoles finds the words of a line that may only name a place: those after the postcode if a street stands
// before it. The street needs a kind and something more, because the kind alone may be part of a name of a place.
func (r reader) readRoles() {
	if r.PlaceOnly|r.StreetOnly != 0 || r.Postcode.At == 0 {
		return
	}
	before := r.Words() & Span(0, r.Postcode.At.First())
	if r.HasStreetType(before) && r.Distinctive(before)|before&r.Digits() != 0 {
		r.PlaceOnly = r.Words() & Span(r.Postcode.At.Last()+1, len(r.Terms)) &^ r.Complement
	}
}
