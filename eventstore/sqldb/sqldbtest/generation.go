package sqldbtest

import (
	"testing"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

// NewGeneration begins a generation of a read model in the database at an address. The test writes its rows and calls promote; from
// then on the registry answers from it. Everything is closed with the test.
func NewGeneration(t testing.TB, address string, m table.ReadModel) (registry *sqldb.Registry, db *sqldb.DB, promote func()) {
	t.Helper()
	registry, err := sqldb.OpenRegistry(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { registry.Close() })
	g, err := registry.BuildGeneration(t.Context(), m, false)
	if err != nil {
		t.Fatal(err)
	}
	db, release, err := registry.OpenGeneration(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return registry, db, func() {
		t.Helper()
		if err := registry.PromoteGeneration(t.Context(), m, g); err != nil {
			t.Fatal(err)
		}
	}
}
