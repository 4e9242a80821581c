// Package parse reads what was typed as an address: which words may name a street, which may name a commune, which numbers
// may be the house number, what belongs to a complement (building, staircase, floor, post box) and to no street. It knows
// words and signs, not the address base; what only the base can decide stays open, as several readings in their order.
//
// How a question passes through it:
//
//	Line or Fields ──> clean ──> text.Terms ──> readFields ──> readPostcode ──> readPostal ──> readComplements
//	               ──> readRoles ──> readCorner ──> readNumbers ──> Question
//
// A Question is not changed afterwards. The search compares streets with it, and asks Question.HouseNumber for each street
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

// Span is the set of the terms from one on, up to and without another.
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
	CodeSign   Mask // of these, words that only say that the postcode follows: CP
	HasCedex   bool
	Complement Mask // words such as "bâtiment", each with the numbers and letters it owns
	Given      Mask // of these numbers and letters, those that a word gives to a part of a building
	Phrases    Mask // words that may name a residence, a company or a person
	InParens   Mask
	PlaceOnly  Mask // may name a place and no street
	StreetOnly Mask // may name a street and no commune
	Corner     Mask // the words that say which street crosses the one that is meant, and what follows them: they name no street
	Dotted     Mask // a full stop follows, as behind a word that is cut short
	Reps       Mask // repetition indexes, which are never words of a street

	Postcode Postcode

	digits, stopWords, streetTypes, distinctive Mask // by the class of the terms

	floors Mask // the numbers of floors, which are no house numbers

	numberGroups []numberGroup
	fields       []field
	isForm       bool
}

// field is a text that was typed by itself, and the terms it holds.
type field struct {
	text     string
	from, to int
}

// Line reads an address in one line. completing says that its last word may be unfinished.
func Line(line string, completing bool) *Question {
	q := &Question{Completing: completing, Unfinished: -1}
	q.add(clean(line))
	q.read()
	return q
}

// Fields reads an address typed into a form: each field keeps its role.
func Fields(p Parts) *Question {
	q := &Question{Unfinished: -1, isForm: true}
	for _, text := range [...]string{p.Number, p.Street, p.Postcode, p.Commune} {
		q.add(clean(text))
	}
	q.read()
	return q
}

// add appends the terms of one field. A field begins a new part of the address, as a comma does.
func (q *Question) add(line string) {
	from := len(q.Terms)
	q.Terms = append(q.Terms, withoutNumberSign(text.Terms(line))...)
	if from > 0 && from < len(q.Terms) {
		q.Terms[from].Before |= text.Break
	}
	q.fields = append(q.fields, field{line, from, len(q.Terms)})
	if strings.Contains(line, ".") {
		q.readStops([]rune(line), from)
	}
}

// withoutNumberSign leaves out an n before a number behind the name of a street, where it is the sign of the house number and no road:
// rue des Fleurs n 24. Behind a kind or a link it is the national road.
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
func (q *Question) readStops(line []rune, from int) {
	for i := from; i < min(len(q.Terms), MaxTerms); i++ {
		if end := q.Terms[i].End; end < len(line) && line[end] == '.' {
			q.Dotted |= Bit(i)
		}
	}
}

// Rewrite reads the question again with other text in place of the terms [from, to). It answers false where no
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
		other.add(line)
	}
	other.read()
	return other, isFound
}

// WithoutBegunComplement reads the question again without its last word, if that is unfinished, stands behind others and begins a word
// that names a part of a building. It answers false otherwise.
func (q *Question) WithoutBegunComplement() (*Question, bool) {
	i := q.Unfinished
	if i < 2 || q.Terms[i].Part || q.IsStopWord(i-1) || !BeginsComplement(q.Terms[i].Typed) {
		return nil, false
	}
	return q.Rewrite(i, i+1, "")
}

// readFields gives the terms of a form their roles: the street field names a street only, the commune field a
// place only. A form without a commune keeps the street field open, since people type the commune there.
func (q *Question) readFields() {
	if !q.isForm || q.fields[3].from >= len(q.Terms) {
		return
	}
	q.StreetOnly = Span(q.fields[1].from, min(q.fields[1].to, MaxTerms))
	q.PlaceOnly = Span(min(q.fields[3].from, MaxTerms), min(q.fields[3].to, MaxTerms))
}

