package faults_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"modernc.org/sqlite"

	"lieudit/cmd/bench/simulation/faults"
)

// struckDatabase is a table with one row, and one instance's view of it.
type struckDatabase struct {
	inner, struck *sql.DB
	injector      *faults.Injector
}

func newStruckDatabase(t *testing.T) struckDatabase {
	t.Helper()
	connector, err := sqlite.NewConnector("file:" + filepath.Join(t.TempDir(), "a.db") + "?_txlock=immediate&_pragma=journal_mode(wal)")
	if err != nil {
		t.Fatal(err)
	}
	d := struckDatabase{inner: sql.OpenDB(connector), injector: faults.NewInjector(1)}
	d.struck = sql.OpenDB(faults.NewDatabase(connector, faults.ReadModels, d.injector))
	t.Cleanup(func() {
		if err := errors.Join(d.struck.Close(), d.inner.Close()); err != nil {
			t.Error(err)
		}
	})
	if _, err := d.inner.ExecContext(t.Context(), "create table t (n integer); insert into t values (1)"); err != nil {
		t.Fatal(err)
	}
	return d
}

// observe makes each kind of call once and describes what is wrong.
func (d struckDatabase) observe(t *testing.T) (seen []string) {
	t.Helper()
	for _, call := range []struct {
		name string
		do   func(context.Context) string
	}{{"read", d.observeRead}, {"write", d.observeWrite}, {"transaction that reads", d.observeReadTx}, {"transaction", d.observeTx}} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		began := time.Now()
		what := call.do(ctx)
		cancel()
		if took := time.Since(began); took >= patience {
			what += " never"
		} else if took > 0 {
			what += " late"
		}
		if what != "" {
			seen = append(seen, call.name+":"+what)
		}
	}
	return seen
}

func (d struckDatabase) observeRead(ctx context.Context) string {
	var n int
	return describeStatement(d.struck.QueryRowContext(ctx, "select count(*) from t").Scan(&n))
}

// observeWrite writes a row outside a transaction.
func (d struckDatabase) observeWrite(ctx context.Context) string {
	before := d.count()
	_, err := d.struck.ExecContext(ctx, "insert into t values (2)")
	return describeStatement(err) + describeWritten(err, d.count()-before)
}

func (d struckDatabase) observeReadTx(ctx context.Context) string {
	return describeStatement(d.runInTx(ctx, "select n from t"))
}

func (d struckDatabase) observeTx(ctx context.Context) string {
	before := d.count()
	err := d.runInTx(ctx, "insert into t values (3)")
	return describeStatement(err) + describeWritten(err, d.count()-before)
}

// runInTx runs one prepared statement in a transaction.
func (d struckDatabase) runInTx(ctx context.Context, query string) error {
	tx, err := d.struck.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // it fails after the end of the transaction
	statement, err := tx.PrepareContext(ctx, query)
	if err != nil {
		return err
	}
	defer statement.Close()
	if _, err := statement.ExecContext(ctx); err != nil {
		return err
	}
	return tx.Commit()
}

func (d struckDatabase) count() (n int) {
	if err := d.inner.QueryRow("select count(*) from t").Scan(&n); err != nil {
		return -1
	}
	return n
}

func describeStatement(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded):
		return " ends"
	}
	return " fails"
}

// describeWritten describes what happened to a row, unless that agrees with the error.
func describeWritten(err error, rows int) string {
	switch {
	case err == nil && rows == 0:
		return " lost"
	case err != nil && rows > 0:
		return " made"
	}
	return ""
}

// databaseFaults lists what differs while a fault strikes everything that it may, for 9 s.
var databaseFaults = map[faults.Kind][]string{
	faults.DatabaseAway:      {"read: fails", "write: fails", "transaction that reads: fails", "transaction: fails"},
	faults.DatabaseSlow:      {"read: late", "write: late", "transaction that reads: late", "transaction: late"},
	faults.DatabaseFull:      {"write: fails", "transaction: fails"},
	faults.CommitUnknownMade: {"transaction: fails made"},
	faults.CommitUnknownLost: {"transaction: fails"},
}

func TestAFaultOfADatabaseDoesWhatItSaysAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, kind := range faults.Kinds() {
		if !slices.Contains(kind.Parts, faults.ReadModels) {
			continue
		}
		t.Run(string(kind.Kind), func(t *testing.T) {
			t.Parallel()
			want, isKnown := databaseFaults[kind.Kind]
			if !isKnown {
				t.Fatal("no line of the table says what it does")
			}
			synctest.Test(t, func(t *testing.T) {
				d := newStruckDatabase(t)
				mend := d.injector.Strike(faults.Fault{Kind: kind.Kind, Part: faults.ReadModels})
				if got := d.observe(t); !slices.Equal(got, want) {
					t.Errorf("while it strikes:\n got %q\nwant %q", got, want)
				}
				mend()
				d.injector.Strike(faults.Fault{Kind: kind.Kind, Part: faults.Vault})
				if got := d.observe(t); len(got) > 0 {
					t.Errorf("after it, and while it strikes another part: %q", got)
				}
			})
		})
	}
}

func TestAnUnreachableDatabaseMakesNoConnections(t *testing.T) {
	t.Parallel()
	d := newStruckDatabase(t)
	defer d.injector.Strike(faults.Fault{Kind: faults.DatabaseAway, Part: faults.ReadModels})()
	if _, err := d.struck.Conn(t.Context()); err == nil {
		t.Error("there is a connection")
	}
}

func TestADeadInstanceCommitsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newStruckDatabase(t)
		tx, err := d.struck.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), "insert into t values (2)"); err != nil {
			t.Fatal(err)
		}
		d.injector.Kill()
		if err := tx.Commit(); err == nil {
			t.Error("the transaction was committed")
		}
		if n := d.count(); n != 1 {
			t.Errorf("there are %d rows", n)
		}
		if _, err := d.inner.ExecContext(t.Context(), "insert into t values (3)"); err != nil {
			t.Errorf("the dead instance still holds its lock: %v", err)
		}
		if got, want := d.observe(t), []string{"read: ends never", "write: ends never", "transaction that reads: ends never", "transaction: ends never"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAPausedInstanceGoesOnAfterwards(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, l := newStruckDatabase(t), newStruckLog(t)
		time.AfterFunc(3*time.Second, d.injector.Strike(faults.Fault{Kind: faults.InstancePauses, Part: faults.World}))
		if got, want := d.observe(t), []string{"read: late"}; !slices.Equal(got, want) {
			t.Errorf("the database: got %q, want %q", got, want)
		}
		time.AfterFunc(3*time.Second, l.injector.Strike(faults.Fault{Kind: faults.InstancePauses, Part: faults.World}))
		if got, want := l.observe(t), []string{"append: late"}; !slices.Equal(got, want) {
			t.Errorf("the log: got %q, want %q", got, want)
		}
	})
}

func TestAStatementWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newStruckDatabase(t)
		d.injector.LongestTurn = 2 * time.Millisecond
		began := time.Now()
		for range 50 {
			if _, err := d.struck.ExecContext(t.Context(), "insert into t values (2)"); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took == 0 || took >= 100*time.Millisecond {
			t.Errorf("50 statements took %v", took)
		}
	})
}
