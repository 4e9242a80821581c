package vault_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/eventstore/vault"
)

func TestADestroyedKeyIsInNoFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	v := openVault(t, folder, nil, time.Now)
	k := mustKey(t, v, "a", true)
	for i := range 100 { // so that the key is in the middle of other pages too
		mustKey(t, v, strings.Repeat("x", i+1), true)
	}
	if !anyFileHolds(t, folder, k) {
		t.Fatal("the key is in no file while it is in use")
	}
	mustDestroy(t, v, "a")
	if anyFileHolds(t, folder, k) {
		t.Error("a file still holds the key")
	}
}

func anyFileHolds(t *testing.T, folder string, k []byte) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	found := false
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v, want 0600", f, info.Mode(), err)
		}
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		found = found || bytes.Contains(data, k)
	}
	return found
}

func TestCachedKeysAreServedWhileTheDatabaseIsUnreachable(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		c := newFakeClock()
		v, err := vault.New(sqldbtest.DatabaseAddress(address), nil, c.Now)
		if err != nil {
			t.Fatal(err)
		}
		v.UseElapsedClock(c.Now)
		want := mustKey(t, v, "a", true)
		if err := v.Close(); err != nil { // the nearest thing to a database that is gone
			t.Fatal(err)
		}
		if got := mustKey(t, v, "a", false); !bytes.Equal(got, want) {
			t.Errorf("got %x, want %x", got, want)
		}
		c.advance(time.Minute)
		for _, subject := range []string{"a", "b"} {
			k, err := v.Key(t.Context(), subject, true)
			if err == nil || errors.Is(err, eventstore.ErrNoKey) || !strings.HasPrefix(err.Error(), "vault: data keys: ") {
				t.Errorf("key of %s: got %x, %v, want an error that names the vault's database", subject, k, err)
			}
		}
		if err := v.DestroyKey(t.Context(), "a"); err == nil {
			t.Error("destroyed without a database")
		}
	})
}

func TestACallOnASilentDatabaseEndsWithItsContext(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	v, err := vault.New("postgres://x@"+silent.Addr().String()+"/x?sslmode=disable", nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			begun := time.Now()
			if _, err := v.Key(ctx, "a", true); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want the context's error", err)
			}
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
	all.Wait()
}

func TestAPostgresThatWasAwayServesAgain(t *testing.T) {
	t.Parallel()
	address := sqldbtest.NewPostgresDatabase(t)
	v := openVault(t, address, nil, time.Now)
	mustKey(t, v, "a", true)
	for _, subject := range []string{"b", "c"} {
		closeOtherConnections(t, address)
		_, err := v.Key(t.Context(), subject, true)
		for end := time.Now().Add(deadlinetest.Scale(deadlinetest.DefaultLimit)); err != nil; _, err = v.Key(t.Context(), subject, true) {
			if time.Now().After(end) {
				t.Fatal(err)
			}
		}
	}
}

// closeOtherConnections ends every other connection to a database.
func closeOtherConnections(t *testing.T, address string) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), address, sqldb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(t.Context(), "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"); err != nil {
		t.Fatal(err)
	}
}

func TestAVaultWhoseFolderIsNotThereYetServesOnceItIs(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "later")
	v := openVault(t, folder, nil, time.Now)
	if _, err := v.Key(t.Context(), "a", true); err == nil || errors.Is(err, eventstore.ErrNoKey) {
		t.Errorf("got %v, want why the database cannot be opened", err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	mustKey(t, v, "a", true)
}
