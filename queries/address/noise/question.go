// Package noise makes questions of rows of the base and damages them as people do: abbreviations, typing errors, another
// postcode, a former commune, a missing number. The same seed makes the same questions; the row they are made of is the
// answer, so that what an engine answers can be counted right or wrong.
package noise

import (
	"fmt"
	"strings"

	"lieudit/queries/address/ban"
)

// Question is one made from a row: its parts as someone would type them, and whether the row can still be the
// answer.
type Question struct {
	number, rep, street, postcode, city string
	glue                                string   // between number and repetition index
	Row                                 *ban.Row // the answer
	missing                             bool     // the number is not in the base
	shuffled                            bool     // the commune comes first
	after                               bool     // the number follows the street
	tail                                string
}

// Of is a question about a row, as it is written in the base.
func Of(r *ban.Row) Question {
	q := Question{rep: r.Rep, street: r.Voie, postcode: r.CodePostal, city: r.Commune, Row: r, number: fmt.Sprint(r.Numero)}
	return q
}

// Line is the question in one line.
func (a Question) Line() string {
	number := a.number
	if a.rep != "" {
		number += a.glue + a.rep
	}
	place := joined(a.postcode, a.city, a.tail)
	switch {
	case a.shuffled:
		return joined(place, number, a.street)
	case a.after:
		return joined(a.street, number+",", place)
	}
	return joined(number, a.street, place)
}

// joined joins what is there with spaces.
func joined(parts ...string) string {
	kept := parts[:0]
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, " ")
}
