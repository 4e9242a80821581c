package sqldb_test

import (
	"errors"
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

// TestACutFileIsNotedAlthoughACheckpointMadeItAsLongAsBefore empties the file of a generation just before its write-ahead log is moved into
// it. SQLite makes a small file as long again as its log says, with zeros for everything that the log does not hold.
func TestACutFileIsNotedAlthoughACheckpointMadeItAsLongAsBefore(t *testing.T) {
	t.Parallel()
	for name, checkpoint := range map[string]func(*testing.T, *sqldb.Registry, sqldb.Generation, *sqldb.DB) error{
		"by SQLite": func(t *testing.T, _ *sqldb.Registry, _ sqldb.Generation, db *sqldb.DB) error {
			return db.TruncateWAL(t.Context())
		},
		"by a scrub": func(t *testing.T, s *sqldb.Registry, g sqldb.Generation, db *sqldb.DB) error {
			_, err := s.Scrub(t.Context(), model(1), g, db)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, m := t.TempDir(), model(1)
			s := openRegistry(t, folder)
			g := buildServing(t, s, m, 3)
			db, release, err := s.OpenGeneration(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			path := filepath.Join(folder, g.Name+".db")
			before, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			upsert(t, db, []thing{{ID: "a", Count: 7, Raw: []byte("y")}})
			err = errors.Join(os.Truncate(path, 0), checkpoint(t, s, g, db))
			if after, statErr := os.Stat(path); name == "by SQLite" && (err != nil || statErr != nil || after.Size() != before.Size()) {
				t.Fatalf("the checkpoint: %v; the file is %v, %v; want as many bytes as before, %d", err, after, statErr, before.Size())
			}
			s.CheckFiles(t.Context())
			if got := s.Damaged(); len(got) != 1 || got[0] != g.Name {
				t.Errorf("damaged are %v, want %s", got, g.Name)
			}
		})
	}
}
