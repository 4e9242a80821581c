package sqldb_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/schemas/table"
)

func dropSuperseded(t *testing.T, s *sqldb.Registry, m table.ReadModel) []string {
	t.Helper()
	names, err := s.DropSuperseded(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// assertLeft fails unless exactly these generations are left.
func assertLeft(t *testing.T, s *sqldb.Registry, want ...string) {
	t.Helper()
	all, err := s.Generations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range all {
		got = append(got, g.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("generations %v are left, want %v", got, want)
	}
}

func TestTheServingGenerationAndItsPredecessorStay(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := openRegistry(t, address)
		var built []sqldb.Generation
		for n := range 4 {
			built = append(built, buildServing(t, s, model(1), n))
			var want []string
			if n >= 2 {
				want = []string{built[n-2].Name}
			}
			if got := dropSuperseded(t, s, model(1)); !slices.Equal(got, want) {
				t.Errorf("dropped %v, want %v", got, want)
			}
		}
		assertLeft(t, s, built[2].Name, built[3].Name)
		for _, g := range built[:2] {
			assertDropped(t, address, g)
		}
		err := s.Read(t.Context(), model(1), func(db *sqldb.DB) error {
			n, err := count(t.Context(), db)
			if n != 3 {
				t.Errorf("read %d rows, want the 3 of the generation that serves", n)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestASupersededGenerationStaysWhileAnInstanceReadsIt(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s, reader := openRegistry(t, address), openRegistry(t, address)
		first := buildServing(t, s, model(1), 1)
		db, release, err := reader.OpenGeneration(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		buildServing(t, s, model(1), 2)
		buildServing(t, s, model(1), 3)
		if got := dropSuperseded(t, s, model(1)); len(got) != 0 {
			t.Errorf("dropped %v while another instance reads it", got)
		}
		if n, err := count(t.Context(), db); n != 1 || err != nil {
			t.Errorf("the reader gets %d rows, %v, want 1", n, err)
		}
		release()
		if got := dropSuperseded(t, s, model(1)); !slices.Equal(got, []string{first.Name}) {
			t.Errorf("dropped %v, want %v", got, first.Name)
		}
	})
}

// On a full disk every attempt fails for as long as it is full.
func TestAGenerationWhoseTablesCannotBeMadeLeavesNothing(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := openRegistry(t, address)
		impossible := model(1)
		impossible.Tables = append(slices.Clone(impossible.Tables), impossible.Tables[0]) // the same table twice
		impossible.Tables[len(impossible.Tables)-1].KeyColumns = 0
		for range 3 {
			if g, err := s.BuildGeneration(t.Context(), impossible, true); err == nil {
				t.Fatalf("%s was made", g.Name)
			}
		}
		assertLeft(t, s)
		if rows := countRegistered(t, address); rows != 1 {
			t.Errorf("the registry has %d rows of the three attempts, want that of the last, whose number must not be used again", rows)
		}
		g := buildServing(t, s, model(1), 1)
		assertLeft(t, s, g.Name)
		if g.Number != 4 { // a number may be that of a damaged generation, which no attempt can open
			t.Errorf("%s is built after three attempts, which used up a number each", g.Name)
		}
	})
}

// countRegistered counts the rows of the registry's list of generations, with those that are dropped.
func countRegistered(t *testing.T, address string) (rows int) {
	t.Helper()
	list, where := "lieudit.copy", address
	if !strings.HasPrefix(address, "postgres") {
		list, where = "copy", filepath.Join(address, "registry.db")
	}
	if err := openRaw(t, where).QueryRow("select count(*) from " + list).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// A program that is killed cannot drop what it began.
func TestAGenerationThatWasNeverFinishedIsSuperseded(t *testing.T) {
	t.Parallel()
	m := model(1)
	generation := func(number int64, state sqldb.GenerationState) sqldb.Generation {
		return sqldb.Generation{Name: fmt.Sprint(number), Model: m.Name, Version: int64(m.Version), Number: number, State: state}
	}
	begun, serving, rebuilding := generation(1, sqldb.Creating), generation(2, sqldb.Serving), generation(3, sqldb.Creating)
	if got := sqldb.Superseded([]sqldb.Generation{begun, serving, rebuilding}, m); !slices.Equal(got, []sqldb.Generation{begun}) {
		t.Errorf("%v are superseded, want the one that was begun before the one that serves", got)
	}
	if got := sqldb.Superseded([]sqldb.Generation{begun, rebuilding}, m); len(got) != 0 {
		t.Errorf("%v are superseded although none serves", got)
	}
}

func TestOtherVersionsAndWhatIsBeingBuiltAreNotSuperseded(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := openRegistry(t, address)
		var want []string
		for _, m := range []table.ReadModel{model(1), model(3)} { // an older program and a newer one
			for n := range 3 {
				want = append(want, buildServing(t, s, m, n).Name)
			}
		}
		build := func() string {
			g, err := s.BuildGeneration(t.Context(), model(2), false)
			if err != nil {
				t.Fatal(err)
			}
			return g.Name
		}
		givenUp, building := build(), build()
		if got := dropSuperseded(t, s, model(2)); len(got) != 0 {
			t.Errorf("dropped %v before any generation of the version serves", got)
		}
		serving := buildServing(t, s, model(2), 1).Name // gives up the one that was being built
		want = slices.Insert(want, 3, serving, build())
		if got := dropSuperseded(t, s, model(2)); !slices.Equal(got, []string{givenUp, building}) {
			t.Errorf("dropped %v, want those that never served: %v, %v", got, givenUp, building)
		}
		assertLeft(t, s, want...)
	})
}

// A process may end between the removal of a file and the entry in the registry, and on Postgres somebody may hold a table.
func TestADropThatWasCutShortIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := openRegistry(t, address)
		first := buildServing(t, s, model(1), 1)
		second := buildServing(t, s, model(1), 2)
		third := buildServing(t, s, model(1), 3)
		if strings.HasPrefix(address, "postgres") {
			tx, err := openRaw(t, address).Begin()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec("select * from " + strings.ReplaceAll(first.Name, "-", "_") + ".thing"); err != nil {
				t.Fatal(err)
			}
			if got, err := s.DropSuperseded(t.Context(), model(1)); err == nil {
				t.Errorf("dropped %v while somebody queries it", got)
			}
			assertLeft(t, s, first.Name, second.Name, third.Name)
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
		} else if err := os.Remove(filepath.Join(address, first.Name+".db")); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		next := openRegistry(t, address)
		if got := dropSuperseded(t, next, model(1)); !slices.Equal(got, []string{first.Name}) {
			t.Errorf("dropped %v, want %v", got, first.Name)
		}
		assertLeft(t, next, second.Name, third.Name)
		assertDropped(t, address, first)
	})
}
