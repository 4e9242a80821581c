// Package ban reads the official CSV files of the national address base (Base Adresse Nationale) into rows. It
// judges each row alone, in bounded memory; package vintage makes streets, communes and a vintage of them.
//
//	file ── openText ──► text ── recordReader ──► fields ── parser ──► Row (Read yields it)
//	        gzip or plain       CSV records           columns by name └──► BadRow ──► Report
//
// A row that cannot be used goes to the Report with its Fault. A file that is not of the base ends Read with a
// FormatError.
package ban

import (
	"fmt"
)

// Kind is what a row of the base describes.
type Kind uint8

const (
	// HouseNumber is a numbered address on a street.
	HouseNumber Kind = iota
	// Locality is a named place without numbers (lieu-dit).
	Locality
)

// Row is one position of the base, as published. A field is empty when the file has no value or no column for it.
type Row struct {
	ID      string // interoperability key, such as 48095_0275_00003_bis
	IDBan   string // the address's UUID if the file has one
	Kind    Kind
	Numero  uint32 // 0 to 9999; 0 for a locality
	Rep     string // repetition index: bis, ter, a…
	Voie    string // name of the street, or of the locality
	LieuDit string // nom_ld: the lieu-dit in which the number lies
	Alias   string // another name of the street

	NomAFNOR          string
	CodePostal        string
	CodeInsee         string
	Commune           string
	CodeInseeAncienne string
	CommuneAncienne   string
	Acheminement      string // libelle_acheminement: what La Poste writes on the last line

	Lon, Lat     float64 // WGS 84 degrees
	X, Y         float64 // metres in the legal projection of the territory
	TypePosition string
	Certifie     bool
	Parcelles    []string
}

// Fault is the reason why a row was left out.
type Fault uint8

const (
	TooFewColumns Fault = iota // fewer columns than the header
	MissingCode                // no id or no commune code
	MissingName                // no name of a street or locality
	BadNumber                  // the house number is not a number or above 9999
	BadPosition                // no coordinates, or outside of France
	BadEncoding                // not UTF-8, or control characters
	BadQuoting                 // a quote that never closes, or a line that is too long
	faultCount
)

func (f Fault) String() string {
	return [...]string{"too few columns", "no id or commune code", "no street name", "no plausible house number",
		"coordinates missing or out of France", "not UTF-8 text", "broken quotes or an endless line"}[f]
}

// MaxListed is the number of bad rows that a report lists.
const MaxListed = 20

// BadRow is one row that was left out.
type BadRow struct {
	File  string
	Line  int // the header is line 1
	Fault Fault
}

func (b BadRow) String() string { return fmt.Sprintf("%s:%d: %s", b.File, b.Line, b.Fault) }

// Report counts the rows that readers have seen. The zero value is ready. One reader uses it at a time.
type Report struct {
	Good      int
	Synthetic int             // good rows that are synthetic
	Repaired  int             // good rows with letters that were encoded twice
	Counts    [faultCount]int // bad rows by Fault
	First     []BadRow
}

// SyntheticSource is the value of the source columns in synthetic rows.
const SyntheticSource = "synthétique"

// Bad is the number of rows that were left out.
func (r *Report) Bad() (n int) {
	for _, c := range r.Counts {
		n += c
	}
	return n
}

// Faults yields each fault that occurred with its count.
func (r *Report) Faults(yield func(Fault, int) bool) {
	for f, n := range r.Counts {
		if n > 0 && !yield(Fault(f), n) {
			return
		}
	}
}

// addBadRow counts a bad row and lists it when it is among the first MaxListed.
func (r *Report) addBadRow(b BadRow) {
	r.Counts[b.Fault]++
	if len(r.First) < MaxListed {
		r.First = append(r.First, b)
	}
}
