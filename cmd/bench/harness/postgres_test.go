package harness_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"lieudit/cmd/bench/harness"
	"lieudit/eventstore/leveltest"
)

// A suspended server does not answer, a stopped one refuses connections, and the rows are there after both outages.
func TestPostgresKeepsItsRowsWhenSuspendedOrStopped(t *testing.T) {
	t.Parallel()
	c := startPostgres(t)
	db, err := pgx.Connect(t.Context(), c.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), "create table kept (n int)"); err != nil {
		t.Fatal(err)
	}
	insert := func(timeout time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		_, err := db.Exec(ctx, "insert into kept values (1)")
		return err
	}
	for _, do := range []func() error{c.Suspend, c.Resume, c.Suspend} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	if insert(100*time.Millisecond) == nil {
		t.Error("a suspended server answers")
	}
	if err := c.Resume(); err != nil {
		t.Fatal(err)
	}
	c.Stop()
	if insert(time.Minute) == nil {
		t.Error("a stopped server answers")
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if db, err = pgx.Connect(t.Context(), c.URL); err != nil {
		t.Fatal(err)
	}
	if err := insert(time.Minute); err != nil {
		t.Errorf("after a restart its table is not there: %v", err)
	}
}

// PgBouncer accepts both users, and refuses the settings at a session's start that an operator's pooler refuses too.
func TestPgBouncerLetsItsUsersInWithoutSettings(t *testing.T) {
	t.Parallel()
	program, missing := harness.FindPgBouncer(), ""
	if program == "" {
		missing = "no PgBouncer on this machine: apt-get install pgbouncer"
	}
	leveltest.Need(t, leveltest.Whole, missing)
	postgres := startPostgres(t)
	b, err := harness.StartPgBouncer(t.Context(), program, postgres.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Remove(); err != nil {
			t.Error(err)
		}
	})
	for _, user := range []string{"session", "transaction"} {
		address := strings.Replace(b.URL, "postgres://", "postgres://"+user+"@", 1)
		db, err := pgx.Connect(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		if err := db.QueryRow(t.Context(), "select current_user", pgx.QueryExecModeExec).Scan(&got); err != nil || got != user {
			t.Errorf("got the user %q, %v, want %q", got, err, user)
		}
		db.Close(t.Context())
		if _, err := pgx.Connect(t.Context(), address+"&search_path=public"); err == nil || !strings.Contains(err.Error(), "unsupported startup parameter") {
			t.Errorf("got %v for a setting at the start, want that it is refused", err)
		}
	}
}

// startPostgres starts a server that ends with the test. leveltest decides what happens to a test if this machine has none.
func startPostgres(t *testing.T) *harness.Postgres {
	t.Helper()
	bin, missing := harness.FindPostgres(), ""
	if bin == "" {
		missing = "no Postgres on this machine: apt-get install postgresql"
	}
	leveltest.Need(t, leveltest.Usual, missing)
	c, err := harness.StartPostgres(t.Context(), bin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Remove(); err != nil {
			t.Error(err)
		}
	})
	return c
}
