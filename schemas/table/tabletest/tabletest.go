// Package tabletest gives each test a relational database of its own, of both kinds, which is gone after it.
package tabletest

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"lieudit/schemas/deadlinetest"
	"lieudit/schemas/table"
)

// Variable names the Postgres database in which tests may create databases of their own.
const Variable = "LIEUDIT_TEST_POSTGRES"

// Each runs test on SQLite and on Postgres, in parallel. address is what table.OpenShelf takes: a
// folder, or an empty Postgres database.
func Each(t *testing.T, test func(t *testing.T, address string)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, t.TempDir())
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, Postgres(t))
	})
}

// File is what table.Open takes where address is what table.OpenShelf does.
func File(address string) string {
	if strings.HasPrefix(address, "postgres") {
		return address
	}
	return filepath.Join(address, "test.db")
}

// Postgres makes an empty database and drops it after the test.
func Postgres(t testing.TB) string {
	t.Helper()
	server := os.Getenv(Variable)
	switch {
	case server != "":
	case os.Getenv("LIEUDIT_CHECK") == "1":
		t.Fatalf("%s is not set", Variable)
	default:
		t.Skipf("set %s=postgres://… to a Postgres in which databases may be created", Variable)
	}
	name := "test_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	administer(t, server, "create database "+name)
	t.Cleanup(func() { administer(t, server, "drop database "+name+" with (force)") })
	return Within(t, server, name)
}

// Within is the address of another database on the same server.
func Within(t testing.TB, server, database string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + database
	return u.String()
}

func administer(t testing.TB, server, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadlinetest.Limit(deadlinetest.Hang))
	defer cancel()
	db, err := table.Open(ctx, server, table.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(ctx, statement); err != nil {
		t.Fatal(err)
	}
}
