package keystrokes

import (
	"strings"

	"lieudit/queries/address/perturb"
	"lieudit/queries/address/text"
	"lieudit/schemas/geo"
)

// line is one address as somebody types it, and the record that it means.
type line struct {
	text      string
	id, label string // of that record
	bias      *geo.Point
}

// rank returns the index of the record among suggestions, or -1. A record with the same label is right too, because nobody can distinguish the
// two.
func (l *line) rank(found []suggestion) int {
	for i, s := range found {
		if s.id == l.id || text.Fold(s.label) == text.Fold(l.label) {
			return i
		}
	}
	return -1
}

// way is a way to write an address.
type way struct {
	name string
	// write returns the text, or "" if the address cannot be written in this way.
	write    func(number, street, postcode, city string) string
	isStreet bool // the street is meant, without a number
}

// ways are the ways in which each address is written.
func ways() []way {
	return []way{
		{name: "label", write: func(number, street, postcode, city string) string { return joinWords(number, street, postcode, city) }},
		{name: "no postcode", write: func(number, street, _, city string) string { return joinWords(number, street, city) }},
		{name: "no commune", write: func(number, street, postcode, _ string) string { return joinWords(number, street, postcode) }},
		{name: "commune first", write: func(number, street, _, city string) string { return joinWords(city, number, street) }},
		{name: "unaccented", write: func(number, street, postcode, city string) string {
			return joinWords(number, text.Fold(street), postcode, text.Fold(city))
		}},
		{name: "abbreviated", write: func(number, street, postcode, city string) string {
			short, isShorter := perturb.Abbreviate(street)
			if !isShorter {
				return ""
			}
			return joinWords(number, short, postcode, city)
		}},
		{name: "street", isStreet: true, write: func(_, street, _, city string) string { return joinWords(street, city) }},
	}
}

// line writes an address. It returns false if the address cannot be written in this way.
func (w way) line(a *typedAddress) (l line, ok bool) {
	r := &a.record
	if w.isStreet {
		r = &a.street
	}
	l = line{text: w.write(r.Number+r.Rep, r.Street, r.Postcode, r.City), id: r.ID, label: r.Label}
	return l, l.text != ""
}

// joinWords joins the parts that are not empty with spaces.
func joinWords(parts ...string) string {
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}

// streetID returns the street id of a house number's id: its first two parts.
func streetID(id string) string {
	parts := strings.SplitN(id, "_", 3)
	if len(parts) < 3 {
		return id
	}
	return parts[0] + "_" + parts[1]
}
