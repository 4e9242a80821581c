package live

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
	"lieudit/schemas/geo"
)

// newVintage is a vintage of one address.
func newVintage(t *testing.T, millesime string) *vintage.Vintage {
	t.Helper()
	v, _ := newVintageFile(t, millesime)
	return v
}

// newVintageFile is newVintage with the path of its file.
func newVintageFile(t *testing.T, millesime string) (*vintage.Vintage, string) {
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

func newEmpty(t *testing.T) *Vintage {
	t.Helper()
	communes, err := commune.Load()
	if err != nil {
		t.Fatal(err)
	}
	return New(communes)
}

func TestAReaderKeepsTheVintageItStartedOn(t *testing.T) {
	t.Parallel()
	a := newEmpty(t)
	if _, ok := a.Acquire(); ok {
		t.Error("an empty holder returned a vintage")
	}
	first, second := newVintage(t, "2024-01-01"), newVintage(t, "2025-01-01")
	a.Swap(first)
	old, ok := a.Acquire()
	if !ok || old.Meta.Millesime != "2024-01-01" {
		t.Fatalf("got %v", old)
	}
	a.Swap(second)
	next, _ := a.Acquire()
	if _, found := old.View("48095_0275_00003"); !found || next.Meta.Millesime != "2025-01-01" || isClosed(t, first) {
		t.Errorf("the old one is gone, or the new one is not there: %+v", next.Meta)
	}
	old.Release()
	next.Release()
	a.Swap(nil)
	for _, v := range []*vintage.Vintage{first, second} {
		if !isClosed(t, v) {
			t.Errorf("its last reader left %s open", v.Meta.Millesime)
		}
	}
}

// isClosed reports whether the file of a vintage is closed.
func isClosed(t *testing.T, v *vintage.Vintage) bool {
	t.Helper()
	return errors.Is(v.Verify(t.Context()), os.ErrClosed)
}

func TestSwapsDuringQueriesLoseNoAnswer(t *testing.T) {
	t.Parallel()
	a := newEmpty(t)
	a.Swap(newVintage(t, "2024-01-01"))
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 500 {
				e, ok := a.Acquire()
				if !ok {
					t.Error("no vintage")
					return
				}
				if _, found := e.View("48095_0275_00003"); !found {
					t.Error("not found")
				}
				e.Release()
			}
		})
	}
	for range 20 {
		a.Swap(newVintage(t, "2025-01-01"))
	}
	readers.Wait()
	a.Swap(nil)
}

// queries has one query of every kind that runs on an Engine.
func queries(ctx context.Context) map[string]func(*Engine) (any, error) {
	const text = "3 rue haute 48000 mende"
	return map[string]func(*Engine) (any, error){
		"complete":   func(e *Engine) (any, error) { return e.Complete(ctx, address.Query{Text: text}) },
		"verify":     func(e *Engine) (any, error) { return e.Verify(ctx, address.Query{Text: text}) },
		"verify own": func(e *Engine) (any, error) { return e.OwnIndex.Verify(ctx, address.Query{Text: text}) },
		"view":       func(e *Engine) (any, error) { r, _ := e.View("48095_0275_00003"); return r, nil },
		"near": func(e *Engine) (any, error) {
			return e.Near(geo.Point{Lon: 3.5, Lat: 44.52}, 500, 5, address.Filter{}), nil
		},
	}
}

func TestATruncatedFileWithdrawsTheVintageInEveryQuery(t *testing.T) {
	t.Parallel()
	a := newEmpty(t)
	for name, query := range queries(t.Context()) {
		v, path := newVintageFile(t, "2024-01-01")
		a.Swap(v)
		if _, err := Query(a, query); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, err := Query(a, query)
			if _, ok := errors.AsType[*WithdrawnError](err); !ok || !errors.Is(err, vintage.ErrDamaged) || !errors.Is(err, ErrNone) {
				t.Errorf("%s: %v, want a *WithdrawnError", name, err)
			}
		}
		if e, ok := a.Acquire(); ok {
			t.Errorf("%s: it is served still", name)
			e.Release()
		}
	}
	a.Swap(nil)
}

func TestOneVintageWithdrawnUnderManyReadersIsUnmappedOnce(t *testing.T) {
	t.Parallel()
	a := newEmpty(t)
	v, path := newVintageFile(t, "2024-01-01")
	a.Swap(v)
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for {
				for _, query := range queries(t.Context()) {
					if _, err := Query(a, query); errors.Is(err, ErrNone) {
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
	if !isClosed(t, v) {
		t.Error("its last reader left it open")
	}
}

func TestQueryWithoutAVintageReportsTheReason(t *testing.T) {
	t.Parallel()
	a := newEmpty(t)
	ask := func() error {
		_, err := Query(a, func(*Engine) (int, error) { return 1, nil })
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
	a.Swap(newVintage(t, "2025-01-01"))
	if err := ask(); err != nil {
		t.Errorf("got %v", err)
	}
	a.Swap(nil)
	if err := ask(); err != ErrNone {
		t.Errorf("got %v, want %v", err, ErrNone)
	}
}
