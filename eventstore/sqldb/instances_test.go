package sqldb_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
)

// running are the instances that run, without the ends of their leases.
func running(t *testing.T, s *sqldb.Registry) []sqldb.Instance {
	t.Helper()
	all, err := s.RunningInstances(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		all[i].Until = 0
	}
	return all
}

// useGeneration makes an instance hold a lease until its registry is closed.
func useGeneration(t *testing.T, s *sqldb.Registry) {
	t.Helper()
	g, err := s.BuildGeneration(t.Context(), model(1), true)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.OpenGeneration(t.Context(), g); err != nil {
		t.Fatal(err)
	}
}

func TestRunningInstancesSayWhichProgramTheyRun(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		first, second := openRegistry(t, address), openRegistry(t, address)
		first.InstanceID, first.Program, first.Format = "a", "v1.0.0", 1
		second.InstanceID, second.Program, second.Format = "b", "v2.0.0", 2
		useGeneration(t, first)
		useGeneration(t, second)
		want := []sqldb.Instance{{ID: "a", Program: "v1.0.0", Format: 1}, {ID: "b", Program: "v2.0.0", Format: 2}}
		if diff := cmp.Diff(want, running(t, first)); diff != "" {
			t.Errorf("while both run: %s", diff)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[1:], running(t, second)); diff != "" {
			t.Errorf("after one has ended: %s", diff)
		}
	})
}

// A program of a release that only knows leases is listed by its lease, and one that was killed only until its lease ends.
func TestRunningInstancesAreListedByTheirLeasesAlone(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := openRegistry(t, address)
		s.InstanceID, s.Program, s.Format = "new", "v2.0.0", 2
		useGeneration(t, s)
		db := openRegistryTables(t, address)
		for _, statement := range []string{
			"insert into {holder} (copy, instance, until) values ('stock-v1-g1', 'old', " + db.Now() + " + 60000000)",
			"insert into {holder} (copy, instance, until) values ('stock-v1-g1', 'old and killed', " + db.Now() + " - 1)",
			"insert into {instance} (instance, program, format, until) values ('killed', 'v2.0.0', 2, " + db.Now() + " - 1)",
		} {
			if _, err := db.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		want := []sqldb.Instance{{ID: "new", Program: "v2.0.0", Format: 2}, {ID: "old"}}
		if diff := cmp.Diff(want, running(t, s)); diff != "" {
			t.Error(diff)
		}
	})
}

// openRegistryTables opens the database that holds the registry's own tables.
func openRegistryTables(t *testing.T, address string) *sqldb.DB {
	t.Helper()
	if !strings.HasPrefix(address, "postgres") {
		address += "/registry.db"
	}
	db, err := sqldb.Open(t.Context(), address, sqldb.Options{Name: "registry", Schema: "lieudit"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
