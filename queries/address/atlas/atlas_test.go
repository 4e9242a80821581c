package atlas

import (
	"path/filepath"
	"sync"
	"testing"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/vintage"
)

// made is a vintage of one address.
func made(t *testing.T, millesime string) *vintage.Vintage {
	t.Helper()
	path := filepath.Join(t.TempDir(), "v")
	row := ban.Row{ID: "48095_0275_00003", Numero: 3, Voie: "Rue Haute", CodePostal: "48000", CodeInsee: "48095", Commune: "Mende",
		Lon: 3.5, Lat: 44.52}
	rows := func(yield func(ban.Row, error) bool) { yield(row, nil) }
	if _, err := vintage.Build(t.Context(), path, rows, vintage.Options{Millesime: millesime}); err != nil {
		t.Fatal(err)
	}
	v, err := vintage.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func empty(t *testing.T) *Atlas {
	t.Helper()
	communes, err := commune.Load()
	if err != nil {
		t.Fatal(err)
	}
	return New(communes)
}

func TestAReaderGoesOnWithTheVintageItBegan(t *testing.T) {
	t.Parallel()
	a := empty(t)
	if _, ok := a.Use(); ok {
		t.Error("an empty atlas gave a vintage")
	}
	a.Swap(made(t, "2024-01-01"))
	old, ok := a.Use()
	if !ok || old.Meta.Millesime != "2024-01-01" {
		t.Fatalf("got %v", old)
	}
	a.Swap(made(t, "2025-01-01"))
	next, _ := a.Use()
	if _, found := old.View("48095_0275_00003"); !found || next.Meta.Millesime != "2025-01-01" || old.readers != 1 {
		t.Errorf("the old one is gone, or the new one is not there: %+v", next.Meta)
	}
	old.Done()
	next.Done()
	a.Swap(nil)
	if old.readers != 0 || next.readers != 0 {
		t.Errorf("%d and %d readers are left", old.readers, next.readers)
	}
}

func TestSwapsUnderReadersLoseNoAnswer(t *testing.T) {
	t.Parallel()
	a := empty(t)
	a.Swap(made(t, "2024-01-01"))
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 500 {
				e, ok := a.Use()
				if !ok {
					t.Error("no vintage")
					return
				}
				if _, found := e.View("48095_0275_00003"); !found {
					t.Error("not found")
				}
				e.Done()
			}
		})
	}
	for range 20 {
		a.Swap(made(t, "2025-01-01"))
	}
	readers.Wait()
	a.Swap(nil)
}
