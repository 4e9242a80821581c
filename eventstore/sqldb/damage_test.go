package sqldb_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lieudit/eventstore/sqldb"
)

// fileDamages are what happens to the file of a generation that serves.
func fileDamages() map[string]func(path string) error {
	return map[string]func(path string) error{
		"removed": os.Remove,
		"cut":     func(path string) error { return os.Truncate(path, 1000) },
		"emptied": func(path string) error { return os.Truncate(path, 0) },
		"overwritten": func(path string) error {
			return os.WriteFile(path, []byte(strings.Repeat("not a database ", 10_000)), 0o600)
		},
		"replaced": func(path string) error {
			content, err := os.ReadFile(path)
			return errors.Join(err, os.Remove(path), os.WriteFile(path, content, 0o600))
		},
	}
}

func TestADamagedFileIsNotReadAndIsReplaced(t *testing.T) {
	t.Parallel()
	for name, do := range fileDamages() {
		for _, isOpen := range []bool{true, false} {
			if name == "replaced" && !isOpen || name == "overwritten" && isOpen {
				continue // the first is not damage; of the second SQLite has a copy in memory
			}
			t.Run(map[bool]string{true: "open, ", false: "closed, "}[isOpen]+name, func(t *testing.T) {
				t.Parallel()
				checkReplacement(t, isOpen, do)
			})
		}
	}
}

// checkReplacement damages the file of a generation and checks that nothing is read from it, and that another takes its place.
func checkReplacement(t *testing.T, isOpen bool, do func(path string) error) {
	folder, m := t.TempDir(), model(1)
	s := openRegistry(t, folder)
	g := buildServing(t, s, m, 3)
	if !isOpen {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openRegistry(t, folder)
	}
	if isOpen {
		readCount(t, s, 3)
	}
	path := filepath.Join(folder, g.Name+".db")
	if err := do(path); err != nil {
		t.Fatal(err)
	}
	s.CheckFiles()
	err := s.Read(t.Context(), m, func(*sqldb.DB) error { return nil })
	if !sqldb.IsDamage(err) {
		t.Fatalf("reading a damaged generation: %v, want damage", err)
	}
	if got := s.Damaged(); len(got) != 1 || got[0] != g.Name || s.Replacement(m) == "" {
		t.Fatalf("damaged are %v, %q; want %s and why", got, s.Replacement(m), g.Name)
	}
	if err := s.PutAside(t.Context(), g.Name); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) || len(s.Damaged()) != 0 {
		t.Errorf("put aside: %v, damaged are %v", err, s.Damaged())
	}
	fresh := buildServing(t, s, m, 5)
	if fresh.Number != g.Number+1 {
		t.Errorf("the replacement is %s", fresh.Name)
	}
	readCount(t, s, 5)
	if got := s.Replacement(m); got != "" {
		t.Errorf("it is still to be replaced: %s", got)
	}
	if left, err := filepath.Glob(filepath.Join(folder, g.Name+"*")); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestALostRegistryListsNothingAndItsFilesAreRemoved(t *testing.T) {
	t.Parallel()
	for _, isOpen := range []bool{true, false} {
		folder, m := t.TempDir(), model(1)
		s := openRegistry(t, folder)
		g := buildServing(t, s, m, 3)
		readCount(t, s, 3)
		if !isOpen {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = openRegistry(t, folder)
		}
		if err := os.Remove(filepath.Join(folder, "registry.db")); err != nil {
			t.Fatal(err)
		}
		s.CheckFiles()
		if all, err := s.Generations(t.Context()); err != nil || len(all) != 0 || s.Replacement(m) == "" {
			t.Errorf("open %t: %v, %v, %q; want no generation and why", isOpen, all, err, s.Replacement(m))
		}
		fresh := buildServing(t, s, m, 5)
		if isOpen && fresh.Number == g.Number {
			t.Errorf("%s is used twice", g.Name)
		}
		readCount(t, s, 5)
	}
}

// readCount reads the generation that serves, which must have n rows.
func readCount(t *testing.T, s *sqldb.Registry, want int) {
	t.Helper()
	got := 0
	err := s.Read(t.Context(), model(1), func(db *sqldb.DB) (err error) {
		got, err = count(t.Context(), db)
		return err
	})
	if err != nil || got != want {
		t.Errorf("read %d rows, %v; want %d", got, err, want)
	}
}

// TestATruncatedFileIsNotedBeforeACheckpointRestoresItsLength truncates the file of a generation just before something is written. SQLite
// makes a file as long again as the header of its write-ahead log says, with zeros for all that the log does not hold.
func TestATruncatedFileIsNotedBeforeACheckpointRestoresItsLength(t *testing.T) {
	t.Parallel()
	const page = 4096
	writes := map[string]func(*sqldb.Registry, sqldb.Generation, *sqldb.DB) error{
		"a transaction": func(_ *sqldb.Registry, _ sqldb.Generation, db *sqldb.DB) error {
			return db.RunInTx(t.Context(), func(tx *sqldb.Tx) error {
				_, err := tx.Exec(t.Context(), "update {thing} set count = 9")
				return err
			})
		},
		"a statement": func(_ *sqldb.Registry, _ sqldb.Generation, db *sqldb.DB) error {
			_, err := db.Exec(t.Context(), "update {thing} set count = 9")
			return err
		},
		"a scrub": func(s *sqldb.Registry, g sqldb.Generation, db *sqldb.DB) error {
			_, err := s.Scrub(t.Context(), model(1), g, db)
			return err
		},
	}
	for name, write := range writes {
		for _, size := range []int64{0, page, 3 * page} {
			for _, grown := range []bool{false, true} { // then the log holds the first page of the file
				t.Run(fmt.Sprintf("%s, %d bytes left, grown %t", name, size, grown), func(t *testing.T) {
					t.Parallel()
					folder := t.TempDir()
					s := openRegistry(t, folder)
					g := buildServing(t, s, model(1), 3)
					db, release, err := s.OpenGeneration(t.Context(), g)
					if err != nil {
						t.Fatal(err)
					}
					defer release()
					raw := []byte("y")
					if grown {
						raw = bytes.Repeat(raw, 10*page)
					}
					upsert(t, db, []thing{{ID: "a", Count: 7, Raw: raw}})
					if err := os.Truncate(filepath.Join(folder, g.Name+".db"), size); err != nil {
						t.Fatal(err)
					}
					if err := write(s, g, db); !sqldb.IsDamage(err) {
						t.Errorf("%v, want damage", err)
					}
					if got := s.Damaged(); len(got) != 1 || got[0] != g.Name {
						t.Errorf("damaged are %v, want %s", got, g.Name)
					}
				})
			}
		}
	}
}
