package projector

import (
	"errors"
	"strings"
	"testing"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/schemas/table"
)

// Updates of a row that a correction may have voided give the same result in one batch as in many, in any order.
func TestUpdatesOfARowThatMayBeMissingAreTheSameInOneBatch(t *testing.T) {
	t.Parallel()
	add := func(text string) func(*table.Referential) { return func(r *table.Referential) { r.Name += text } }
	made := func() table.Referential { return table.Referential{ID: "x", Name: "made"} }
	type update struct {
		missing func() table.Referential
		text    string
	}
	for name, c := range map[string]struct {
		updates []update
		want    string // "": there is no row
	}{
		"made first":   {[]update{{made, "1"}, {nil, "2"}}, "made12"},
		"made later":   {[]update{{nil, "1"}, {made, "2"}, {nil, "3"}}, "made23"},
		"made once":    {[]update{{made, "1"}, {made, "2"}}, "made12"},
		"never made":   {[]update{{nil, "1"}, {nil, "2"}}, ""},
		"only changed": {[]update{{nil, "1"}}, ""},
	} {
		for how, batchSize := range map[string]int{"one batch": len(c.updates), "many": 1} {
			t.Run(name+" in "+how, func(t *testing.T) {
				t.Parallel()
				db := openReferentials(t)
				for from := 0; from < len(c.updates); from += batchSize {
					b := newChangeset()
					b.toleratesMissing = true
					for _, u := range c.updates[from : from+batchSize] {
						UpdateRowOr(b, table.Referentials, "x", u.missing, add(u.text))
					}
					if err := db.RunInTx(t.Context(), func(tx *sqldb.Tx) error { return b.flush(t.Context(), tx) }); err != nil {
						t.Fatal(err)
					}
				}
				rows, err := sqldb.Select(t.Context(), db, table.Referentials, "")
				got := ""
				for _, r := range rows {
					got += r.Name
				}
				if err != nil || got != c.want {
					t.Errorf("got %q, %v, want %q", got, err, c.want)
				}
			})
		}
	}
}

// A deferred change runs after the handlers. Its panic ends the transaction, as in a handler, and not the program.
func TestAChangeThatPanicsLateIsAnError(t *testing.T) {
	t.Parallel()
	db := openReferentials(t)
	put, change := newChangeset(), newChangeset()
	PutRow(put, table.Referentials, table.Referential{ID: "x"})
	UpdateRow(change, table.Referentials, "x", func(*table.Referential) { panic("no such thing") })
	err := db.RunInTx(t.Context(), func(tx *sqldb.Tx) error {
		return errors.Join(put.flush(t.Context(), tx), change.flush(t.Context(), tx))
	})
	if err == nil || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("got %v, want what the change said", err)
	}
	if rows, err := sqldb.Select(t.Context(), db, table.Referentials, ""); err != nil || len(rows) > 0 {
		t.Errorf("got %v, %v, want the transaction undone", rows, err)
	}
}

// openReferentials is an empty database with one table.
func openReferentials(t *testing.T) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldbtest.DatabaseAddress(t.TempDir()), sqldb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Create(t.Context(), table.Referentials.Def); err != nil {
		t.Fatal(err)
	}
	return db
}
