package sqldb_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
)

// A statement is used again while its rows are read, after the table that it reads was made anew, after a context ended in the middle,
// and after so many others that a connection forgets it.
func TestStatementsAreUsedAgain(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		db := open(t, address)
		rows := make([]thing, 100)
		for i := range rows {
			rows[i] = thing{ID: fmt.Sprintf("%03d", i), Count: int64(i), Raw: []byte{}}
		}
		upsert(t, db, rows)
		err := db.RunInTx(t.Context(), func(tx *sqldb.Tx) error {
			return readNested(t.Context(), tx, 3, strings.HasPrefix(address, "postgres"))
		})
		if err != nil {
			t.Error(err)
		}
		for i := range 300 {
			var got int64
			if err := db.QueryRow(t.Context(), "select count "+strings.Repeat("+ 0 ", i)+"from {thing} where id = ?", "007").Scan(&got); err != nil || got != 7 {
				t.Errorf("statement %d: got %d, %v", i, got, err)
			}
		}
		count := func(want int64) {
			t.Helper()
			var got int64
			if err := db.QueryRow(t.Context(), "select count(*) from {thing}").Scan(&got); err != nil || got != want {
				t.Errorf("got %d rows, %v; want %d", got, err, want)
			}
		}
		count(100)
		ended, cancel := context.WithCancel(t.Context())
		reading, err := db.Query(ended, "select count(*) from {thing}")
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		reading.Close()
		count(100)
		if _, err := db.Exec(t.Context(), "drop table {thing}"); err != nil {
			t.Fatal(err)
		}
		if err := db.Create(t.Context(), things.Def); err != nil {
			t.Fatal(err)
		}
		count(0)
		upsert(t, db, rows[:2])
		count(2)
	})
}

// readNested reads rows with one statement, and with the same again at the first row.
func readNested(ctx context.Context, tx *sqldb.Tx, depth int, isPostgres bool) error {
	if depth == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, "select id from {thing} where count >= ? order by id", depth)
	if err != nil {
		return err
	}
	defer rows.Close()
	for want := depth; rows.Next(); want++ {
		var id string
		if err := rows.Scan(&id); err != nil {
			return err
		}
		if n, err := strconv.Atoi(id); err != nil || n != want {
			return fmt.Errorf("at depth %d: got %s, want %03d", depth, id, want)
		}
		if want == depth && !isPostgres {
			if err := readNested(ctx, tx, depth-1, isPostgres); err != nil {
				return err
			}
		}
	}
	return rows.Err()
}

func BenchmarkReadOneRow(b *testing.B) {
	db, err := sqldb.Open(b.Context(), b.TempDir()+"/a.db", sqldb.Options{Name: "things", Schema: "things"})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	if err := db.Create(b.Context(), things.Def); err != nil {
		b.Fatal(err)
	}
	if err := db.RunInTx(b.Context(), func(tx *sqldb.Tx) error {
		return sqldb.Upsert(b.Context(), tx, things, []thing{{ID: "a", Raw: []byte{}}})
	}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if rows, err := sqldb.Select(b.Context(), db, things, "where id = ?", "a"); err != nil || len(rows) != 1 {
			b.Fatal(rows, err)
		}
	}
}
