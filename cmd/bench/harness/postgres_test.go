package harness_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"lieudit/cmd/bench/harness"
)

// A suspended server does not answer, a stopped one refuses connections, and the rows are there after both outages.
func TestPostgresKeepsItsRowsWhenSuspendedOrStopped(t *testing.T) {
	t.Parallel()
	bin := harness.FindPostgres()
	if bin == "" && os.Getenv("LIEUDIT_CHECK") == "1" {
		t.Fatal("no Postgres on this machine: apt-get install postgresql")
	}
	if bin == "" {
		t.Skip("no Postgres on this machine: apt-get install postgresql")
	}
	c, err := harness.StartPostgres(t.Context(), bin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Remove(); err != nil {
			t.Error(err)
		}
	})
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
