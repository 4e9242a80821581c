package sqldb_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
)

func TestInstancesThatBuildAtOnceMakeOneCopy(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		shelves := make([]*sqldb.Registry, 6)
		names := make([]string, len(shelves))
		var instances sync.WaitGroup
		for i := range shelves {
			shelves[i] = openRegistry(t, address)
			instances.Go(func() {
				c, err := shelves[i].BuildGeneration(context.Background(), model(1), true)
				if err != nil {
					t.Error(err)
				}
				names[i] = c.Name
			})
		}
		instances.Wait()
		slices.Sort(names)
		if got := slices.Compact(names); len(got) != 1 {
			t.Errorf("got copies %v, want one", got)
		}
		all, err := shelves[0].Generations(t.Context())
		if err != nil || len(all) != 1 {
			t.Errorf("the registry holds %v, %v, want one copy", all, err)
		}
		if files, _ := filepath.Glob(filepath.Join(address, "stock-*.db")); !strings.HasPrefix(address, "postgres") && len(files) != 1 {
			t.Errorf("there are files %v, want one", files)
		}
	})
}

func TestACopyIsReadFromTheMomentItServes(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := openRegistry(t, address)
		for n := 1; n <= 3; n++ {
			buildServing(t, s, model(1), n)
			err := s.Read(t.Context(), model(1), func(db *sqldb.DB) error {
				got, err := count(t.Context(), db)
				if got != n {
					t.Errorf("read %d rows, want the %d of the copy that serves", got, n)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
}

func TestACopyInUseIsNotDroppedHoweverOthersComeAndGo(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		user, pruner := openRegistry(t, address), openRegistry(t, address)
		old := buildServing(t, user, model(1), 1)
		buildServing(t, user, model(1), 2)
		if err := user.Read(t.Context(), model(1), func(*sqldb.DB) error { return nil }); err != nil { // lets go of the old one
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var others sync.WaitGroup
		defer others.Wait()
		defer stop()
		for range 3 {
			others.Go(func() {
				for ctx.Err() == nil {
					if _, release, err := user.OpenGeneration(ctx, old); err == nil {
						release()
					}
				}
			})
		}
		for range 40 {
			_, release, err := user.OpenGeneration(t.Context(), old)
			if err != nil {
				t.Fatal(err)
			}
			if got := prune(t, pruner, model(1)); len(got) > 0 {
				t.Fatalf("%v was dropped while it was used", got)
			}
			release()
		}
	})
}
