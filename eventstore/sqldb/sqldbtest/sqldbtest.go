// Package sqldbtest gives each test a database of its own, on SQLite and on Postgres, directly and through PgBouncer, and removes
// it afterwards.
package sqldbtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/leveltest"
	"lieudit/eventstore/sqldb"
)

// The variables that name servers: a Postgres in which tests may create databases of their own, and a PgBouncer before the same
// Postgres, as postgres:///postgres?host=FOLDER&port=6432. It lets a PoolMode in as a user without a password.
const (
	envVariable       = "LIEUDIT_TEST_POSTGRES"
	pooledEnvVariable = "LIEUDIT_TEST_PGBOUNCER"
)

// PoolMode says what a client of PgBouncer keeps a session of Postgres for. It is also the name of the user who gets that mode,
// and who owns nothing in Postgres but the test's database.
type PoolMode string

const (
	SessionPooling     PoolMode = "session"     // as long as it is connected
	TransactionPooling PoolMode = "transaction" // one transaction
)

// EachDatabase runs test on SQLite, on Postgres, and on Postgres through PgBouncer in both modes, as parallel subtests: they begin
// when the function of t has returned. address is what sqldb.OpenRegistry takes: an empty folder, or an empty Postgres database.
// leveltest decides at which level of the check each part runs, and what becomes of one whose server is missing.
func EachDatabase(t *testing.T, test func(t *testing.T, address string)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, t.TempDir())
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, NewPostgresDatabase(t))
	})
	for _, mode := range []PoolMode{SessionPooling, TransactionPooling} {
		t.Run("pgbouncer "+string(mode), func(t *testing.T) {
			t.Parallel()
			test(t, NewPooledDatabase(t, mode))
		})
	}
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
	server := findPostgres(t)
	return withDatabase(t, server, createDatabase(t, server, ""), nil)
}

// NewEncodedDatabase is NewPostgresDatabase for a database that holds texts in an encoding.
func NewEncodedDatabase(t testing.TB, encoding string) string {
	t.Helper()
	server := findPostgres(t)
	return withDatabase(t, server, createDatabase(t, server, " encoding '"+encoding+"' lc_collate 'C' lc_ctype 'C' template template0"), nil)
}

// NewPooledDatabase is NewPostgresDatabase for the address of a PgBouncer.
func NewPooledDatabase(t testing.TB, mode PoolMode) string {
	t.Helper()
	server := findPostgres(t)
	pooler := findServer(t, leveltest.Whole, pooledEnvVariable, "a PgBouncer before that Postgres")
	return withDatabase(t, pooler, createDatabase(t, server, " owner "+string(mode)), url.User(string(mode)))
}

// findPostgres is the address of the server in which tests create their databases.
func findPostgres(t testing.TB) string {
	t.Helper()
	return findServer(t, leveltest.Usual, envVariable, "a Postgres in which databases may be created")
}

// findServer is the address that a variable holds, for a test that runs from a level on. Without one the test is skipped, or fails.
func findServer(t testing.TB, from leveltest.Level, variable, what string) string {
	t.Helper()
	server, missing := os.Getenv(variable), ""
	if server == "" {
		missing = fmt.Sprintf("set %s=postgres://… to %s", variable, what)
	}
	leveltest.Need(t, from, missing)
	return server
}

// createDatabase makes a database, with the options of the statement that does, and returns its name.
func createDatabase(t testing.TB, server, options string) string {
	t.Helper()
	name := "test_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	execOnServer(t, server, "create database "+name+options)
	t.Cleanup(func() { execOnServer(t, server, "drop database "+name+" with (force)") })
	return name
}

// withDatabase is the address of another database on the same server, for another user where one is given.
func withDatabase(t testing.TB, server, database string, user *url.Userinfo) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + database
	if user != nil {
		u.User = user
	}
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
