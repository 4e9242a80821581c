package parse

import (
	"strconv"
	"strings"

	"lieudit/queries/address/text"
)

// Postcode is the typed postcode, or digits that may be one.
type Postcode struct {
	Code uint32 // five digits; 0 if none were typed
	At   Mask   // its terms

	// Short is a number of four digits that may be a postcode with one digit missing. It stands after words, or opens
	// a line without a kind of street. It is 0 if there is none. ShortAt is its term; it may just as well be a number in the name of a
	// street.
	Short   uint32
	ShortAt Mask

	// Corsican is an INSEE code with a letter, as those of Corsica have: 2A004. Its terms are among At if no postcode was
	// typed next to it. It is empty if there is none.
	Corsican string

	// The digits at the end of an unfinished line may become a postcode in [From, To). PrefixAt is their term. IsOpen says that
	// they may just as well be the house number, since no other number was typed.
	From, To uint32
	PrefixAt Mask
	IsOpen   bool
}

// postcodeReader finds the postcode of a question.
type postcodeReader struct{ *Question }

// readPostcode reads the last word of five digits as the postcode, or the last words of two and three digits: 48
// 000. The number of a post box is not read. Without a postcode it reads a partial one.
func (r postcodeReader) readPostcode() {
	code := r.readCorsican()
	for i := len(r.Terms) - 1; i >= 0; i-- {
		t := r.Terms[i]
		if !t.Digits || t.Tail != "" {
			continue
		}
		if len(t.Typed) == 5 && !postalReader(r).isBoxNumber(i) && !r.isInNumberField(i) {
			r.setPostcode(t.Typed, Bit(i))
			r.Postal |= code
			return
		}
		if r.isSplitPostcode(i) {
			r.setPostcode(r.Terms[i-1].Typed+t.Typed, Bit(i)|Bit(i-1))
			r.Postal |= code
			return
		}
	}
	if code != 0 {
		r.Postcode.At = code
		return
	}
	r.readPartialPostcode()
}

// readCorsican reads an INSEE code of Corsica, and returns its three terms: digits and letters separate
// each other.
func (r postcodeReader) readCorsican() Mask {
	for i := 0; i+2 < len(r.Terms); i++ {
		two, letter, rest := r.Terms[i], r.Terms[i+1], r.Terms[i+2]
		isGlued := letter.Glued && rest.Glued && !two.Glued && letter.Before|rest.Before == 0
		if isGlued && two.Typed == "2" && (letter.Typed == "a" || letter.Typed == "b") && len(rest.Typed) == 3 && rest.Digits && rest.Tail == "" {
			r.Postcode.Corsican = "2" + strings.ToUpper(letter.Typed) + rest.Typed
			return Span(i, i+3)
		}
	}
	return 0
}

// isInNumberField reports whether term i was typed in the house number field of a form.
func (q *Question) isInNumberField(i int) bool { return q.isForm && i < q.fields[0].to }

// isSplitPostcode reports whether a term is the end of a postcode of two and three digits. Before a kind of street it is a house
// number: LOT 46 108 ROUTE.
func (r postcodeReader) isSplitPostcode(i int) bool {
	t := r.Terms[i]
	if i < 2 || len(t.Typed) != 3 || len(r.Terms[i-1].Typed) != 2 || !r.Terms[i-1].Digits || t.Glued || r.Terms[i-2].Digits {
		return false
	}
	first := r.Terms[i-1].Before
	isApart := t.Before&(text.Join|text.Open|text.Break) != 0 || first&text.Open != 0 || first&(text.Join|text.Break) == text.Join
	return !isApart && (i+1 == len(r.Terms) || !r.IsStreetType(i+1))
}

// setPostcode keeps a postcode and its terms. The letters of the country before it belong to it: F-48000, FR 48000.
func (r postcodeReader) setPostcode(code string, at Mask) {
	r.Postcode.Code, r.Postcode.At = Number(code), at
	if i := at.First() - 1; i >= 0 && (r.Terms[i].Typed == "f" && r.Terms[at.First()].Before&text.Join != 0 || r.Terms[i].Typed == "fr") {
		r.Postcode.At |= Bit(i)
	}
}

