// Package sqldbtest gives each test a database of its own, on SQLite and on Postgres, and removes it afterwards.
package sqldbtest

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/sqldb"
)

// envVariable names the Postgres server in which tests may create databases of their own.
const envVariable = "LIEUDIT_TEST_POSTGRES"

// EachDatabase runs test on SQLite and on Postgres, as parallel subtests: they begin when the function of t has returned.
// address is what sqldb.OpenRegistry takes: an empty folder, or an empty Postgres database. Without a Postgres server that
// part is skipped, or fails where LIEUDIT_CHECK is 1.
func EachDatabase(t *testing.T, test func(t *testing.T, address string)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, t.TempDir())
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, NewPostgresDatabase(t))
	})
}

// DatabaseAddress makes of an address for sqldb.OpenRegistry one for sqldb.Open: a file in the folder, or the same
// Postgres database.
func DatabaseAddress(address string) string {
	if strings.HasPrefix(address, "postgres") {
		return address
	}
	return filepath.Join(address, "test.db")
}

// NewPostgresDatabase makes an empty database and returns its address. The database is dropped after the test, with the
// connections that are still open. Without a Postgres server the test is skipped or fails, as in EachDatabase.
func NewPostgresDatabase(t testing.TB) string {
	t.Helper()
	server := os.Getenv(envVariable)
	switch {
	case server != "":
	case os.Getenv("LIEUDIT_CHECK") == "1":
		t.Fatalf("%s is not set", envVariable)
	default:
		t.Skipf("set %s=postgres://… to a Postgres in which databases may be created", envVariable)
	}
	name := "test_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	execOnServer(t, server, "create database "+name)
	t.Cleanup(func() { execOnServer(t, server, "drop database "+name+" with (force)") })
	return withDatabase(t, server, name)
}

// withDatabase is the address of another database on the same server.
func withDatabase(t testing.TB, server, database string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + database
	return u.String()
}

// execOnServer runs a statement in the database of the server's own address. It has a context of its own, because a
// test's context has ended when its cleanups run.
func execOnServer(t testing.TB, server, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadlinetest.Scale(deadlinetest.DefaultLimit))
	defer cancel()
	db, err := sqldb.Open(ctx, server, sqldb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(ctx, statement); err != nil {
		t.Fatal(err)
	}
}
