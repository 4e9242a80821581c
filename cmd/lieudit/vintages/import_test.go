package vintages

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
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
	millesime, _ := sources.Date()
	name, _, err := Import{Folder: f, Sources: sources, Millesime: millesime, Fresh: fresh, Now: now}.Run(t.Context())
	return name, err
}

func TestMillesimeIsTheDateInAName(t *testing.T) {
	t.Parallel()
	if got := mustImport(t, FolderIn(t.TempDir()), time.UnixMilli(7)); got != "2026-01-02-7" {
		t.Errorf("got %s", got)
	}
}

func TestAnImportRefusesToLoseTheIdsOfAVintageThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(current, file string) error{
		"the name and the file":   func(current, file string) error { return errors.Join(os.Remove(current), os.Remove(file)) },
		"the file":                func(_, file string) error { return os.Remove(file) },
		"the name, for another":   func(current, _ string) error { return os.WriteFile(current, []byte("2020-01-01-1"), 0o600) },
		"the name, into a folder": func(current, _ string) error { return errors.Join(os.Remove(current), os.Mkdir(current, 0o700)) },
		"half the file":           func(_, file string) error { return os.Truncate(file, 2000) },
		"a byte of the file":      flipByte,
	} {
		data := t.TempDir()
		f := FolderIn(data)
		vintage := mustImport(t, f, time.UnixMilli(7))
		if err := lose(filepath.Join(data, "vintages", "current"), f.Path(vintage)); err != nil {
			t.Fatal(err)
		}
		if _, err := tryImport(t, f, time.UnixMilli(8), false); !isUnreadableCurrent(err) {
			t.Errorf("%s: imported with %v, want an *UnreadableCurrentError", name, err)
		}
		if _, err := tryImport(t, f, time.UnixMilli(9), true); err != nil {
			t.Errorf("%s: begun anew with %v", name, err)
		}
	}
}

// flipByte changes the byte in the middle of a file.
func flipByte(_, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	data[len(data)/2] ^= 8
	return os.WriteFile(path, data, 0o600)
}

func isUnreadableCurrent(err error) bool {
	_, ok := errors.AsType[*UnreadableCurrentError](err)
	return ok
}

func TestAnImportCarriesIdsOverFromTheOnlyVintage(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	f := FolderIn(data)
	mustImport(t, f, time.UnixMilli(7))
	if err := os.Remove(filepath.Join(data, "vintages", "current")); err != nil {
		t.Fatal(err)
	}
	if _, err := tryImport(t, f, time.UnixMilli(8), false); err != nil {
		t.Errorf("got %v, want the ids of the vintage that is there carried over", err)
	}
}
