package projector

import (
	"testing"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/schemas/table"
)

func TestOnlyInstanceClaimsLeaseAtOnce(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		registry, err := sqldb.OpenRegistry(address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { registry.Close() })
		c, err := registry.BuildGeneration(t.Context(), table.AccountModel, false)
		if err != nil {
			t.Fatal(err)
		}
		db, release, err := registry.OpenGeneration(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		for _, step := range []struct {
			by   lease
			want string
		}{{lease{db, "dead", false}, "dead"}, {lease{db, "next", false}, "dead"}, {lease{db, "next", true}, "next"}, {lease{db, "dead", false}, "next"}} {
			if got, err := step.by.claim(t.Context()); err != nil || got.LeaseHolder != step.want {
				t.Errorf("claimed by %s: it is %s's, %v; want %s's", step.by.owner, got.LeaseHolder, err, step.want)
			}
		}
	})
}
