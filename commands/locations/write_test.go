package locations

import (
	"testing"
)

func TestFirstSyncAndAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	l := s.desk(s.store)
	opened(t, l, "magasins")
	o := written(t, l, "magasins", Batch{Rows: many(2000), Whole: true})
	if o.Created != 2000 || o.After != 2000 || o.Active != 0 {
		t.Errorf("got %+v", o)
	}
	o = written(t, l, "magasins", Batch{Rows: many(2000), Whole: true})
	if o.Unchanged != 2000 || o.Active != 2000 {
		t.Errorf("got %+v", o)
	}
	if got := s.events(t, "locations-a"); len(got) != 2 || got[1] != committedType {
		t.Errorf("got %v", got)
	}
	got, created, _, err := l.Put(t.Context(), "a", shop, "magasins", in("x", "X", "1 rue", "Mende"))
	if err != nil || !created || *got.Lat != 44.05 || got.Source != "ban" {
		t.Errorf("got %+v %v", got, err)
	}
	old, created, _, err := l.Put(t.Context(), "a", shop, "magasins", many(2000)[77])
	if err != nil || created || old.Version != 1 || old.Name != many(78)[77].Content.Name {
		t.Errorf("got %+v %v", old, err)
	}
}
