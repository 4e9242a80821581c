package memory_test

import (
	"errors"
	"slices"
	"testing"

	"lieudit/eventstore/sqldb"
	"lieudit/queries/locations/memory"
	"lieudit/queries/locations/search"
	"lieudit/schemas/table"
)

// What is held in memory is of the rows: when those are not on the log it is refused with them, and read anew after.
func TestASearchShowsNothingOfRowsThatAreNotOnTheLog(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), memory.DefaultMaxSites)
	s.put(t, named("a", "x", "Perdu"), named("b", "x", "Perdu"))
	s.names(t, "a")
	s.names(t, "b")
	s.shelf.SetDiverged(s.copy, true)
	if _, err := s.engine.Search(t.Context(), search.Query{Account: "a", Limit: 1}); !errors.Is(err, sqldb.ErrDiverged) {
		t.Errorf("got %v, want %v", err, sqldb.ErrDiverged)
	}
	s.build(t) // a fresh copy serves, which is not as far
	s.last = map[string]int64{}
	row := named("a", "x", "Tenu")
	row.Position = 1
	s.write(t, 1, func(tx *sqldb.Tx) error { return sqldb.Upsert(t.Context(), tx, table.Sites, []table.Site{row}) })
	if a, b := s.names(t, "a"), s.names(t, "b"); !slices.Equal(a, []string{"Tenu"}) || len(b) != 0 {
		t.Errorf("after a rebuild: a has %v and b %v, want what the log holds", a, b)
	}
}

func TestASearchGoesOnWhenTheLogOfItsRowsIsBack(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), memory.DefaultMaxSites)
	s.put(t, named("a", "x", "Là"))
	s.names(t, "a")
	s.shelf.SetDiverged(s.copy, true)
	s.shelf.SetDiverged(s.copy, false)
	if got := s.names(t, "a"); !slices.Equal(got, []string{"Là"}) {
		t.Errorf("got %v", got)
	}
}
