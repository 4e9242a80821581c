package locations

import (
	"testing"

	"lieudit/eventstore"
)

// swapped is a log that can be replaced under its users, as when it is restored from a copy.
type swapped struct{ eventstore.Store }

func TestFoldIsThrownAwayWhenTheLogWasRestored(t *testing.T) {
	t.Parallel()
	older, newer := newStage(t), newStage(t)
	log := &swapped{newer.store}
	l := newer.desk(log)
	for _, s := range []*stage{older, newer} {
		opened(t, s.desk(s.store), "magasins")
		put(t, s.desk(s.store), at("x", "X", 44))
	}
	written(t, l, "magasins", Batch{Rows: many(1_000)})
	log.Store = older.store
	if f, err := l.Figures(t.Context(), "a"); err != nil || f.Sites != 1 {
		t.Errorf("got %+v, %v, want the one site of the older log", f, err)
	}
	if o := written(t, l, "magasins", Batch{Rows: many(1_000)}); o.Created != 1_000 || o.Active != 1 {
		t.Errorf("got %+v", o.SitesWritten)
	}
}

// TestCommitNamesNoRowsThatWentWithTheLog: rows that were staged on a log that is no more are staged again.
func TestCommitNamesNoRowsThatWentWithTheLog(t *testing.T) {
	t.Parallel()
	older, newer := newStage(t), newStage(t)
	opened(t, older.desk(older.store), "magasins")
	opened(t, newer.desk(newer.store), "magasins")
	put(t, newer.desk(newer.store), at("x", "X", 44))
	log := &swapped{newer.store}
	l := newer.desk(&tapped{Store: log, before: func(stream string) error {
		if stream == "locations-a" {
			log.Store = older.store
		}
		return nil
	}})
	written(t, l, "magasins", Batch{Rows: many(1_000)})
	if f, err := older.desk(older.store).Figures(t.Context(), "a"); err != nil || f.Sites != 1_000 {
		t.Errorf("got %+v, %v", f, err)
	}
}
