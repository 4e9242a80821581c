package placing

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"lieudit/cmd/bench/measure"
	"lieudit/queries/address"
	"lieudit/schemas/locations"
)

// tally counts the sites of one writing, of existing or of absent addresses.
type tally struct {
	writing                                               string
	isAbsent                                              bool
	sites, placed, numbered, rightNumbers, far, elsewhere int
	communes, falseStreets                                int
}

// tallies are the counts of all writings, and the sites that were placed in another department. The zero tallies are empty.
type tallies struct {
	all       []*tally
	elsewhere []measure.Figure
}

// of returns the tally of a writing.
func (t *tallies) of(writing string, isAbsent bool) *tally {
	for _, known := range t.all {
		if known.writing == writing && known.isAbsent == isAbsent {
			return known
		}
	}
	t.all = append(t.all, &tally{writing: writing, isAbsent: isAbsent})
	return t.all[len(t.all)-1]
}

// add counts one site.
func (t *tallies) add(writing string, p *parts, a *locations.SiteAddress, m address.Match, j judgement) {
	of := t.of(writing, p.isAbsent())
	of.sites++
	of.placed += count(j.isPlaced)
	of.communes += count(j.isPlaced && m.Type == address.Municipality)
	of.numbered += count(j.isNumbered)
	of.rightNumbers += count(j.isNumbered && j.isRight)
	of.far += count(j.isMeasurable && !j.isRight)
	of.falseStreets += count(j.isFalse)
	of.elsewhere += count(j.isElsewhere)
	if j.isElsewhere {
		t.elsewhere = append(t.elsewhere, measure.Figure{
			Labels: []measure.Label{{Name: "writing", Value: writing}, {Name: "site", Value: writeAddress(a)}, {Name: "placed at", Value: m.Label}},
			Value:  m.Score, Unit: "score",
		})
	}
}

// report reports all counts.
func (t *tallies) report(out measure.Output) (err error) {
	for _, of := range t.all {
		set := "known"
		if of.isAbsent {
			set = "absent"
		}
		f := measure.Figure{
			Labels: []measure.Label{{Name: "writing", Value: of.writing}, {Name: "address", Value: set}},
			Value:  percent(of.placed, of.sites), Unit: "% placed", Samples: of.sites,
			Extra: map[string]float64{"communes": float64(of.communes), "numbers": float64(of.numbered), "wrong department": float64(of.elsewhere),
				"not in base": float64(of.falseStreets)},
		}
		if !of.isAbsent {
			f.Extra["numbers right %"], f.Extra["far"] = percent(of.rightNumbers, of.numbered), float64(of.far)
		}
		err = errors.Join(err, out.Report(f))
	}
	for _, f := range t.elsewhere {
		err = errors.Join(err, out.Report(f))
	}
	return err
}

// writeAddress writes an address in one line, with its fields separated.
func writeAddress(a *locations.SiteAddress) string {
	return strings.Join([]string{a.Line1, a.Line2, a.PostalCode, a.City, a.InseeCode}, "|")
}

// resultWriter writes a line for each site. Without a name it writes nothing.
type resultWriter struct {
	file *os.File
	csv  *csv.Writer
}

// resultColumns is the header of a file of results.
var resultColumns = []string{"writing", "set", "kind", "site", "expected id", "found id", "type", "label", "score", "metres", "judgement"}

// newResultWriter creates a file of results and writes its header.
func newResultWriter(name string) (*resultWriter, error) {
	if name == "" {
		return &resultWriter{}, nil
	}
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	w := &resultWriter{file: file, csv: csv.NewWriter(file)}
	w.csv.Comma = ';'
	return w, w.csv.Write(resultColumns)
}

// write writes the line of a site.
func (w *resultWriter) write(writing string, p *parts, a *locations.SiteAddress, m address.Match, j judgement) error {
	if w.file == nil {
		return nil
	}
	verdict := "not placed"
	switch {
	case j.isElsewhere:
		verdict = "wrong department"
	case j.isFalse:
		verdict = "not in base"
	case j.isMeasurable && !j.isRight:
		verdict = "far"
	case j.isPlaced:
		verdict = "right"
	}
	return w.csv.Write([]string{writing, p.Set, p.Kind, writeAddress(a), p.ID, m.ID, string(m.Type), m.Label,
		fmt.Sprintf("%.4f", m.Score), strconv.Itoa(int(j.distance)), verdict})
}

// close flushes and closes the file.
func (w *resultWriter) close() error {
	if w.file == nil {
		return nil
	}
	w.csv.Flush()
	return errors.Join(w.csv.Error(), w.file.Close())
}

// count returns 1 for true.
func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// percent returns a share in percent with one decimal.
func percent(part, whole int) float64 {
	return math.Round(1000*float64(part)/float64(max(whole, 1))) / 10
}
