package vault_test

import (
	"bytes"
	"testing"
	"time"

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

// A scrub holds the row of the binding and then locks readers out of the keys. Whoever waits for the row must not read them.
func TestAKeyThatIsAddedDuringAScrubWaitsForItsEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqldbtest.NewPostgresDatabase(t))
	i := f.startChecked(t)
	i.openAccounts(t, "first")
	changes := map[string]func() error{
		"added": func() error {
			_, err := i.Key(t.Context(), "second", true)
			return err
		},
		"destroyed": func() error { return i.DestroyKey(t.Context(), "first") },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			changed := make(chan error, 1)
			db := f.openDatabase(t)
			defer db.Close()
			err := db.RunInTx(t.Context(), func(tx *sqldb.Tx) error {
				if _, err := tx.Exec(t.Context(), "update {binding} set id = id"); err != nil {
					return err
				}
				go func() { changed <- change() }()
				awaitLockWaiter(t, db)
				_, err := tx.Exec(t.Context(), "lock table {data_keys} in access exclusive mode")
				return err
			})
			if err != nil {
				t.Errorf("the scrub: %v", err)
			}
			if err := <-changed; err != nil {
				t.Errorf("the change: %v", err)
			}
		})
	}
}

// awaitLockWaiter waits until a transaction of this database waits for a lock.
func awaitLockWaiter(t *testing.T, db *sqldb.DB) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		var waiting int
		err := db.QueryRow(t.Context(), "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'").Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
		if waiting > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody waits for a lock")
		}
	}
}
