package address

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/vintage"
)

// real holds the official rows of Lozère and Bondy and their vintage, made once for all tests.
type real struct {
	rows   []ban.Row
	engine *Engine
}

var lozere = sync.OnceValues(func() (real, error) {
	dir := os.Getenv("LIEUDIT_TEST_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	var r real
	for _, name := range []string{"adresses-48.csv.gz", "adresses-93010-bondy.csv.gz"} {
		file, err := os.Open(filepath.Join(dir, "ban", name))
		if err != nil {
			return r, err
		}
		defer file.Close()
		var report ban.Report
		for row, err := range ban.Read(file, name, &report) {
			if err != nil {
				return r, err
			}
			r.rows = append(r.rows, row)
		}
	}
	v, err := memory(r.rows)
	if err != nil {
		return r, err
	}
	table, err := commune.Load()
	r.engine = New(v, table)
	return r, err
})

// memory builds a vintage of rows and leaves no file behind: the mapping outlives the name.
func memory(rows []ban.Row) (*vintage.Vintage, error) {
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

func needLozere(t testing.TB) real {
	t.Helper()
	r, err := lozere()
	if os.IsNotExist(err) {
		t.Skipf("no official data (set LIEUDIT_TEST_DATA): %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}
