package atlas

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"lieudit/queries/address"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/vintage"
)

// made is a vintage of one address.
func made(t *testing.T, millesime string) *vintage.Vintage {
	t.Helper()
	v, _ := madeAt(t, millesime)
	return v
}

// madeAt also says where its file is.
func madeAt(t *testing.T, millesime string) (*vintage.Vintage, string) {
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
	return v, path
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

// questions are all that can be asked of an atlas.
func questions(ctx context.Context) map[string]func(*Edition) (any, error) {
	const text = "3 rue haute 48000 mende"
	return map[string]func(*Edition) (any, error){
		"complete":   func(e *Edition) (any, error) { return e.Complete(ctx, address.Query{Text: text}) },
		"verify":     func(e *Edition) (any, error) { return e.Verify(ctx, address.Query{Text: text}) },
		"verify own": func(e *Edition) (any, error) { return e.Own.Verify(ctx, address.Query{Text: text}) },
		"view":       func(e *Edition) (any, error) { r, _ := e.View("48095_0275_00003"); return r, nil },
		"near": func(e *Edition) (any, error) {
			return e.Near(address.Position{Lon: 3.5, Lat: 44.52}, 500, 5, address.Filter{}), nil
		},
	}
}

func TestAFileCutShortWithdrawsTheVintageUnderEveryQuestion(t *testing.T) {
	t.Parallel()
	a := empty(t)
	for name, question := range questions(t.Context()) {
		v, path := madeAt(t, "2024-01-01")
		a.Swap(v)
		if _, err := Ask(a, question); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, err := Ask(a, question)
			if _, ok := errors.AsType[*WithdrawnError](err); !ok || !errors.Is(err, vintage.ErrDamaged) || !errors.Is(err, ErrNone) {
				t.Errorf("%s: %v, want a *WithdrawnError", name, err)
			}
		}
		if e, ok := a.Use(); ok {
			t.Errorf("%s: it is served still", name)
			e.Done()
		}
	}
	a.Swap(nil)
}

func TestOneVintageWithdrawnUnderManyReadersIsUnmappedOnce(t *testing.T) {
	t.Parallel()
	a := empty(t)
	v, path := madeAt(t, "2024-01-01")
	a.Swap(v)
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for {
				for _, question := range questions(t.Context()) {
					if _, err := Ask(a, question); errors.Is(err, ErrNone) {
						return
					}
				}
			}
		})
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	readers.Wait()
	if err := v.Verify(t.Context()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("its last reader left it open: %v", err)
	}
}

func TestAnEmptyAtlasSaysWhy(t *testing.T) {
	t.Parallel()
	a := empty(t)
	ask := func() error {
		_, err := Ask(a, func(*Edition) (int, error) { return 1, nil })
		return err
	}
	if err := ask(); err != ErrNone {
		t.Errorf("got %v, want %v", err, ErrNone)
	}
	reason := errors.New("gone")
	a.Withdraw(reason)
	if err := ask(); !errors.Is(err, reason) {
		t.Errorf("got %v, want %v", err, reason)
	}
	a.Swap(made(t, "2025-01-01"))
	if err := ask(); err != nil {
		t.Errorf("got %v", err)
	}
	a.Swap(nil)
	if err := ask(); err != ErrNone {
		t.Errorf("got %v, want %v", err, ErrNone)
	}
}
