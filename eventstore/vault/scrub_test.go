package vault_test

import (
	"bytes"
	"testing"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/schemas/event"
)

// The log keeps what is sealed for ever, so a key that stays in a file of Postgres is an erasure that did not happen.
func TestADestroyedKeyIsTakenOutOfTheFilesOfPostgres(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqldbtest.NewPostgresDatabase(t))
	i := f.startChecked(t)
	i.openAccounts(t, "erased", "kept")
	key, err := i.Key(t.Context(), "erased", false)
	if err != nil {
		t.Fatal(err)
	}
	erasedKey := string(bytes.Clone(key))
	for _, e := range []event.Event{event.AccountClosed{}, event.AccountErased{}} {
		if err := i.appendToAccount(t, "erased", e); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.DestroyKey(t.Context(), "erased"); err != nil {
		t.Fatal(err)
	}
	if found := sqldbtest.FilesHolding(t, f.address, erasedKey); len(found) == 0 {
		t.Fatal("no file holds the destroyed key: the test shows nothing")
	}
	i.Scrub(t.Context())
	if err := i.Reachable(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := sqldbtest.FilesHolding(t, f.address, erasedKey); len(found) > 0 {
		t.Errorf("%q hold the destroyed key", found)
	}
	later := f.startChecked(t)
	if _, err := later.Key(t.Context(), "kept", true); err != nil {
		t.Errorf("the key of the other account: %v", err)
	}
	if err := later.DestroyKey(t.Context(), "kept"); err != nil { // under the names that the tables had before
		t.Error(err)
	}
}

func TestAScrubOfKeysThatFailsIsTold(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqldbtest.NewPostgresDatabase(t))
	i := f.startChecked(t)
	i.openAccounts(t, "erased")
	if err := i.DestroyKey(t.Context(), "erased"); err != nil {
		t.Fatal(err)
	}
	db, err := sqldb.Open(t.Context(), f.address, sqldb.Options{Schema: "vault"})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(t.Context(), "create view own_view as select * from {data_keys}"); err != nil {
		t.Fatal(err)
	}
	i.Scrub(t.Context())
	if err := i.Reachable(t.Context()); err == nil {
		t.Error("nothing is told of a scrub that failed")
	}
	if _, err := db.Exec(t.Context(), "drop view own_view"); err != nil {
		t.Fatal(err)
	}
	i.Scrub(t.Context())
	if err := i.Reachable(t.Context()); err != nil {
		t.Error(err)
	}
}
