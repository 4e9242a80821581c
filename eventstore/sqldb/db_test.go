package sqldb_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/schemas/table"
)

type thing struct {
	ID    string
	Count int64
	Good  bool
	Seen  table.Instant
	Raw   []byte
}

var things = table.Table[thing]{
	Def: table.Def{
		Name: "thing", KeyColumns: 1, Indexes: []string{"seen desc, id"},
		Columns: []table.Column{{Name: "id", Type: table.Text}, {Name: "count", Type: table.Integer}, {Name: "good", Type: table.Boolean}, {Name: "seen", Type: table.Timestamp}, {Name: "raw", Type: table.Bytes}},
	},
	Fields: func(r *thing) []any { return []any{&r.ID, &r.Count, &r.Good, &r.Seen, &r.Raw} },
}

func open(t *testing.T, address string) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldbtest.DatabaseAddress(address), sqldb.Options{Name: "things", Schema: "things"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	for range 2 { // the second time does nothing
		if err := db.Create(t.Context(), things.Def); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func upsert(t *testing.T, db *sqldb.DB, rows []thing) {
	t.Helper()
	err := db.RunInTx(t.Context(), func(tx *sqldb.Tx) error { return sqldb.Upsert(t.Context(), tx, things, rows) })
	if err != nil {
		t.Fatal(err)
	}
}

func TestRowsComeBackAsWritten(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		db := open(t, address)
		want := []thing{
			{"a", 1, true, table.InstantOf(time.Date(2026, 11, 21, 0, 0, 0, 123456789, time.UTC)), []byte{0, 255}},
			{"it's ?", -1 << 63, false, 0, []byte("\x00")},
		}
		upsert(t, db, want)
		got, err := sqldb.Select(t.Context(), db, things, "where id <> '?' and count < ? order by id", 5)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestUpsertReplacesWholeRowsInGroupsOfAnySize(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		db := open(t, address)
		for _, n := range []int{0, 1, 9, 10, 49, 250, 777, 33_000} { // the last is more than SQLite takes in one statement
			rows := make([]thing, n)
			keys := make([]string, n)
			for i := range rows {
				keys[i] = strconv.Itoa(i)
				rows[i] = thing{ID: keys[i], Count: int64(n), Raw: []byte("x")}
			}
			upsert(t, db, rows)
			var loaded []thing
			err := db.RunInTx(t.Context(), func(tx *sqldb.Tx) (err error) {
				loaded, err = sqldb.LoadByKeys(t.Context(), tx, things, append(keys, "absent"))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			sum := int64(0)
			for _, r := range loaded {
				sum += r.Count
			}
			if want := int64(n) * int64(n); sum != want || len(loaded) != n {
				t.Errorf("%d rows: got %d with sum %d, want sum %d", n, len(loaded), sum, want)
			}
		}
	})
}

func TestManyCanOpenTheSameNewDatabaseAtOnce(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		var all sync.WaitGroup
		begin := make(chan struct{})
		for range 8 {
			all.Go(func() {
				<-begin
				db, err := sqldb.Open(t.Context(), sqldbtest.DatabaseAddress(address), sqldb.Options{Schema: "things"})
				if err != nil {
					t.Error(err)
					return
				}
				defer db.Close()
				if err := db.Create(t.Context(), things.Def); err != nil {
					t.Error(err)
				}
			})
		}
		close(begin)
		all.Wait()
	})
}

func TestTextThatPostgresRefusesIsReplacedOnBoth(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		db := open(t, address)
		upsert(t, db, []thing{{ID: "a\x00b\xffc", Raw: []byte{0, 255}}})
		got, err := sqldb.Select(t.Context(), db, things, "where id = ?", "a\x00b\xffc")
		if err != nil || len(got) != 1 || got[0].ID != "a\uFFFDb\uFFFDc" {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

func TestTextIsOrderedByItsBytesOnBoth(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		db := open(t, address)
		var rows []thing
		for _, id := range []string{"é", "b", "A", "a-1", "a1", "B", "a"} {
			rows = append(rows, thing{ID: id, Raw: []byte("x")})
		}
		upsert(t, db, rows)
		got, err := sqldb.Select(t.Context(), db, things, "order by id")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.IsSortedFunc(got, func(a, b thing) int { return strings.Compare(a.ID, b.ID) }) {
			t.Errorf("got %v", got)
		}
	})
}

func TestTransactionThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		db, halt := open(t, address), errors.New("halt")
		err := db.RunInTx(t.Context(), func(tx *sqldb.Tx) error {
			if err := sqldb.Upsert(t.Context(), tx, things, []thing{{ID: "a", Raw: []byte{}}}); err != nil {
				return err
			}
			return halt
		})
		if !errors.Is(err, halt) {
			t.Errorf("got %v, want %v", err, halt)
		}
		if got, err := sqldb.Select(t.Context(), db, things, ""); err != nil || len(got) != 0 {
			t.Errorf("got %v, %v, want no row", got, err)
		}
	})
}

