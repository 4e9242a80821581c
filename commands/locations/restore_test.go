package locations

import (
	"testing"

	"lieudit/eventstore"
)

// replaceableStore is a log that can be replaced under its users, as when it is restored from a copy.
type replaceableStore struct{ eventstore.Store }

func TestStateIsFoldedAgainWhenTheLogWasRestored(t *testing.T) {
	t.Parallel()
	older, newer := newFixture(t), newFixture(t)
	log := &replaceableStore{newer.store}
	l := newer.newInstance(log)
	for _, s := range []*fixture{older, newer} {
		mustOpen(t, s.newInstance(s.store), "magasins")
		mustPut(t, s.newInstance(s.store), rowAt("x", "X", 44))
	}
	mustWrite(t, l, "magasins", Batch{Rows: manyRows(1_000)})
	log.Store = older.store
	if f, err := l.CountLocations(t.Context(), "a"); err != nil || f.Sites != 1 {
		t.Errorf("got %+v, %v, want the one site of the older log", f, err)
	}
	if o := mustWrite(t, l, "magasins", Batch{Rows: manyRows(1_000)}); o.Created != 1_000 || o.AccountActive != 1 {
		t.Errorf("got %+v", o.SiteWriteSummary)
	}
}

// TestCommitNamesNoRowsThatWentWithTheLog: rows that were staged on a log that is no more are staged again.
func TestCommitNamesNoRowsThatWentWithTheLog(t *testing.T) {
	t.Parallel()
	older, newer := newFixture(t), newFixture(t)
	mustOpen(t, older.newInstance(older.store), "magasins")
	mustOpen(t, newer.newInstance(newer.store), "magasins")
	mustPut(t, newer.newInstance(newer.store), rowAt("x", "X", 44))
	log := &replaceableStore{newer.store}
	l := newer.newInstance(&hookedStore{Store: log, before: func(stream string) error {
		if stream == "locations-a" {
			log.Store = older.store
		}
		return nil
	}})
	mustWrite(t, l, "magasins", Batch{Rows: manyRows(1_000)})
	if f, err := older.newInstance(older.store).CountLocations(t.Context(), "a"); err != nil || f.Sites != 1_000 {
		t.Errorf("got %+v, %v", f, err)
	}
}
