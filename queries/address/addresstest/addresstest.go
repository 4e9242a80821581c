// Package addresstest holds the address data that tests share: the official rows of Lozère and Bondy with their vintage
// (Lozere), and an invented set of rows with one case of each rule (Hamlet). BuildVintage turns any rows into a vintage
// without leaving a file behind. Only tests import the package, because it imports testing.
package addresstest

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/officialtest"
	"lieudit/queries/address/vintage"
)

// Dataset is the rows of official files and the vintage of them.
type Dataset struct {
	Rows    []ban.Row
	Vintage *vintage.Vintage
}

// Lozere returns the rows and the vintage of Lozère and Bondy. They are read once for all tests of a package. Without
// the official files the test is skipped (officialtest.SkipOrFail).
func Lozere(t testing.TB) Dataset {
	t.Helper()
	o, err := loadLozere()
	if os.IsNotExist(err) {
		officialtest.SkipOrFail(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

var loadLozere = sync.OnceValues(func() (o Dataset, err error) {
	for _, name := range []string{"ban/adresses-48.csv.gz", "ban/adresses-93010-bondy.csv.gz"} {
		if err := o.readFile(name); err != nil {
			return o, err
		}
	}
	o.Vintage, err = BuildVintage(o.Rows)
	return o, err
})

// RealRows returns the rows and the vintage of Lozère, Bondy and the addresses that the questions of the development set
// mean, which lie in Savoie and in Lyon for the most part. They are read once for all tests of a package.
func RealRows(t testing.TB) Dataset {
	t.Helper()
	lozere := Lozere(t)
	o, err := loadRealRows(lozere.Rows)
	if os.IsNotExist(err) {
		officialtest.SkipOrFail(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

var realRows struct {
	once sync.Once
	Dataset
	err error
}

func loadRealRows(others []ban.Row) (Dataset, error) {
	o := &realRows
	o.once.Do(func() {
		o.Rows = slices.Clone(others)
		if o.err = o.readFile("questions/real-rows.csv.gz"); o.err == nil {
			o.Vintage, o.err = BuildVintage(o.Rows)
		}
	})
	return o.Dataset, o.err
}

// readFile adds the rows of a file of the folder of official files.
func (o *Dataset) readFile(name string) error {
	file, err := os.Open(filepath.Join(officialtest.Folder(), filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	defer file.Close()
	for row, err := range ban.Read(file, name, &ban.Report{}) {
		if err != nil {
			return err
		}
		o.Rows = append(o.Rows, row)
	}
	return nil
}

// BuildVintage builds and opens a vintage of rows. Its file has no name any more: the mapping keeps the content until
// Close.
func BuildVintage(rows []ban.Row) (*vintage.Vintage, error) {
	dir, err := os.MkdirTemp("", "lieudit-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "vintage")
	if _, err := vintage.Build(context.Background(), path, yieldRows(rows), vintage.Options{Millesime: "2024-10-01"}); err != nil {
		return nil, err
	}
	return vintage.Open(path)
}

func yieldRows(rows []ban.Row) iter.Seq2[ban.Row, error] {
	return func(yield func(ban.Row, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// area is the columns of a row that say where it lies.
type area struct{ postcode, code, city string }

// NewArea is the area of a commune, for NewHouse.
func NewArea(postcode, code, city string) area { return area{postcode, code, city} }

func mende() area     { return area{"48000", "48095", "Mende"} }
func chanac() area    { return area{"48230", "48039", "Chanac"} }
func balsieges() area { return area{"48000", "48016", "Balsièges"} }
func paris(n int) area {
	return area{fmt.Sprintf("750%02d", n), fmt.Sprintf("751%02d", n), fmt.Sprintf("Paris %de Arrondissement", n)}
}

// NewHouse is the row of a house number. rep may be empty.
func NewHouse(w area, key, street string, number int, rep string) ban.Row {
	id := fmt.Sprintf("%s_%s_%05d", w.code, key, number)
	if rep != "" {
		id += "_" + rep
	}
	return ban.Row{ID: id, Numero: uint32(number), Rep: rep, Voie: street, CodePostal: w.postcode, CodeInsee: w.code, Commune: w.city,
		Acheminement: w.city, Lon: 3.5 + float64(number)/10000, Lat: 44.5, TypePosition: "entrée"}
}

// newLocality is the row of a locality.
func newLocality(w area, key, name string) ban.Row {
	return ban.Row{ID: w.code + "_" + key, Voie: name, CodePostal: w.postcode, CodeInsee: w.code, Commune: w.city, Kind: ban.Locality,
		Lon: 3.6, Lat: 44.6}
}

// Hamlet returns rows with one case of each rule: repetition indexes, abbreviations, a number in a street name, the
// same street name in two communes, arrondissements, a locality, a former commune.
func Hamlet() []ban.Row {
	rows := []ban.Row{
		NewHouse(mende(), "0010", "Rue des Lilas", 12, "bis"), NewHouse(mende(), "0010", "Rue des Lilas", 12, ""),
		NewHouse(mende(), "0010", "Rue des Lilas", 14, ""), NewHouse(mende(), "0010", "Rue des Lilas", 20, ""),
		NewHouse(mende(), "0020", "Avenue du Général Leclerc", 3, "ter"), NewHouse(mende(), "0030", "Rue du 8 Mai 1945", 8, ""),
		NewHouse(mende(), "0040", "Rue de l'Église", 3, ""), NewHouse(balsieges(), "0040", "Rue de l'Église", 3, ""),
		NewHouse(chanac(), "0010", "Rue des Lilas", 5, ""), NewHouse(chanac(), "0050", "Route de Mende", 7, ""),
		NewHouse(paris(13), "0010", "Rue Jenner", 10, ""), NewHouse(paris(2), "0010", "Rue de la Paix", 10, ""),
		newLocality(mende(), "b001", "Le Chapitre"),
	}
	old := NewHouse(chanac(), "0060", "Place du Foirail", 2, "")
	old.CodeInseeAncienne, old.CommuneAncienne, old.LieuDit = "48102", "Le Monastier", "Les Hermaux"
	return append(rows, old)
}
