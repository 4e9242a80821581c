// Package perturb turns rows of the address base into questions with the errors that people make: abbreviations, typing
// errors, a wrong postcode, a former commune, a number that does not exist. Accuracy tests and benchmarks ask an engine
// these questions and compare its answers with the row. The same seed gives the same questions, so
// that two engines, or two versions of one, can be compared.
//
//	ban.Row… ── Kind.Sample (NewQuestion, Kind.Apply) ──► Question… ── Line ──► address.Engine.Verify
//	                                                         │                        │
//	                                                         └──► Accuracy.Add ◄── address.Match…
package perturb

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/text"
)

// Question is the parts of an address as someone types them, with the row that they come from.
type Question struct {
	number, rep, street, postcode, city string
	repSeparator                        string   // typed between number and repetition index
	Row                                 *ban.Row // the expected answer
	isNumberMissing                     bool     // the street has no such number
	isCommuneFirst                      bool     // the commune is typed first
	isNumberAfter                       bool     // the number is typed after the street
	citySuffix                          string
}

// NewQuestion is an unperturbed question about a row.
func NewQuestion(r *ban.Row) Question {
	q := Question{rep: r.Rep, street: r.Voie, postcode: r.CodePostal, city: r.Commune, Row: r, number: fmt.Sprint(r.Numero)}
	return q
}

// Line is the question in one line.
func (a Question) Line() string {
	number := a.number
	if a.rep != "" {
		number += a.repSeparator + a.rep
	}
	place := joinNonEmpty(a.postcode, a.city, a.citySuffix)
	switch {
	case a.isCommuneFirst:
		return joinNonEmpty(place, number, a.street)
	case a.isNumberAfter:
		return joinNonEmpty(a.street, number+",", place)
	}
	return joinNonEmpty(number, a.street, place)
}

// joinNonEmpty joins the parts that are not empty with spaces.
func joinNonEmpty(parts ...string) string {
	kept := parts[:0]
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, " ")
}

// Reference holds the postcodes and house numbers that perturbations choose from, or avoid.
type Reference struct {
	postcodes []string
	numbers   map[[2]string]map[string]bool // by commune and folded street name
	Unused    int                           // no street has a number above it; needed when the rows are a sample
}

// NewReference collects the postcodes and numbers of rows.
func NewReference(rows []ban.Row) Reference {
	ref := Reference{numbers: map[[2]string]map[string]bool{}}
	seen := map[string]bool{}
	for i := range rows {
		r := &rows[i]
		if !seen[r.CodePostal] {
			seen[r.CodePostal] = true
			ref.postcodes = append(ref.postcodes, r.CodePostal)
		}
		key := [2]string{r.CodeInsee, text.Fold(r.Voie)}
		if ref.numbers[key] == nil {
			ref.numbers[key] = map[string]bool{}
		}
		ref.numbers[key][fmt.Sprint(r.Numero)] = true
	}
	return ref
}

// Sample makes n questions of this kind about random rows. It makes fewer when the kind applies to too few rows.
func (k Kind) Sample(ref Reference, rows []ban.Row, seed uint64, n int) (all []Question) {
	rng := rand.New(rand.NewPCG(1, seed))
	for try := 0; len(all) < n && try < 40*n; try++ {
		q := NewQuestion(&rows[rng.IntN(len(rows))])
		if k.Apply(rng, ref, &q) {
			all = append(all, q)
		}
	}
	return all
}