func TestErrorsNameTheDatabase(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		_, err := open(t, address).Exec(t.Context(), "delete from nothing")
		if err == nil || !strings.HasPrefix(err.Error(), "things: ") {
			t.Errorf("got %v, want an error that begins with the name", err)
		}
	})
}

func TestDatabaseClockIsMicrosecondsOfNow(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		db := open(t, address)
		var now table.Instant
		if err := db.QueryRow(t.Context(), "select "+db.Now()).Scan(&now); err != nil {
			t.Fatal(err)
		}
		if off := time.Since(now.Time()).Abs(); off > time.Minute {
			t.Errorf("got %v, which is %v away from now", now.Time(), off)
		}
	})
}

// TestMinColumnsOnlyFall does the same for columns in which 0 means no value yet.
func TestMinColumnsOnlyFall(t *testing.T) {
	t.Parallel()
	lowered := things
	lowered.MinColumns, lowered.MaxColumns = []string{"count"}, []string{"seen"}
	for want, counts := range map[int64][]int64{3: {0, 7, 3, 0, 5}, 9: {9, 0}, 0: {0, 0}} {
		var rows []thing
		for _, n := range counts {
			rows = append(rows, thing{ID: fmt.Sprint(want), Count: n, Raw: []byte{}})
		}
		merged := rows[0]
		for _, r := range rows[1:] {
			lowered.MergeRow(&merged, &r)
		}
		if merged.Count != want {
			t.Errorf("%v are merged to %d in memory, not %d", counts, merged.Count, want)
		}
		sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
			db := open(t, address)
			for _, r := range rows {
				err := db.RunInTx(t.Context(), func(tx *sqldb.Tx) error { return sqldb.Upsert(t.Context(), tx, lowered, []thing{r}) })
				if err != nil {
					t.Fatal(err)
				}
			}
			got, err := sqldb.Select(t.Context(), db, lowered, "")
			if len(got) != 1 || got[0].Count != want || err != nil {
				t.Errorf("%v are merged to %v in the database, not %d: %v", counts, got, want, err)
			}
		})
	}
}

// Rows that Upsert writes over one another in the database and rows that MergeRow merges in memory are the same.
func TestSumColumnsAddUpAndMaxColumnsOnlyRise(t *testing.T) {
	t.Parallel()
	counted := things
	counted.SumColumns, counted.MaxColumns = []string{"count"}, []string{"seen"}
	rows := []thing{
		{ID: "a", Count: 5, Good: true, Seen: 30, Raw: []byte{1}},
		{ID: "a", Count: -7, Seen: 20, Raw: []byte{2}},
		{ID: "a", Count: 10, Good: true, Seen: 40, Raw: []byte{3}},
		{ID: "a", Count: 1, Seen: 0, Raw: []byte{4}},
	}
	want := thing{ID: "a", Count: 9, Seen: 40, Raw: []byte{4}}
	merged := rows[0]
	for _, r := range rows[1:] {
		counted.MergeRow(&merged, &r)
	}
	if diff := cmp.Diff(want, merged); diff != "" {
		t.Error(diff)
	}
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		db := open(t, address)
		for _, r := range rows {
			err := db.RunInTx(t.Context(), func(tx *sqldb.Tx) error { return sqldb.Upsert(t.Context(), tx, counted, []thing{r}) })
			if err != nil {
				t.Fatal(err)
			}
		}
		got, err := sqldb.Select(t.Context(), db, counted, "")
		if diff := cmp.Diff([]thing{want}, got); diff != "" || err != nil {
			t.Error(diff, err)
		}
	})
}