// readPartialPostcode reads digits at the end of an unfinished line as the beginning of a postcode, and four
// digits after words as a postcode with a digit missing. Only the last number is read: those before it are house
// numbers.
func (r postcodeReader) readPartialPostcode() {
	for i := len(r.Terms) - 1; i > 0; i-- {
		t := r.Terms[i]
		if !t.Digits || t.Tail != "" || t.Glued && r.Terms[i-1].Digits || len(t.Typed) > 4 || !isDigits(t.Typed) {
			continue
		}
		if i == r.Unfinished {
			r.setPrefix(i)
			r.Postcode.IsOpen = r.Digits()&Span(0, i) == 0
		}
		if len(t.Typed) == 4 && r.Distinctive(Span(0, i)) != 0 && !r.isRoadNumber(i) && !r.isYear(i) && !r.leadsToType(i) {
			r.Postcode.Short, r.Postcode.ShortAt = Number(t.Typed), Bit(i)
		}
		return
	}
	if !r.readLonePrefix() {
		r.readLeadingShort()
	}
}

// readLonePrefix reads digits as the beginning of a postcode if nothing else was typed.
func (r postcodeReader) readLonePrefix() bool {
	if r.Unfinished != 0 || len(r.Terms) != 1 || !r.Terms[0].Digits || r.Terms[0].Tail != "" || len(r.Terms[0].Typed) > 4 {
		return false
	}
	r.setPrefix(0)
	return true
}

// setPrefix reads the digits of a term as the beginning of a postcode, and finds the range of the postcodes they
// begin.
func (r postcodeReader) setPrefix(i int) {
	typed := r.Terms[i].Typed
	from, to := Number(typed), Number(typed)+1
	for range 5 - len(typed) {
		from, to = from*10, to*10
	}
	r.Postcode.From, r.Postcode.To, r.Postcode.PrefixAt = from, to, Bit(i)
}

// readLeadingShort reads four digits that open the line before the name of a place as a postcode with a digit
// missing. A spreadsheet drops the zero of 01000.
func (r postcodeReader) readLeadingShort() {
	if len(r.Terms) < 2 || !r.Terms[0].Digits || len(r.Terms[0].Typed) != 4 || r.Terms[0].Tail != "" || r.HasStreetType(r.All) || r.isInNumberField(0) {
		return
	}
	r.Postcode.Short, r.Postcode.ShortAt = Number(r.Terms[0].Typed), Bit(0)
}

// isRoadNumber reports whether digits number a road: RD 1006. The abbreviations of roads are already written out.
func (q *Question) isRoadNumber(i int) bool {
	if i == 0 {
		return false
	}
	switch q.Terms[i-1].Text {
	case "departementale", "nationale", "communale", "rural":
		return true
	}
	return false
}

// leadsToType reports whether digits stand before the only kind of street of a line. They are its house number: 1115 Rue.
func (q *Question) leadsToType(i int) bool {
	next := i + 1
	if next < len(q.Terms) && q.IsRep(next) {
		next++
	}
	return next < len(q.Terms) && q.IsStreetType(next) && !q.HasStreetType(Span(0, i))
}

// isYear reports whether digits follow a month and may be a historical year: 8 mai 1945.
func (r postcodeReader) isYear(i int) bool {
	if n := Number(r.Terms[i].Typed); n < firstYear || n > lastYear {
		return false
	}
	switch r.Terms[i-1].Text {
	case "janvier", "fevrier", "mars", "avril", "mai", "juin", "juillet", "aout", "septembre", "octobre", "novembre", "decembre":
		return true
	}
	return false
}

// The years that streets are named after.
const (
	firstYear = 1200
	lastYear  = 2050
)

// Number is the value of a string of digits. It is 0 for any other string, and for a number of more than 32 bits.
func Number(digits string) uint32 {
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
