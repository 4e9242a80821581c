package vintages

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/dirlock"
	"lieudit/queries/address/vintage"
)

const addressCSV = "id;numero;rep;nom_voie;code_postal;code_insee;nom_commune;lon;lat\n48095_a_00003;3;;Rue Basse;48000;48095;Mende;3.5;44.5\n"

// mustImport imports rows of a file into a folder.
func mustImport(t *testing.T, f Folder, now time.Time) string {
	t.Helper()
	name, err := tryImport(t, f, now, false)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func tryImport(t *testing.T, f Folder, now time.Time, fresh bool) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "adresses-2026-01-02.csv")
	if err := os.WriteFile(file, []byte(addressCSV), 0o600); err != nil {
		t.Fatal(err)
	}
	sources, err := OpenSources(t.Context(), []string{file})
	if err != nil {
		t.Fatal(err)
	}
	defer sources.Close()
	millesime, _ := sources.Millesime()
	name, _, err := Import{Folder: f, Sources: sources, Millesime: millesime, Fresh: fresh, Now: now}.Run(t.Context())
	return name, err
}

// startWatcher runs a watcher until the test ends and returns the vintages that it passes to swap.
func startWatcher(t *testing.T, f Folder) <-chan *vintage.Vintage {
	t.Helper()
	swapped := make(chan *vintage.Vintage, 8)
	ctx, cancel := context.WithCancel(context.Background())
	watcher := NewWatcher(f, slog.New(slog.NewTextHandler(t.Output(), nil)), func(_ context.Context, v *vintage.Vintage) { swapped <- v }, func(error) {})
	ended := make(chan error, 1)
	go func() { ended <- watcher.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		close(swapped)
		for v := range swapped {
			v.Close()
		}
	})
	for deadline := time.Now().Add(deadlinetest.Scale(deadlinetest.DefaultLimit)); ; time.Sleep(time.Millisecond) {
		if _, running, err := f.ServedVintage(); err != nil || running {
			return swapped
		}
		if time.Now().After(deadline) {
			t.Fatal("the watcher does not announce that it runs")
		}
	}
}

func TestMillesimeIsTheDateInAName(t *testing.T) {
	t.Parallel()
	if got := mustImport(t, FolderIn(t.TempDir()), time.UnixMilli(7)); got != "2026-01-02-7" {
		t.Errorf("got %s", got)
	}
}

func TestMillesimeSaysWhetherItIsTheDateOfAFile(t *testing.T) {
	t.Parallel()
	dir, changed := t.TempDir(), time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		names      []string
		want       string
		isFileDate bool
	}{
		{[]string{"adresses-2026-01-02.csv"}, "2026-01-02", false},
		{[]string{"adresses-48.csv"}, "2026-03-04", true},
		{[]string{"adresses-2026-13-45.csv"}, "2026-03-04", true},
		{[]string{"adresses-2026-01-02.csv", "lieux-dits.csv"}, "2026-03-04", true},
		{[]string{"lieux-dits.csv", "adresses-20260304.csv"}, "2026-03-04", false},
		{[]string{"lieux-dits.csv", "adresses-2026-05-06.csv"}, "2026-05-06", false},
	} {
		var paths []string
		for _, name := range c.names {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, changed, changed)); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, path)
		}
		sources, err := OpenSources(t.Context(), paths)
		if err != nil {
			t.Fatal(err)
		}
		if got, isFileDate := sources.Millesime(); got != c.want || isFileDate != c.isFileDate {
			t.Errorf("%v: %s, of the file %v, want %s, %v", c.names, got, isFileDate, c.want, c.isFileDate)
		}
		sources.Close()
	}
}

func TestARunningServiceTakesOverAnImport(t *testing.T) {
	t.Parallel()
	f := FolderIn(t.TempDir())
	swapped := startWatcher(t, f)
	name := mustImport(t, f, time.UnixMilli(1))
	if running, err := f.AwaitServed(t.Context(), name); err != nil || !running {
		t.Fatalf("awaited: %v, %v", running, err)
	}
	v := <-swapped
	defer v.Close()
	if v.Millesime != "2026-01-02" {
		t.Errorf("handed %s", v.Millesime)
	}
}

func TestAVintageThatCannotBeOpenedIsRefusedByName(t *testing.T) {
	t.Parallel()
	f := FolderIn(t.TempDir())
	swapped := startWatcher(t, f)
	bad, _, err := f.Add(t.Context(), time.UnixMilli(1), func(path, _ string) (vintage.Summary, error) {
		return vintage.Summary{}, os.WriteFile(path, []byte(strings.Repeat("x", 100)), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	var refused *RefusedError
	if _, err := f.AwaitServed(t.Context(), bad); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "not a vintage") {
		t.Errorf("got %v, want a *RefusedError", err)
	}
	if len(swapped) > 0 {
		t.Error("it was handed on all the same")
	}
}

func TestASecondImportAtATimeIsRefused(t *testing.T) {
	t.Parallel()
	f := FolderIn(t.TempDir())
	_, _, err := f.Add(t.Context(), time.UnixMilli(1), func(string, string) (vintage.Summary, error) {
		_, _, err := f.Add(t.Context(), time.UnixMilli(2), nil)
		return vintage.Summary{}, err
	})
	var held *dirlock.HeldError
	if !errors.As(err, &held) {
		t.Errorf("got %v, want a *dirlock.HeldError", err)
	}
}

func TestLeftoversOfKilledImportsAreRemoved(t *testing.T) {
	t.Parallel()
	f := FolderIn(t.TempDir())
	if err := f.RemoveLeftovers(time.UnixMilli(1)); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
	name := mustImport(t, f, time.UnixMilli(1))
	for _, left := range []string{".draft", "older" + vintageExtension} {
		if err := os.WriteFile(filepath.Join(f.dir, left), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(f.dir, ".vintage-123"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.RemoveLeftovers(time.UnixMilli(2)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if want := []string{name + vintageExtension, currentFile, "lock"}; !slices.Equal(got, want) {
		t.Errorf("left: %v, want %v", got, want)
	}
}

func TestTwoServicesOnOneFolderBothTakeOverAnImport(t *testing.T) {
	t.Parallel()
	f := FolderIn(t.TempDir())
	first, second := startWatcher(t, f), startWatcher(t, f)
	mustImport(t, f, time.UnixMilli(1))
	for _, swapped := range []<-chan *vintage.Vintage{first, second} {
		select {
		case v := <-swapped:
			v.Close()
		case <-time.After(deadlinetest.Scale(deadlinetest.DefaultLimit)):
			t.Fatal("one of them does not take it over")
		}
	}
}
