// Package addresstest is the data that tests of addresses share: the official rows of Lozère and Bondy, where they are at
// hand, and a hamlet that holds one of each thing the rules speak of. It is for tests alone.
package addresstest

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/officialtest"
	"lieudit/queries/address/vintage"
)

// Official is the rows of official files and their vintage.
type Official struct {
	Rows    []ban.Row
	Vintage *vintage.Vintage
}

// Lozere is that of Lozère and Bondy, made once for all tests; the test is skipped where the files are not.
func Lozere(t testing.TB) Official {
	t.Helper()
	o, err := lozere()
	if os.IsNotExist(err) {
		officialtest.Missing(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

var lozere = sync.OnceValues(func() (o Official, err error) {
	for _, name := range []string{"adresses-48.csv.gz", "adresses-93010-bondy.csv.gz"} {
		if err := o.read(name); err != nil {
			return o, err
		}
	}
	o.Vintage, err = Memory(o.Rows)
	return o, err
})

func (o *Official) read(name string) error {
	file, err := os.Open(filepath.Join(officialtest.Folder(), "ban", name))
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

// Memory builds a vintage of rows and leaves no file behind: the mapping outlives the name.
func Memory(rows []ban.Row) (*vintage.Vintage, error) {
	dir, err := os.MkdirTemp("", "lieudit-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "vintage")
	if _, err := vintage.Build(context.Background(), path, each(rows), vintage.Options{Millesime: "2024-10-01"}); err != nil {
		return nil, err
	}
	return vintage.Open(path)
}

func each(rows []ban.Row) iter.Seq2[ban.Row, error] {
	return func(yield func(ban.Row, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}
