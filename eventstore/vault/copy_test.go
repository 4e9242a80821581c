package vault_test

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/eventstore/vault"
)

// TestACopyOfAVaultOpensWhatTheVaultSealed copies between all kinds of databases, with keys wrapped and in clear.
func TestACopyOfAVaultOpensWhatTheVaultSealed(t *testing.T) {
	t.Parallel()
	for name, master := range map[string][]byte{"in clear": nil, "wrapped": bytes.Repeat([]byte{7}, 32)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
				f := newFixture(t, address)
				f.master = master
				i := f.startChecked(t)
				i.openAccounts(t, "kept", "gone")
				if err := i.DestroyKey(t.Context(), "gone"); err != nil {
					t.Fatal(err)
				}
				between := filepath.Join(t.TempDir(), "copy.db")
				want := vault.Copied{Rows: 2, Log: mustIdentity(t, f.log)}
				if got, err := vault.Copy(t.Context(), sqldbtest.DatabaseAddress(address), between); err != nil || got != want {
					t.Fatalf("%v, %v; want %v", got, err, want)
				}
				if got, err := vault.DestroyedSubjects(t.Context(), between); err != nil || !slices.Equal(got, []string{"gone"}) {
					t.Errorf("destroyed: %q, %v; want gone", got, err)
				}
				sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
					if got, err := vault.Copy(t.Context(), between, sqldbtest.DatabaseAddress(address)); err != nil || got != want {
						t.Fatalf("%v, %v; want %v", got, err, want)
					}
					copied := (&fixture{log: f.log, address: address, master: master}).startChecked(t)
					copied.requireReadable(t, "kept")
					copied.requireUnreadable(t, "gone")
				})
			})
		})
	}
}

func TestManyKeysAreCopiedInPages(t *testing.T) {
	t.Parallel()
	from, to := filepath.Join(t.TempDir(), "from.db"), filepath.Join(t.TempDir(), "to.db")
	source, err := vault.New(from, nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	const n = vault.CopyRows + 1
	last := mustKey(t, source, "z", true)
	if err := source.InsertRows(t.Context(), n-1); err != nil {
		t.Fatal(err)
	}
	if got, err := vault.Copy(t.Context(), from, to); err != nil || got.Rows != n {
		t.Fatalf("%v rows, %v; want %d", got, err, n)
	}
	copied, err := vault.New(to, nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	if got := mustKey(t, copied, "z", false); !bytes.Equal(got, last) {
		t.Errorf("the last key is %x, want %x", got, last)
	}
}

func TestAVaultIsNotCopiedOverKeys(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		from := filepath.Join(t.TempDir(), "from.db")
		source, err := vault.New(from, nil, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		mustKey(t, source, "one", true)
		there := openVault(t, address, nil, time.Now)
		want := mustKey(t, there, "two", true)
		if _, err := vault.Copy(t.Context(), from, sqldbtest.DatabaseAddress(address)); !errors.Is(err, vault.ErrHasKeys) {
			t.Errorf("got %v, want ErrHasKeys", err)
		}
		if got := mustKey(t, openVault(t, address, nil, time.Now), "two", false); !bytes.Equal(got, want) {
			t.Errorf("the key that was there is %x, want %x", got, want)
		}
	})
}

func TestAMissingVaultIsNotCopied(t *testing.T) {
	t.Parallel()
	from := filepath.Join(t.TempDir(), "absent.db")
	if _, err := vault.Copy(t.Context(), from, filepath.Join(t.TempDir(), "to.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want that there is none", err)
	}
}

func mustIdentity(t *testing.T, log eventstore.Store) string {
	t.Helper()
	id, err := log.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id.String()
}
