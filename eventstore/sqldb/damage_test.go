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
	s.CheckFiles(t.Context())
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
		s.CheckFiles(t.Context())
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

// TestATruncatedFileIsNotedAlthoughACheckpointRestoredItsLength truncates the file of a generation just before its write-ahead log is
// moved into it. SQLite makes a file as long again as the header of that log says, with zeros for all that the log does not hold.
func TestATruncatedFileIsNotedAlthoughACheckpointRestoredItsLength(t *testing.T) {
	t.Parallel()
	const page = 4096
	for _, mode := range []string{"passive", "truncate"} { // as after a commit, and as a scrub does it
		for _, left := range []int64{0, page, 3 * page} {
			for _, grown := range []bool{false, true} { // then the log holds the first page of the file
				t.Run(fmt.Sprintf("%s, %d bytes left, grown %t", mode, left, grown), func(t *testing.T) {
					t.Parallel()
					folder := t.TempDir()
					s := openRegistry(t, folder)
					g := buildServing(t, s, model(1), 3)
					db, release, err := s.OpenGeneration(t.Context(), g)
					if err != nil {
						t.Fatal(err)
					}
					defer release()
					readCount(t, s, 3)
					path, raw := filepath.Join(folder, g.Name+".db"), []byte("y")
					if grown {
						raw = bytes.Repeat(raw, 10*page)
					}
					upsert(t, db, []thing{{ID: "a", Count: 7, Raw: raw}})
					s.CheckFiles(t.Context())
					before, err := os.Stat(path)
					if err != nil {
						t.Fatal(err)
					}
					if err := os.Truncate(path, left); err != nil {
						t.Fatal(err)
					}
					if _, err := db.Exec(t.Context(), "pragma wal_checkpoint("+mode+")"); err != nil {
						t.Fatal(err)
					}
					if after, err := os.Stat(path); err != nil || after.Size() < before.Size() {
						t.Fatalf("the file is %v, %v; want it as long as before", after, err)
					}
					s.CheckFiles(t.Context())
					if got := s.Damaged(); len(got) != 1 || got[0] != g.Name {
						t.Errorf("damaged are %v, want %s", got, g.Name)
					}
				})
			}
		}
	}
}

// TestAFileWithNewHolesIsNotDamagedForThat: file systems that compress make holes on their own.
func TestAFileWithNewHolesIsNotDamagedForThat(t *testing.T) {
	t.Parallel()
	s := openRegistry(t, t.TempDir())
	g := buildServing(t, s, model(1), 3)
	readCount(t, s, 3)
	s.CheckFiles(t.Context())
	s.ExpectHoles(g.Name, -4096)
	if !s.HasNewHoles(g.Name) {
		t.Fatal("the holes go unnoticed")
	}
	for range 2 {
		s.CheckFiles(t.Context())
	}
	if got := s.Damaged(); len(got) != 0 {
		t.Errorf("damaged are %v, want none", got)
	}
	if s.HasNewHoles(g.Name) {
		t.Error("its structure is checked again and again")
	}
	readCount(t, s, 3)
}
