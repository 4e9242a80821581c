// Package csvgeocode verifies the addresses of a CSV file, row by row, and writes the file again with the results beside
// each row, which stays byte for byte what it was. Rows keep their order and memory is bounded. A run that was killed
// goes on where it was: what is written is known to the byte, so that no row is lost and none comes twice.
package csvgeocode

import (
	"context"
	"errors"
	"fmt"
	"os"

	"lieudit/queries/address"
)

// Job is a file to work through.
type Job struct {
	In, Out   string
	Columns   []string // that hold the address, in order; none: all
	Postcode  string   // column with a postcode that answers must have; may be empty
	CityCode  string   // column with a commune's code that answers must have; may be empty
	Separator rune     // 0: the one the header has
	Encoding  string   // UTF8 or Windows1252
	Restart   bool     // forget an unfinished run
	Engine    *address.Engine
	Vintage   string              // which one the engine answers from
	Progress  func(Counts, int64) // told the bytes read of the file; may be nil
}

// The encodings there are.
const (
	UTF8        = "utf-8"
	Windows1252 = "windows-1252"
)

// Counts counts rows.
type Counts struct {
	Rows     int `json:"lignes"`
	Exact    int `json:"exactes"`
	Probable int `json:"probables"`
	NotFound int `json:"introuvables"`
	Skipped  int `json:"vides"`
	Errors   int `json:"erreurs"` // not text
}

// ErrResultExists: the result is there already.
var ErrResultExists = errors.New("there is a result already")

// Run works through the file and puts the result into place. When it returns an error, another Run of the same job
// goes on from there.
func (j Job) Run(ctx context.Context) (Counts, error) {
	if _, err := os.Lstat(j.Out); err == nil {
		return Counts{}, fmt.Errorf("%s: %w", j.Out, ErrResultExists)
	}
	header, err := j.readHeader()
	if err != nil {
		return Counts{}, err
	}
	partial, err := j.openPartialResult(header)
	if err != nil {
		return Counts{}, err
	}
	err = j.processRows(ctx, header, partial)
	if err != nil {
		return partial.state.Counts, errors.Join(err, partial.close())
	}
	return partial.state.Counts, partial.moveIntoPlace(j.Out)
}