// read finds the sets of terms. The order matters: a postcode is found before the numbers that post boxes and
// complements own, and house numbers are what these leave.
func (q *Question) read() {
	if len(q.Terms) > MaxTerms {
		q.Terms, q.IsCut = q.Terms[:MaxTerms], true
	}
	q.All = Span(0, len(q.Terms))
	if q.Completing {
		q.Unfinished = len(q.Terms) - 1
	}
	q.spellBehindNumbers()
	q.classify()
	q.readFields()
	q.readParens()
	q.readPostcode()
	q.readPostal()
	q.readComplements()
	q.readRoles()
	q.readCorner()
	if q.Unfinished >= 0 && (q.Postal | q.Postcode.At).Has(q.Unfinished) {
		q.Unfinished = -1
	}
	q.readNumbers()
}

// spellBehindNumbers writes out words that are shortened behind a number and mean something else elsewhere: the
// arrondissement, and the months of streets that are named after a date.
func (q *Question) spellBehindNumbers() {
	for i := 1; i < len(q.Terms); i++ {
		if before := q.Terms[i-1]; !before.Digits || len(before.Typed) > 2 || q.Terms[i].Before&text.Join != 0 {
			continue
		}
		switch q.Terms[i].Typed {
		case "arr", "ard", "ardt", "arrt", "arrd", "arrdt", "arrond", "arrondt", "arrondis", "arrondissemt":
			q.Terms[i].Text = "arrondissement"
		case "janv":
			q.Terms[i].Text = "janvier"
		case "fev", "fevr":
			q.Terms[i].Text = "fevrier"
		case "juil":
			q.Terms[i].Text = "juillet"
		case "sept":
			q.Terms[i].Text = "septembre"
		case "oct":
			q.Terms[i].Text = "octobre"
		case "nov":
			q.Terms[i].Text = "novembre"
		case "dec":
			q.Terms[i].Text = "decembre"
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

// readCorner finds the street that only crosses the one before it. What follows it may be a commune.
func (q *Question) readCorner() {
	for i := range q.Terms {
		if q.isCorner(i) && q.HasStreetType(q.Words()&Span(0, i)) {
			q.Corner = Span(i, len(q.Terms))
			return
		}
	}
}

// isCorner reports whether a term says that the street behind it crosses the one before: angle rue X, au coin de la rue X.
func (q *Question) isCorner(i int) bool {
	switch q.Terms[i].Typed {
	case "angle", "coin", "croisement", "intersection":
	default:
		return false
	}
	for i++; i < len(q.Terms) && q.IsStopWord(i); i++ {
	}
	return i < len(q.Terms) && q.IsStreetType(i)
}

// IsStopWord reports whether a term only joins others.
func (q *Question) IsStopWord(i int) bool { return q.stopWords.Has(i) }

// Digits are the terms that were typed in digits.
func (q *Question) Digits() Mask { return q.digits }

// classify sorts the terms by what they say of a place.
func (q *Question) classify() {
	for i, t := range q.Terms {
		switch class := text.ClassOf(t.Text); {
		case class == text.StopWord:
			q.stopWords |= Bit(i)
		case class == text.StreetType:
			q.streetTypes |= Bit(i)
		case !t.Digits && (len(t.Typed) > 1 || i == q.Unfinished):
			q.distinctive |= Bit(i)
		}
		if t.Digits {
			q.digits |= Bit(i)
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

// AroundPostcode is the text before the postcode of a line and the text behind it, cleaned as it was read.
func (q *Question) AroundPostcode() (before, after string) {
	line := []rune(q.fields[0].text)
	if q.Postcode.At == 0 {
		return string(line), ""
	}
	return string(line[:q.Terms[q.Postcode.At.First()].Start]), string(line[q.Terms[q.Postcode.At.Last()].End:])
}

// readParens finds what stands in parentheses. One that is not closed ends with the line.
func (q *Question) readParens() {
	isOpen := false
	for i, t := range q.Terms {
		if t.Before&text.Close != 0 {
			isOpen = false
		}
		if t.Before&text.Open != 0 {
			isOpen = true
		}
		if isOpen {
			q.InParens |= Bit(i)
		}
	}
}

// readRoles finds the words of a line that may only name a place: those behind the postcode, where a street stands
// before it. The street needs a kind and something more, because the kind alone may be part of a name of a place.
func (q *Question) readRoles() {
	if q.PlaceOnly|q.StreetOnly != 0 || q.Postcode.At == 0 {
		return
	}
	before := q.Words() & Span(0, q.Postcode.At.First())
	if q.HasStreetType(before) && q.Distinctive(before)|before&q.Digits() != 0 {
		q.PlaceOnly = q.Words() & Span(q.Postcode.At.Last()+1, len(q.Terms)) &^ q.Complement
	}
}
