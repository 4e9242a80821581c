package vault_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/eventstore/vault"
	"lieudit/schemas/event"
)

func TestAMasterKeyIsNeededForWhatItWrapped(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		master := bytes.Repeat([]byte{7}, 32)
		want := mustKey(t, openVault(t, address, master, time.Now), "a", true)
		for name, other := range map[string][]byte{"none": nil, "another": bytes.Repeat([]byte{8}, 32)} {
			k, err := openVault(t, address, other, time.Now).Key(t.Context(), "a", true)
			if err == nil || !strings.Contains(err.Error(), "master key") || errors.Is(err, eventstore.ErrNoKey) {
				t.Errorf("%s: got %x, %v, want an error about the master key", name, k, err)
			}
		}
		if held := storedKey(t, address); bytes.Contains(held, want) {
			t.Error("the database holds the key in clear")
		}
	})
}

func TestKeysFromBeforeTheMasterKeyStillOpen(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		want := mustKey(t, openVault(t, address, nil, time.Now), "a", true)
		if got := mustKey(t, openVault(t, address, bytes.Repeat([]byte{7}, 32), time.Now), "a", false); !bytes.Equal(got, want) {
			t.Errorf("got %x, want %x", got, want)
		}
	})
}

// storedKey is all the keys in the database.
func storedKey(t *testing.T, address string) []byte {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldbtest.DatabaseAddress(address), sqldb.Options{Schema: "vault"})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(t.Context(), "select key from {data_keys}")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []byte
	for rows.Next() {
		var k []byte
		if err := rows.Scan(&k); err != nil {
			t.Fatal(err)
		}
		all = append(all, k...)
	}
	if err := rows.Err(); err != nil || len(all) == 0 {
		t.Fatalf("%d bytes of keys, %v", len(all), err)
	}
	return all
}

func TestParseMasterTakes32BytesOfBase64(t *testing.T) {
	t.Parallel()
	good := "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	if k, err := vault.ParseMasterKey(good); err != nil || len(k) != 32 || k[31] != 31 {
		t.Errorf("got %x, %v", k, err)
	}
	if k, err := vault.ParseMasterKey(""); err != nil || k != nil {
		t.Errorf("empty: got %x, %v, want none", k, err)
	}
	for _, bad := range []string{"AAEC", "!", good + good} {
		if _, err := vault.ParseMasterKey(bad); err == nil || strings.Contains(err.Error(), bad) {
			t.Errorf("got %v, want an error without the key", err)
		}
	}
}

func masterKey(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

// rewrapKeys changes the master key, and the one that instances are started with.
func (f *fixture) rewrapKeys(t *testing.T, to []byte) int {
	t.Helper()
	n, err := vault.Rewrap(t.Context(), sqldbtest.DatabaseAddress(f.address), f.master, to)
	if err != nil {
		t.Fatal(err)
	}
	f.master = to
	return n
}

func TestRewrapWrapsKeysInClearAndChangesTheMasterKey(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		f := newFixture(t, address)
		i := f.startChecked(t)
		i.openAccounts(t, "a", "b", "erased")
		if err := errors.Join(i.appendToAccount(t, "erased", event.AccountErased{}), i.codec.DestroyKey(t.Context(), "account-erased")); err != nil {
			t.Fatal(err)
		}
		i.close()
		inClear := storedKey(t, f.address)
		if n := f.rewrapKeys(t, masterKey(1)); n != 2 {
			t.Errorf("%d keys wrapped, want 2", n)
		}
		if n := f.rewrapKeys(t, masterKey(2)); n != 2 {
			t.Errorf("%d keys wrapped again, want 2", n)
		}
		for at := 0; at < len(inClear); at += 32 {
			if bytes.Contains(storedKey(t, f.address), inClear[at:at+32]) {
				t.Error("a key is still stored in clear")
			}
			if !f.isPostgres() && anyFileHolds(t, f.address, inClear[at:at+32]) {
				t.Error("a key is still in a file in clear")
			}
		}
		for _, old := range [][]byte{nil, masterKey(1)} {
			f.master = old
			f.requireRefusal(t, "master key")
		}
		f.master = masterKey(2)
		i = f.startChecked(t)
		i.requireReadable(t, "a", "b")
		if got, err := i.accountName(t, "erased"); err != nil || got != "" {
			t.Errorf("got %q, %v, want it erased", got, err)
		}
	})
}

func TestRewrapChangesAllOrNothing(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		f := newFixture(t, address)
		f.master = masterKey(1)
		i := f.startChecked(t)
		for n := range 3 {
			i.openAccounts(t, string(rune('a'+n)))
		}
		i.close()
		f.execStatements(t, "update {data_keys} set key = (select key from {data_keys} where subject = 'a') where subject = 'c'") // does not open for c
		before := storedKey(t, f.address)
		for name, old := range map[string][]byte{"a key that does not open": masterKey(1), "the wrong old key": masterKey(2), "no old key": nil} {
			if _, err := vault.Rewrap(t.Context(), sqldbtest.DatabaseAddress(f.address), old, masterKey(3)); err == nil || !strings.Contains(err.Error(), "nothing was changed") {
				t.Errorf("%s: got %v", name, err)
			}
		}
		if !bytes.Equal(storedKey(t, f.address), before) {
			t.Error("keys were changed")
		}
		f.startChecked(t).requireReadable(t, "a", "b")
	})
}

func TestRewrapNeedsAVaultAndAnotherKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none.db")
	if _, err := vault.Rewrap(t.Context(), path, nil, masterKey(1)); err == nil || !strings.Contains(err.Error(), "there is none at "+path) {
		t.Errorf("got %v, want that there is no vault", err)
	}
	for _, to := range [][]byte{nil, masterKey(1)} {
		if _, err := vault.Rewrap(t.Context(), path, masterKey(1), to); err == nil || !strings.Contains(err.Error(), "new master key") {
			t.Errorf("got %v, want what is wrong with the new key", err)
		}
	}
}

// Rewrap is refused while an instance has a lease. An instance without one that still runs makes no key with the old
// master key afterwards.
func TestRewrapIsRefusedWhileAnInstanceRuns(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqldbtest.NewPostgresDatabase(t))
	i := f.startChecked(t)
	i.openAccounts(t, "a")
	if _, err := vault.Rewrap(t.Context(), f.address, nil, masterKey(1)); !errors.Is(err, vault.ErrInUse) {
		t.Fatalf("got %v, want ErrInUse", err)
	}
	f.execStatements(t, "delete from {lease}") // as if it had stood still for long
	if _, err := vault.Rewrap(t.Context(), f.address, nil, masterKey(1)); err != nil {
		t.Fatal(err)
	}
	var wrong *vault.WrongError
	if err := i.appendToAccount(t, "b", accountOpened("b")); !errors.As(err, &wrong) {
		t.Errorf("it made a key: %v", err)
	}
	if got := f.countKeys(t); got != 1 {
		t.Errorf("%d keys, want 1", got)
	}
	if err := i.appendSite(t, "a"); err == nil || errors.Is(err, eventstore.ErrUnreadable) {
		t.Errorf("got %v, want why the vault is wrong", err)
	}
	f.master = masterKey(1)
	f.startChecked(t).requireReadable(t, "a")
}
