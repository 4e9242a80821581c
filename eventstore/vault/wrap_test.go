package vault_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/eventstore/vault"
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
	rows, err := db.Query(t.Context(), "select key from data_keys")
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
