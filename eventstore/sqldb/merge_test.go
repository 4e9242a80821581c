package sqldb_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
)

// TestSumsAddUpAndMaximaRise: written over one another in the database or merged before, rows come to the same.
func TestSumsAddUpAndMaximaRise(t *testing.T) {
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
