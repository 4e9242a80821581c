package searchindex

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/schemas/table"
)

// TestRowThatChangedSinceItWasReadIsNotDeleted: on Postgres another transaction may change a row after it is read and before
// it is deleted.
func TestRowThatChangedSinceItWasReadIsNotDeleted(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		db, err := sqldb.Open(t.Context(), sqldbtest.DatabaseAddress(address), sqldb.Options{Name: "places", Schema: "places"})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.Create(t.Context(), table.Outbox.Def, table.Sites.Def); err != nil {
			t.Fatal(err)
		}
		run := func(do func(ctx context.Context, tx *sqldb.Tx) error) {
			t.Helper()
			if err := db.RunInTx(t.Context(), func(tx *sqldb.Tx) error { return do(t.Context(), tx) }); err != nil {
				t.Fatal(err)
			}
		}
		read := []table.OutboxEntry{{ID: "a/r/1", Position: 5}, {ID: "a/r/2", Position: 5}, {ID: "b/", Position: 5}, {ID: "c/", Position: 5}}
		now := []table.OutboxEntry{{ID: "a/r/1", Position: 5}, {ID: "a/r/2", Position: 7}, {ID: "b/", Position: 5}, {ID: "c/", Position: 8}}
		run(func(ctx context.Context, tx *sqldb.Tx) error { return sqldb.Upsert(ctx, tx, table.Outbox, now) })
		run(func(ctx context.Context, tx *sqldb.Tx) error { return deleteRows(ctx, tx, read) })
		left, err := sqldb.LoadByKeys(t.Context(), db, table.Outbox, []string{"a/r/1", "a/r/2", "b/", "c/"})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int64{}
		for _, r := range left {
			got[r.ID] = r.Position
		}
		if diff := cmp.Diff(map[string]int64{"a/r/2": 7, "c/": 8}, got); diff != "" {
			t.Error(diff)
		}
	})
}
