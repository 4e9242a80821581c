package projector

import (
	"testing"

	"lieudit/schemas/table"
	"lieudit/schemas/table/tabletest"
)

func TestWhoIsAloneTakesOverAtOnce(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		shelf, err := table.OpenShelf(address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { shelf.Close() })
		c, err := shelf.Build(t.Context(), table.Register, false)
		if err != nil {
			t.Fatal(err)
		}
		db, release, err := shelf.Use(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		for _, step := range []struct {
			by   lease
			want string
		}{{lease{db, "dead", false}, "dead"}, {lease{db, "next", false}, "dead"}, {lease{db, "next", true}, "next"}, {lease{db, "dead", false}, "next"}} {
			if got, err := step.by.claim(t.Context()); err != nil || got.Owner != step.want {
				t.Errorf("claimed by %s: it is %s's, %v; want %s's", step.by.owner, got.Owner, err, step.want)
			}
		}
	})
}
